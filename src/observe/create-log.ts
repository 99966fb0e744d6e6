import pino, { type Logger } from 'pino';

/**
 * The log of the server on its standard output: lines to read on a terminal, else one JSON object per line.
 * @param level the least that is logged, as in LOG_LEVEL
 */
export async function createLog(level: string, terminal: boolean): Promise<Logger> {
  const options = {
    level,
    serializers: { error: pino.stdSerializers.err, cause: pino.stdSerializers.err },
  };
  if (!terminal) return pino(options, standardOutput());
  const { default: pretty } = await import('pino-pretty');
  return pino(
    options,
    pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss', ignore: 'pid,hostname' }),
  );
}

/** Lines are gathered for this long, in ms, or up to this many bytes, because each write of the file costs as much as making a line. */
const GATHER_MS = 100;
const GATHERED_BYTES = 8 * 1024;
/** More is dropped while whoever reads the log does not. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;

/** A log that can't be written, for example on a full disk, must not end a server that can still sell. */
function standardOutput(): pino.DestinationStream {
  const output = pino.destination({
    dest: 1,
    sync: false,
    minLength: GATHERED_BYTES,
    periodicFlush: GATHER_MS,
    maxLength: MAX_BUFFERED_BYTES,
  });
  output.on('error', () => {
    // At exit it would throw what can't be written.
    output.flushSync = () => {};
  });
  return output;
}
