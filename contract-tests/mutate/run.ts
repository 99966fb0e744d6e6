import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { faultOf, mutants, type Mutant } from './mutants.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** In the root folder, because tests expect openapi.yaml three folders above themselves. */
const COPY = `dist-mutants-${process.pid}`;
const LIMIT_MS = 15_000;
/** The time limit for all tests of one file. */
const UNCHANGED_LIMIT_MS = 120_000;
const TOTAL_MS = 90 * 60_000;

type Run = { ended: 'passed' | 'failed' | 'broken' | 'hung'; output: string };
type Title = { fullTitle: string };
type Fate = { fate: 'killed' | 'survived' | 'broken'; why: string };

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function mocha(test: string, options: readonly string[], limitMs: number): SpawnSyncReturns<string> {
  const always = [
    '--no-package',
    '--fail-zero',
    '--timeout',
    '10000',
    '--require',
    `./${COPY}/src/rails/solana/silence-bigint-warning.js`,
  ];
  return spawnSync(
    join(ROOT, 'node_modules/.bin/mocha'),
    [...always, ...options, `${COPY}/contract-tests/**/${test}.test.js`],
    { cwd: ROOT, encoding: 'utf8', timeout: limitMs, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 },
  );
}

/** `broken`: no test ran, or none could be loaded. */
function runTest({ test, grep }: Pick<Mutant, 'test' | 'grep'>): Run {
  const options = ['--bail', '--reporter', 'dot', '--fgrep', grep];
  const { status, error, stdout, stderr } = mocha(test, options, LIMIT_MS);
  const output = `${stdout}${stderr}`;
  if (error) {
    if ((error as NodeJS.ErrnoException).code === 'ETIMEDOUT') return { ended: 'hung', output };
    throw error;
  }
  if (/^\s+\d+ failing$/m.test(output)) return { ended: 'failed', output };
  return { ended: status === 0 && /^\s+\d+ passing/m.test(output) ? 'passed' : 'broken', output };
}

function isJavaScript(path: string): boolean {
  return spawnSync(process.execPath, ['--check', path]).status === 0;
}

/** Every test that a mutant names must exist and pass on the unchanged code. @returns those that do not */
function faultsUnchanged(chosen: readonly Mutant[]): string[] {
  return [...new Set(chosen.map(({ test }) => test))].flatMap(test => {
    const greps = [...new Set(chosen.filter(mutant => mutant.test === test).map(({ grep }) => grep))];
    const pattern = greps.map(grep => grep.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
    const { stdout, stderr } = mocha(test, ['--reporter', 'json', '--grep', pattern], UNCHANGED_LIMIT_MS);
    const begin = stdout.indexOf('{\n');
    if (begin < 0) return [`${test} could not be run without any change:\n${stderr}`];
    const { passes, failures } = JSON.parse(stdout.slice(begin)) as Record<'passes' | 'failures', Title[]>;
    const failing = failures.map(({ fullTitle }) => `fails without any change: ${test}: ${fullTitle}`);
    const missing = greps.filter(grep => !passes.some(({ fullTitle }) => fullTitle.includes(grep)));
    return [...failing, ...missing.map(grep => `no such test passes: ${test}: ${grep}`)];
  });
}

/** The first error in mocha's output, shortened. */
function reasonIn(output: string): string {
  const error = /^ +(\w*Error\b.*)$/m.exec(output)?.[1] ?? output.trim().slice(-120);
  return error.replace(/\s+/g, ' ').slice(0, 120);
}

function fateOf({ file, find, replace, ...test }: Mutant): Fate {
  const path = join(ROOT, COPY, file);
  const text = readFileSync(path, 'utf8');
  const changed = text.replace(find, () => replace);
  try {
    writeFileSync(path, changed);
    if (!isJavaScript(path)) return { fate: 'broken', why: 'no JavaScript' };
    const { ended, output } = runTest(test);
    if (ended === 'passed') return { fate: 'survived', why: `no test of "${test.grep}" failed` };
    if (ended === 'hung') return hung(path, text, test);
    return { fate: ended === 'broken' ? 'broken' : 'killed', why: reasonIn(output) };
  } finally {
    writeFileSync(path, text);
  }
}

/** A hang proves nothing if the machine is too busy even for the unchanged test. */
function hung(path: string, text: string, test: Pick<Mutant, 'test' | 'grep'>): Fate {
  writeFileSync(path, text);
  return runTest(test).ended === 'passed'
    ? { fate: 'killed', why: 'hung' }
    : { fate: 'broken', why: 'the test takes too long without any change, too' };
}

function fail(faults: readonly string[]): never {
  for (const fault of faults) say(fault);
  return process.exit(1);
}

function main(): void {
  const only = new RegExp(process.argv[2] ?? '');
  const chosen = mutants.filter(({ name, file }) => only.test(`${file}: ${name}`));
  if (chosen.length === 0) fail(['no mutant has such a name']);
  const faults = chosen.flatMap(mutant => {
    const fault = faultOf(mutant);
    return fault === undefined ? [] : [`${mutant.name}: ${fault}`];
  });
  if (faults.length > 0) fail(faults);
  const until = Date.now() + TOTAL_MS;
  rmSync(join(ROOT, COPY), { recursive: true, force: true });
  cpSync(join(ROOT, 'dist'), join(ROOT, COPY), { recursive: true });
  // The handlers of the copy import 'coinslot' from the copy, too.
  const exported = { '.': './src/shop/for-handlers.js' };
  writeFileSync(
    join(ROOT, COPY, 'package.json'),
    JSON.stringify({ name: 'coinslot', type: 'module', exports: exported }),
  );
  try {
    const failing = faultsUnchanged(chosen);
    if (failing.length > 0) fail(failing);
    const fates: Record<Fate['fate'], number> = { killed: 0, survived: 0, broken: 0 };
    for (const mutant of chosen) {
      if (Date.now() > until) fail([`not done within ${TOTAL_MS / 60_000} minutes`]);
      const began = Date.now();
      const { fate, why } = fateOf(mutant);
      fates[fate] += 1;
      say(`${fate}  ${mutant.file}: ${mutant.name} (${((Date.now() - began) / 1000).toFixed(1)} s: ${why})`);
    }
    say(
      `${fates.killed} killed, ${fates.survived} survived${fates.broken ? `, ${fates.broken} broken` : ''}`,
    );
    if (fates.killed < chosen.length) process.exitCode = 1;
  } finally {
    rmSync(join(ROOT, COPY), { recursive: true, force: true });
  }
}

main();
