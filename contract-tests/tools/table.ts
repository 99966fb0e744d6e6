import { readFileSync, writeFileSync } from 'node:fs';
import { PAGE, readParts, sectionLines, writtenSection } from '../specification/rows.js';
import { CLIENTS, noteOf } from './clients.js';
import { recorded, recordedMutations } from './record.js';

/**
 * Writes docs/reports/conformance.md from the results of the tools' last runs and from the rows of the specification;
 * with `--rows`, only from the rows. With `--print`, only prints the table of tools; with `--check`, also fails if a tool's
 * version or result on the page differs from its last run, or a row from the specification's rows.
 */

/** Every tool, in the order of the table, and the command that runs it. */
const TOOLS: [note: string, tool: string, command: string][] = [
  ['redocly', 'Redocly CLI', 'make lint-contract'],
  ['spectral', 'Spectral', 'make lint-contract'],
  ['prism-mock', 'Prism, mock', 'make tools'],
  ['prism-proxy', 'Prism, proxy', 'make tools'],
  ['schemathesis-stock', 'Schemathesis, stock', 'make fuzz'],
  ['schemathesis-unpaid', 'Schemathesis, unpaid', 'make fuzz'],
  ['schemathesis-paid', 'Schemathesis, paid', 'make fuzz'],
  ['oasdiff', 'oasdiff', 'make contract-diff'],
  ['breaking', 'Our comparison of contracts', 'make contract-diff'],
  ...CLIENTS.map(({ tool }): [string, string, string] => [noteOf(tool), tool, 'make clients']),
];

const row = (cells: string[]): string => `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`;
const head = (...cells: string[]): string[] => [row(cells), row(cells.map(() => '---'))];

function toolRows(): string[] {
  const notes = recorded();
  const missing: string[] = [];
  const rows = TOOLS.flatMap(([note, tool, command]) => {
    const found = notes[note];
    if (found && 'version' in found)
      return [row([found.tool, found.version, found.checks, found.cases, found.result, `\`${command}\``])];
    missing.push(
      `not run: ${tool}, ${found ? found.why : `${command} was not run before this table was written`}`,
    );
    return [];
  });
  const table = [...head('Tool', 'Version', 'What it checks', 'Cases', 'Result', 'Command'), ...rows];
  return missing.length ? [...table, '', ...missing.map(line => `- ${line}`)] : table;
}

function mutationRows(): string[] {
  const caught = Object.entries(recordedMutations());
  if (caught.length === 0)
    return ['not run: the deliberate faults (make tools was not run before this table was written)'];
  return [
    ...head('Fault', 'Noticed by'),
    ...caught.map(([name, checks]) => row([name, checks.join(', ') || 'nobody'])),
  ];
}

const rowsText = sectionLines(readParts()).join('\n');

const text = [
  '# Conformance',
  '',
  'This page shows what third-party tools report about the contract: whether the server does what `openapi.yaml` promises. The tools run',
  'in the sandbox and make real payments there. To run them all, use `make tools`. `make conformance-table` writes this page from what',
  'each tool reported on its last run. [The specification, row by row](#the-specification-row-by-row) says which of its statements hold, and which test shows it.',
  '',
  ...toolRows(),
  '',
  'Notes:',
  '',
  '- Prism generates the answers of the mock; `coinslot mock` adds what Prism cannot (402 without `Prefer`, receipts, a WAV). Its',
  '  packages declare Node 24 as their minimum; these results are from',
  `  Node ${process.versions.node}.`,
  '- `/schemathesis.toml` of a server and `contract-tests/fuzz/paid.toml` say which checks of Schemathesis are left out, and why.',
  '- oasdiff does not compare prices, so we also compare contracts ourselves. `contract-tests/tools/oasdiff-ignore.txt` ignores one finding',
  '  of oasdiff and gives the reason.',
  '- `contract-tests/released/accepted-changes.yaml` lists the limits that were added since 1.0.0, each with its reason.',
  '',
  '## Deliberate faults',
  '',
  'A check that can’t fail proves nothing. `contract-tests/tools/mutations.slow.test.ts` breaks the server or the document in one way at a time, and',
  'records which checks notice it.',
  '',
  ...mutationRows(),
  '',
  rowsText,
];

/** Rows of the last runs that are not in the page with the same text, ignoring the number of cases. */
function untrue(): string[] {
  const withoutCases = (line: string): string => line.split(' | ').toSpliced(3, 1).join(' | ');
  const page = readFileSync(PAGE, 'utf8').split('\n').map(withoutCases);
  return toolRows().filter(line => line.startsWith('| ') && !page.includes(withoutCases(line)));
}

/** The page with the current section of the specification. */
function withRows(): string {
  const page = readFileSync(PAGE, 'utf8');
  return page.slice(0, page.length - writtenSection(page).length) + rowsText;
}

const [, , mode] = process.argv;
if (mode === undefined) writeFileSync(PAGE, text.join('\n'));
else if (mode === '--rows') writeFileSync(PAGE, withRows());
else process.stdout.write(`${toolRows().join('\n')}\n`);
if (mode === '--check' && untrue().length) {
  const lines = untrue().join('\n');
  process.stdout.write(
    `\ndocs/reports/conformance.md differs from the last runs in these rows (make tools updates it):\n${lines}\n`,
  );
  process.exitCode = 1;
}
if (mode === '--check' && writtenSection(readFileSync(PAGE, 'utf8')) !== rowsText) {
  process.stdout.write(
    '\ndocs/reports/conformance.md has old rows of the specification (make conformance-rows updates them)\n',
  );
  process.exitCode = 1;
}
