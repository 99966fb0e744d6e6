import type { Json } from '../../src/contract/json.js';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { acceptedChanges, breaksRelease } from './breaking.js';
import { record, recordMissing } from './record.js';

/** Compares openapi.yaml with the released contract: our own check of prices and schemas, then oasdiff if Go is installed. */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const RELEASED = join(ROOT, 'contract-tests', 'released', 'openapi-1.0.0.yaml');
const CONTRACT = join(ROOT, 'openapi.yaml');
// Findings of oasdiff that are not breaking, each with the reason.
const IGNORED = join(ROOT, 'contract-tests', 'tools', 'oasdiff-ignore.txt');
const BIN = join(ROOT, 'contract-tests', 'tools', 'bin');
// The newest version whose dependencies are all on the Go module proxy.
const OASDIFF = 'v1.30.0';
const INSTALL_DEADLINE_MS = 600_000;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function resultOf(faults: string[]): string {
  if (faults.length > 0) return `${faults.length} breaking changes`;
  return `no breaking change except ${acceptedChanges().length} accepted ones`;
}

/** The path of oasdiff, installed if necessary, or a sentence that says why it can't be installed. */
function install(): { path: string } | string {
  const path = join(BIN, 'oasdiff');
  if (existsSync(path)) return { path };
  if (spawnSync('go', ['version']).status !== 0) return 'Go is not installed';
  say(`Installing oasdiff ${OASDIFF} into contract-tests/tools/bin`);
  const { status, stderr } = spawnSync('go', ['install', `github.com/oasdiff/oasdiff@${OASDIFF}`], {
    env: { ...process.env, GOBIN: BIN },
    encoding: 'utf8',
    timeout: INSTALL_DEADLINE_MS,
  });
  return status === 0 ? { path } : `go install failed: ${stderr.trim().split('\n').at(-1)}`;
}

function runOasdiff(path: string): boolean {
  const run = spawnSync(
    path,
    ['breaking', RELEASED, CONTRACT, '--fail-on', 'WARN', '--err-ignore', IGNORED],
    { encoding: 'utf8' },
  );
  say(`oasdiff: ${(run.stdout + run.stderr).trim()}`);
  record('oasdiff', {
    tool: 'oasdiff',
    version: OASDIFF,
    checks: 'no breaking change since the released contract',
    cases: 'openapi.yaml against openapi-1.0.0.yaml',
    result: run.status === 0 ? resultOf([]) : 'breaking changes',
  });
  return run.status === 0;
}

function main(): void {
  const faults = breaksRelease(parse(readFileSync(CONTRACT, 'utf8')) as Json);
  for (const { change, why } of acceptedChanges()) say(`accepted: ${change}\n  ${why}`);
  for (const fault of faults) say(`breaking: ${fault}`);
  record('breaking', {
    tool: 'Our comparison of contracts',
    version: 'contract-tests/tools/breaking.ts',
    checks: 'no change of a price, path, field, header or limit breaks a client',
    cases: 'openapi.yaml against openapi-1.0.0.yaml',
    result: resultOf(faults),
  });
  let good = faults.length === 0;
  const oasdiff = install();
  if (typeof oasdiff === 'string') {
    recordMissing('oasdiff', 'oasdiff', oasdiff);
    say(`not run: oasdiff, ${oasdiff}; the comparison above is our own`);
  } else {
    good = runOasdiff(oasdiff.path) && good;
  }
  say(good ? 'Nothing else that clients of 1.0.0 rely on has changed.' : 'Clients of 1.0.0 would break.');
  process.exitCode = good ? 0 : 1;
}

main();
