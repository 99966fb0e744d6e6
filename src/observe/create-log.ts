import pino, { type Logger } from 'pino';

/**
 * The log of the server on its standard output: readable lines on a terminal, otherwise one JSON object per line.
 * @param level the lowest level that is logged, as in LOG_LEVEL
 */
export async function createLog(level: string, terminal: boolean): Promise<Logger> {
  const options = {
    level,
    // The machine's name is left out, because log collectors add it themselves.
    base: { pid: process.pid },
    serializers: { error: pino.stdSerializers.err, cause: pino.stdSerializers.err },
  };
  if (!terminal) return pino(options, standardOutput());
  const { default: pretty } = await import('pino-pretty');
  const readable = pretty({
    sync: true,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname',
  });
  return pino(options, { write: line => void readable.write(plainLine(line)) });
}

/** Control characters, invisible characters, those that change the text direction, and line ends. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
/** As above, but a stack trace keeps its lines. */
const CONTROLS_OF_STACK = /(?!\n(?: +at |caused by: ))[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * A log line with all terminal control characters escaped (`\u001b`, `\n`), because it contains names and messages from buyers,
 * facilitators and backends. Fields repeated in the message are left out.
 */
function plainLine(line: string): string {
  const plain = JSON.parse(line, (key, value: unknown) =>
    typeof value === 'string'
      ? value.replace(key === 'stack' ? CONTROLS_OF_STACK : CONTROLS, escaped)
      : value,
  ) as { msg?: string; error?: unknown };
  const { error, ...others } = plain;
  const told = typeof error === 'string' && plain.msg?.includes(error) === true;
  return `${JSON.stringify(told ? others : plain)}\n`;
}

/** Escapes a character as JSON does. `JSON.stringify` itself escapes only some of these characters. */
function escaped(character: string): string {
  const written = JSON.stringify(character).slice(1, -1);
  if (written !== character) return written;
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map(unit => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/**
 * Log lines are gathered for this long, in ms, or until they have this many characters, and written together, because a write takes as long for
 * many lines as for one.
 */
const GATHER_MS = 100;
const GATHERED_CHARACTERS = 64 * 1024;
/** Once this many bytes are waiting for the program that reads the log, further lines are dropped. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;

/** At exit, a thread has this long, in ms, to finish its write. */
const LAST_WRITE_MS = 20;

let output: pino.DestinationStream | undefined;

/**
 * The destination that all logs of this process share. A log that can't be written, for example on a full disk, must not end a server that can still
 * sell.
 */
function standardOutput(): pino.DestinationStream {
  if (output) return output;
  const destination = pino.destination({ dest: 1, sync: false, maxLength: MAX_BUFFERED_BYTES });
  destination.on('error', () => {
    // Pino's own flushSync would throw at exit if it can't write.
    destination.flushSync = () => {};
  });
  return (output = gathered(destination));
}

/** Gathers lines in an array, since a destination with a `minLength` copies its whole buffer for each line. */
function gathered(destination: ReturnType<typeof pino.destination>): pino.DestinationStream {
  let lines: string[] = [];
  let characters = 0;
  let timer: NodeJS.Timeout | undefined;
  let isWriting = false;
  destination.on('drain', () => (isWriting = false));
  const take = (): string => {
    clearTimeout(timer);
    timer = undefined;
    const text = lines.join('');
    lines = [];
    characters = 0;
    return text;
  };
  const write = (): void => {
    isWriting = true;
    destination.write(take());
  };
  // Runs before the destination's own listener, which does not know about a pending write in a thread.
  process.prependOnceListener('exit', () => {
    if (isWriting) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WRITE_MS);
    destination.flushSync();
    // An asynchronous write may not finish before the process ends.
    const last = pino.destination({ dest: 1, sync: true });
    last.on('error', () => {});
    last.write(take());
  });
  return {
    write(line) {
      lines.push(line);
      characters += line.length;
      if (characters >= GATHERED_CHARACTERS) write();
      else timer ??= setTimeout(write, GATHER_MS).unref();
    },
  };
}
