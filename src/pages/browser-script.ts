import { readFileSync } from 'node:fs';

const SRC = new URL('../../../src/', import.meta.url);

/** A script of a page, from a file below src/. It is not compiled, so it is not in dist/. */
export function browserScript(file: string): string {
  return readFileSync(new URL(file, SRC), 'utf8');
}

/** A script that signs in with the token after `#` of the URL. It comes before the script of a page with a sign-in. */
export const EXCHANGE_TOKEN = browserScript('pages/assets/exchange-token.js');
