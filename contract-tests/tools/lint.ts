import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { record } from './record.js';

/** Redocly CLI and Spectral, with their rules and ours, on one or many documents. */

const TOOLS = fileURLToPath(new URL('../../../contract-tests/tools/', import.meta.url));
const CONTRACT = fileURLToPath(new URL('../../../openapi.yaml', import.meta.url));
const DEADLINE_MS = 600_000;
const ERRORS = ['--fail-severity', 'error', '--display-only-failures'];

/** Why the linters can't be used here; empty if they can. */
export const noLinters = existsSync(join(TOOLS, 'node_modules', '@redocly', 'cli'))
  ? ''
  : 'contract-tests/tools is not installed: make lint-contract installs it';

export type Problem = { file: string; rule: string; message: string; place: string };
export type Linter = { name: string; package: string; note: string; run: (files: string[]) => Problem[] };

type RedoclyReport = {
  problems: { ruleId: string; message: string; location: { source: { ref: string }; pointer?: string }[] }[];
};
type SpectralReport = { code: string; message: string; source: string; path: (string | number)[] }[];

export const LINTERS: Linter[] = [
  { name: 'Redocly CLI', package: '@redocly/cli', note: 'redocly', run: files => redocly(files) },
  { name: 'Spectral', package: '@stoplight/spectral-cli', note: 'spectral', run: files => spectral(files) },
];

/** The errors of documents that only have to follow the specification. A thousand operations take Spectral a minute. */
export function errorsIn(linter: 'Redocly' | 'Spectral', files: string[]): Problem[] {
  return linter === 'Redocly'
    ? redocly(files, 'redocly-imports.yaml')
    : spectral(files, 'spectral-imports.yaml', ERRORS);
}

function redocly(files: string[], rules = 'redocly.yaml'): Problem[] {
  const config = join(TOOLS, rules);
  // The output is one JSON object for each document, without commas between them.
  const text = runTool('redocly', [
    ...['lint', ...files, '--config', config, '--format', 'json', '--max-problems', '1000'],
  ]);
  const reports = parseReport<RedoclyReport[]>('redocly', `[${text.replace(/^\}\{$/gm, '},{')}]`);
  if (reports.length !== files.length) throw new Error(`redocly gave ${reports.length} reports: ${text}`);
  return reports
    .flatMap(({ problems }) => problems)
    .map(({ ruleId, message, location: [first] }) => ({
      file: join(process.cwd(), first?.source.ref ?? ''),
      rule: ruleId,
      message,
      place: first?.pointer ?? '',
    }));
}

function spectral(files: string[], rules = 'spectral.yaml', more: string[] = []): Problem[] {
  const text = runTool('spectral', [
    ...['lint', ...files, '--ruleset', join(TOOLS, rules), '--format', 'json', '--quiet', ...more],
  ]);
  const report = parseReport<SpectralReport>('spectral', text);
  return report.map(({ code, message, source, path }) => ({
    file: source,
    rule: code,
    message,
    place: path.join('.'),
  }));
}

/** @returns a tool's output on stdout, which is its report */
function runTool(tool: string, args: string[]): string {
  const built = fileURLToPath(new URL('../../', import.meta.url));
  const { stdout, stderr, error } = spawnSync(join(TOOLS, 'node_modules', '.bin', tool), args, {
    env: {
      ...process.env,
      COINSLOT_BUILT: built,
      REDOCLY_TELEMETRY: 'off',
      REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
    },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    timeout: DEADLINE_MS,
  });
  if (!stdout.trim()) throw new Error(`${tool} gave no report: ${stderr || String(error)}`);
  return stdout;
}

function parseReport<T>(tool: string, text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new Error(`${tool} gave an unreadable report: ${text.slice(0, 500)}`);
  }
}

function versionOf(name: string): string {
  const text = readFileSync(join(TOOLS, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function main(): void {
  let problems = 0;
  for (const linter of LINTERS) {
    const found = linter.run([CONTRACT]);
    for (const { rule, message, place } of found) {
      process.stdout.write(`${linter.name}: ${place}: ${message} (${rule})\n`);
    }
    record(linter.note, {
      tool: linter.name,
      version: versionOf(linter.package),
      checks: "the document, against the tool's rules and ours",
      cases: '1 document',
      result: found.length === 0 ? 'no problem' : `${found.length} problems`,
    });
    problems += found.length;
  }
  process.stdout.write(problems === 0 ? 'The contract is clean.\n' : `${problems} problems.\n`);
  process.exitCode = problems === 0 ? 0 : 1;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main();
