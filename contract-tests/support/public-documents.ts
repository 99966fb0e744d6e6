import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { importContract, type Imported } from '../../src/contract/import/import-contract.js';
import { objectOf } from '../../src/contract/references.js';

/** OpenAPI documents that nobody wrote for Coinslot (contract-tests/fixtures/openapi). */

const FOLDER = new URL('../../../contract-tests/fixtures/openapi/', import.meta.url);

export type PublicDocument = { file: string; what: string; from: string; licence: string };

export const PUBLIC_DOCUMENTS = JSON.parse(
  readFileSync(new URL('sources.json', FOLDER), 'utf8'),
) as PublicDocument[];

/** Read to the end by 5 s where nothing else runs; a machine with other work takes ten times as long. */
export const IMPORT_DEADLINE_MS = 180_000;
const REASONS = 6;

/** As its package has it. */
export function textOf({ file }: Pick<PublicDocument, 'file'>): string {
  return gunzipSync(readFileSync(new URL(`${file}.gz`, FOLDER))).toString('utf8');
}

/** Every operation for a cent, from an API at an address that nobody calls. */
export function importedFrom(
  document: Pick<PublicDocument, 'file'>,
  upstream = 'https://api.example.com',
): Promise<Imported> {
  return importContract(textOf(document), { prices: ['*=0.01'], upstream });
}

/** What a document says of itself: its version of OpenAPI, and how many operations its paths have. */
export function described(document: Pick<PublicDocument, 'file'>): { version: string; operations: number } {
  const { openapi, swagger, paths } = objectOf(parse(textOf(document).replace(/^\uFEFF/, '')));
  const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
  const operations = Object.values(objectOf(paths)).flatMap(item =>
    methods.filter(each => each in objectOf(item)),
  );
  return {
    version: `${openapi === undefined ? 'Swagger' : 'OpenAPI'} ${String(openapi ?? swagger)}`,
    operations: operations.length,
  };
}

/** Its name in the report: several describe one API. */
export function nameOf({ what, file }: Pick<PublicDocument, 'what' | 'file'>): string {
  return `${what} (\`${file}\`)`;
}

/** How many of the operations are sold. */
export function soldOf({ table }: Imported): number {
  return table.filter(({ leftOut }) => leftOut === undefined).length;
}

/** A line of docs/reports/imports.md: what is sold, and what is not and why. */
export function lineOf(document: PublicDocument, imported: Imported): string {
  const { version, operations } = described(document);
  const rows = imported.table.filter(({ method }) => method !== 'WEBHOOK');
  const left = rows.flatMap(({ leftOut }) => leftOut ?? []);
  const cells = [nameOf(document), version, operations, soldOf(imported), reasonsOf(left)];
  return `| ${cells.join(' | ')} |`;
}

function reasonsOf(all: string[]): string {
  const counts = new Map<string, number>();
  // What names something of one operation is one reason for all.
  const plain = (text: string): string =>
    text
      .split('; ', 1)
      .join('')
      .replace(/^parameters (?!the )\S+ /, 'parameters … ')
      .replace(/(its parameter|the cookie|responses) \S+ /, '$1 … ')
      .replace(/\{[^}]*\}/g, '{…}')
      .replaceAll('|', '\\|')
      .slice(0, 160);
  for (const text of all) counts.set(plain(text), (counts.get(plain(text)) ?? 0) + 1);
  const sorted = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const shown = sorted.slice(0, REASONS).map(([text, count]) => `${count}: ${text}`);
  const others = sorted.slice(REASONS).reduce((sum, [, count]) => sum + count, 0);
  return [...shown, ...(others > 0 ? [`${others}: other reasons`] : [])].join('<br>') || 'none';
}
