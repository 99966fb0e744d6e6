import { readFileSync, writeFileSync } from 'node:fs';
import { CLIENTS, noteOf } from './clients.js';
import { recorded, recordedMutations } from './record.js';

/**
 * Writes docs/conformance.md from what the tools reported on their last runs. With `--print`, prints only the table of tools; with
 * `--check`, also fails where the page differs from the last run of a tool in its version or result.
 */

const FILE = new URL('../../../docs/conformance.md', import.meta.url);

/** Every tool, in the order of the table, and the command that runs it. */
const TOOLS: [note: string, tool: string, command: string][] = [
  ['redocly', 'Redocly CLI', 'make lint-contract'],
  ['spectral', 'Spectral', 'make lint-contract'],
  ['prism-mock', 'Prism, mock', 'make tools'],
  ['prism-proxy', 'Prism, proxy', 'make tools'],
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

const text = [
  '# Conformance',
  '',
  'This page shows what other people’s tools say about the contract: whether the server does what `openapi.yaml` promises. The tools run',
  'in the sandbox and make real payments there. To run them all, use `make tools`. `make conformance-table` writes this page from what',
  'each tool reported on its last run.',
  '',
  ...toolRows(),
  '',
  'Notes:',
  '',
  '- Prism makes the answers of the mock; what it cannot (402 without `Prefer`, receipts, a WAV) is put before it by `coinslot mock`. Its',
  '  packages declare Node 24 as their minimum; these results are from',
  `  Node ${process.versions.node}.`,
  '- `/schemathesis.toml` of a server and `contract-tests/fuzz/paid.toml` say which checks of Schemathesis are left out, and why.',
  '- oasdiff does not know prices, so we compare contracts ourselves as well. `contract-tests/tools/oasdiff-ignore.txt` ignores one finding',
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
];
/** Rows of the last runs that the page does not have in the same words, but for the number of cases. */
function untrue(): string[] {
  const withoutCases = (line: string): string => line.split(' | ').toSpliced(3, 1).join(' | ');
  const page = readFileSync(FILE, 'utf8').split('\n').map(withoutCases);
  return toolRows().filter(line => line.startsWith('| ') && !page.includes(withoutCases(line)));
}

const [, , mode] = process.argv;
if (mode === undefined) writeFileSync(FILE, text.join('\n'));
else process.stdout.write(`${toolRows().join('\n')}\n`);
if (mode === '--check' && untrue().length) {
  const lines = untrue().join('\n');
  process.stdout.write(
    `\ndocs/conformance.md differs from the last runs in these rows (make tools updates it):\n${lines}\n`,
  );
  process.exitCode = 1;
}
