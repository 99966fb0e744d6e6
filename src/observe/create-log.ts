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
  if (!terminal) return pino(options);
  const { default: pretty } = await import('pino-pretty');
  return pino(
    options,
    pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss', ignore: 'pid,hostname' }),
  );
}
