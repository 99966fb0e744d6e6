import { Console } from 'node:console';
import { Writable } from 'node:stream';

/**
 * All output of commands goes through here, because much of it comes from other parties: a shop's error, a header, a payment.
 * A terminal obeys control characters (C0 and C1 except for tab and line feed), and bidirectional ones change what a reader sees.
 */
// eslint-disable-next-line no-control-regex -- these are the ones to escape
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with these characters as JSON escapes, so that JSON keeps its value. */
export function readable(text: string): string {
  return text.replace(UNSAFE, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Writes to stdout. */
export function writeOut(text: string): void {
  process.stdout.write(readable(text));
}

/** Writes to stderr. */
export function writeErr(text: string): void {
  process.stderr.write(readable(text));
}

/** Writes data to stdout: exactly as it is, unless stdout is a terminal. */
export function writeData(data: string, written?: (error?: Error | null) => void): void {
  process.stdout.write(process.stdout.isTTY ? readable(data) : data, written);
}

/** Replaces the last line of a terminal on stderr. */
export function replaceLine(text: string): void {
  process.stderr.write(`\r\u001b[K${readable(text)}`);
}

/** A console for packages, used where stdout is reserved for a protocol. */
export function consoleOnStderr(): Console {
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      writeErr(String(chunk));
      done();
    },
  });
  return new Console(stream);
}
