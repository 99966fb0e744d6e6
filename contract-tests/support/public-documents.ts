import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { importContract, type Imported } from '../../src/contract/import/import-contract.js';
import { objectOf } from '../../src/contract/references.js';

/** OpenAPI documents that were not written for Coinslot (contract-tests/fixtures/openapi). */

const FOLDER = new URL('../../../contract-tests/fixtures/openapi/', import.meta.url);

export type PublicDocument = { file: string; what: string; from: string; licence: string };

export const PUBLIC_DOCUMENTS = JSON.parse(
  readFileSync(new URL('sources.json', FOLDER), 'utf8'),
) as PublicDocument[];

/** Importing all documents takes 5 s on an idle machine, and up to ten times as long on a busy one. */
export const IMPORT_DEADLINE_MS = 180_000;
const REASONS = 6;

/** The document as it was published. */
export function textOf({ file }: Pick<PublicDocument, 'file'>): string {
  return gunzipSync(readFileSync(new URL(`${file}.gz`, FOLDER))).toString('utf8');
}

/** Imports a document, with every operation at one cent. The address of its API is never called. */
export function importedFrom(
  document: Pick<PublicDocument, 'file'>,
  upstream = 'https://api.example.com',
): Promise<Imported> {
  return importContract(textOf(document), { prices: ['*=0.01'], upstream });
}

/** What a document says about itself: its OpenAPI version and its number of operations. */
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

/** The name of a document in the report. It includes the file, because several documents describe the same API. */
export function nameOf({ what, file }: Pick<PublicDocument, 'what' | 'file'>): string {
  return `${what} (\`${file}\`)`;
}

/** How many operations can be sold. */
export function soldOf({ table }: Imported): number {
  return table.filter(({ leftOut }) => leftOut === undefined).length;
}

/** A row of docs/reports/imports.md: what can be sold, what can't be, and why not. */
export function lineOf(document: PublicDocument, imported: Imported): string {
  const { version, operations } = described(document);
  const rows = imported.table.filter(({ method }) => method !== 'WEBHOOK');
  const left = rows.flatMap(({ leftOut }) => leftOut ?? []);
  const cells = [nameOf(document), version, operations, soldOf(imported), reasonsOf(left)];
  return `| ${cells.join(' | ')} |`;
}

function reasonsOf(all: string[]): string {
  const counts = new Map<string, number>();
  // Reasons that differ only in a detail of an operation are counted as one.
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
