import { readFileSync } from 'node:fs';

const SRC = new URL('../../../src/', import.meta.url);

/** A script of a page, from files below src/. They are not compiled, so they are not in dist/. */
export function browserScript(...files: string[]): string {
  return files.map(file => readFileSync(new URL(file, SRC), 'utf8')).join('\n');
}

/** Signs in with the token after `#` of the URL. It comes before the script of a page with `signIn`. */
export const EXCHANGE_TOKEN = 'pages/assets/exchange-token.js';
