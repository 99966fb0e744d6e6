import { readFileSync, writeFileSync } from 'node:fs';
import { CLIENTS, noteOf } from './clients.js';
import { recorded, recordedMutations } from './record.js';

/**
 * Writes docs/conformance.md from what the tools reported on their last runs. With `--print`, shows the table of tools only; with
 * `--check`, too, and fails where the page says otherwise of a tool's version or result than its last run.
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
  ['breaking', 'Own comparison of contracts', 'make contract-diff'],
  ...CLIENTS.map(({ tool }): [string, string, string] => [noteOf(tool), tool, 'make clients']),
];

const row = (cells: string[]): string =>
  `| ${cells.map(cluster => cluster.replaceAll('|', '\\|')).join(' | ')} |`;
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
    return ['not run: the deliberate faults, make tools was not run before this table was written'];
  return [
    ...head('Fault', 'Noticed by'),
    ...caught.map(([name, checks]) => row([name, checks.join(', ') || 'nobody'])),
  ];
}

const text = [
  '# Conformance',
  '',
  'Does the server do what its contract says? Asked of other people’s tools, in the sandbox, with real payments. Written by',
  '`make conformance-table` from what each tool reported on its last run; `make tools` runs them all first.',
  '',
  ...toolRows(),
  '',
  'Prism can’t serve the WAV of text-to-speech as a mock. Its packages name Node 24 as the oldest they are made for; these',
  `results are from Node ${process.versions.node}. What is left out of Schemathesis’s checks, and why, is written in`,
  '`contract-tests/fuzz/*.toml`. oasdiff knows nothing of prices, so a comparison of our own stands beside it; of what oasdiff says,',
  '`contract-tests/tools/oasdiff-ignore.txt` drops one finding, with its reason.',
  'Limits that were set since 1.0.0 are accepted one by one, each with its reason, in `contract-tests/released/accepted-changes.yaml`.',
  '',
  '## Deliberate faults',
  '',
  'A check that can’t fail proves nothing. `contract-tests/tools/mutations.test.ts` breaks the server or the document in one way each',
  'and asks who notices.',
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
  process.stdout.write(`\ndocs/conformance.md says otherwise of these (make tools renews it):\n${lines}\n`);
  process.exitCode = 1;
}
