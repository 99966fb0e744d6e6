import { readFileSync } from 'node:fs';

const SRC = new URL('../../../src/', import.meta.url);

/** Reads a page's script from a file under src/, because such files are not compiled into dist/. */
export function browserScript(file: string): string {
  return readFileSync(new URL(file, SRC), 'utf8');
}

/** The script of a page with a sign-in, preceded by one that signs in with the token after `#` in the URL. */
export const EXCHANGE_TOKEN = browserScript('pages/assets/exchange-token.js');
