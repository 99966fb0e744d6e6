import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { importedFrom, lineOf, PUBLIC_DOCUMENTS } from '../support/public-documents.js';

/** Imports every public document, and writes what can be sold from each into docs/reports/imports.md. Run by `make imports`. */

const PAGE = new URL('../../../docs/reports/imports.md', import.meta.url);
const PART = /(<!-- imports: written by make imports -->\n)[^]*?(<!-- end of imports -->)/;
const HEAD = '| document | version | operations | sold | left out |\n|---|---|---:|---:|---|';

/** How many operations of each document can be sold according to the report, by the document's name. */
export function reported(): Map<string, number> {
  const lines = readFileSync(PAGE, 'utf8').matchAll(
    /^\| (.+?) \| (?:OpenAPI|Swagger) \S+ \| \d+ \| (\d+) \|/gm,
  );
  return new Map([...lines].map(([, what = '', sold]) => [what, Number(sold)]));
}

async function main(): Promise<void> {
  const lines: string[] = [];
  for (const document of PUBLIC_DOCUMENTS) {
    const line = lineOf(document, await importedFrom(document));
    process.stdout.write(`${line}\n`);
    lines.push(line);
  }
  const page = readFileSync(PAGE, 'utf8');
  writeFileSync(
    PAGE,
    page.replace(PART, (_part, from: string, to: string) => `${from}${[HEAD, ...lines, ''].join('\n')}${to}`),
  );
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
