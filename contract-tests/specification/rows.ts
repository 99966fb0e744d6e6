import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** The rows of rows.yaml, and the section of docs/reports/conformance.md that is written from them. */

export const ROOT = new URL('../../../', import.meta.url);
export const PAGE = new URL('docs/reports/conformance.md', ROOT);
const SECTION = '## The specification, row by row';

type Verdict = 'holds' | 'in part' | 'differs' | 'not shown';

export type Row = {
  says: string;
  verdict: Verdict;
  why?: string;
  contract?: Record<string, unknown>;
  atomic?: Record<string, string>;
  packages?: Record<string, string>;
  package?: Record<string, unknown>;
  tests?: string[];
  at?: string[];
};

export type Part = { part: string; rows: Row[] };

export const readParts = (): Part[] =>
  parse(readFileSync(new URL('contract-tests/specification/rows.yaml', ROOT), 'utf8')) as Part[];

/** A test as a row names it: a file, and a part of a title unless the whole file is meant. */
export function namedTest(text: string): { file: string; title: string } {
  const [file = '', ...title] = text.split(': ');
  return { file, title: title.join(': ') };
}

const inRow = (cells: string[]): string =>
  `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`;

function shownBy({ contract, atomic, packages, package: own, tests = [], at = [] }: Row): string {
  const compared = [contract || atomic ? '*contract*' : '', packages || own ? '*package.json*' : ''];
  const named = tests.map(text => {
    const { file, title } = namedTest(text);
    return title ? `\`${file}\` “${title}”` : `\`${file}\``;
  });
  return [...compared, ...named, ...at.map(file => `[${file}](../../${file})`)].filter(Boolean).join('; ');
}

const VERDICTS: Verdict[] = ['holds', 'in part', 'differs', 'not shown'];

function counted(rows: Row[]): string {
  const numbers = VERDICTS.map(
    verdict => [verdict, rows.filter(row => row.verdict === verdict).length] as const,
  );
  return numbers.flatMap(([verdict, number]) => (number ? [`${verdict} ${number}`] : [])).join(', ');
}

function table({ part, rows }: Part): string[] {
  const lines = rows.map(row =>
    inRow([
      row.says,
      row.verdict === 'differs' ? '**differs**' : row.verdict,
      shownBy(row),
      (row.why ?? '').replace(/^Chosen - /, 'Chosen: '),
    ]),
  );
  return [
    `### ${part}`,
    '',
    inRow(['Statement', 'Verdict', 'Shown by', 'Reason']),
    inRow(['---', '---', '---', '---']),
    ...lines,
    '',
  ];
}

/** The section, line by line. */
export function sectionLines(parts: Part[]): string[] {
  const statements = parts.slice(0, -1).flatMap(({ rows }) => rows);
  const packages = parts.slice(-1).flatMap(({ rows }) => rows);
  return [
    SECTION,
    '',
    'The specification of the service says what this server must do. Each row is one of its statements that can be checked, in our own words.',
    `${statements.length} statements: ${counted(statements)}. ${packages.length} rows about packages and layout: ${counted(packages)}.`,
    '',
    '- *holds*: true as stated. *in part*: true, except in the case that the reason describes. *differs*: not true,',
    '  either on purpose or because it has not been done yet. *not shown*: the specification leaves it open, and the reason says what was chosen.',
    '- *contract*: `specification/rows.test.ts` compares the row with `openapi.yaml`; *package.json*: with the versions there. A test is',
    '  given by its file in `contract-tests/` and a part of its title, as in the source; `rows.test.ts` fails if there is no such title.',
    '- The rows are in `contract-tests/specification/rows.yaml`; `make conformance-rows` writes this section.',
    '',
    ...parts.flatMap(table),
  ];
}

/** The page's section about the specification, which is the last section. */
export function writtenSection(page: string): string {
  const start = page.indexOf(SECTION);
  return start < 0 ? '' : page.slice(start);
}
