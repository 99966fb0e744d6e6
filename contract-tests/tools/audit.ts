import { execFile } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { manifestsOf } from './release.js';

/**
 * Asks the registry for advisories on every package of every lock file. Run by `make audit`. Accepted advisories, with
 * the reason and the date until which they are accepted, are in audit-accepted.yaml. The last line is `N passed, N
 * failed, N skipped`, counting lock files.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const AUDIT_MS = 120_000;

export type Accepted = { id: string; reason: string; until: string };
type Advisory = { name: string; title: string; url: string; severity: string };
type Report = { message?: string; vulnerabilities?: Record<string, { via: (Advisory | string)[] }> };
export type Audited = { kind: 'passed' | 'failed' | 'skipped'; lines: string[] };

/** The output of `npm audit` for a folder. npm exits with an error if it finds anything, so the output decides. */
function ask(folder: string, env: NodeJS.ProcessEnv): Promise<Report> {
  const args = ['audit', '--json', '--package-lock-only', '--loglevel=error'];
  return new Promise(resolve => {
    execFile('npm', args, { cwd: folder, env, timeout: AUDIT_MS, maxBuffer: 64 << 20 }, (error, stdout) => {
      try {
        resolve(JSON.parse(stdout) as Report);
      } catch {
        resolve({ message: error?.message.split('\n')[0] ?? 'npm audit printed no JSON' });
      }
    });
  });
}

/** @param today as YYYY-MM-DD */
export async function audit(
  folder: string,
  accepted: readonly Accepted[],
  today: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Audited> {
  const { vulnerabilities, message } = await ask(folder, env);
  if (vulnerabilities === undefined)
    return {
      kind: 'skipped',
      lines: [`not audited, the registry gave no advisories: ${message ?? 'no reason'}`],
    };
  const found = new Map<string, Advisory>();
  for (const { via } of Object.values(vulnerabilities))
    for (const each of via)
      if (typeof each === 'object') found.set(each.url.split('/').at(-1) ?? each.url, each);
  let failed = false;
  const lines = [...found].map(([id, { name, severity, title }]) => {
    const known = accepted.find(each => each.id === id);
    if (known && known.until >= today)
      return `${id} ${name}, ${severity}: accepted until ${known.until}: ${known.reason}`;
    failed = true;
    return `${id} ${name}, ${severity}: ${title}${known ? ` (was accepted until ${known.until})` : ''}`;
  });
  return { kind: failed ? 'failed' : 'passed', lines };
}

export function readAccepted(): Accepted[] {
  const file = join(ROOT, 'contract-tests/tools/audit-accepted.yaml');
  return (parse(readFileSync(file, 'utf8')) ?? []) as Accepted[];
}

async function main(): Promise<void> {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const today = new Date().toISOString().slice(0, 10);
  const folders = manifestsOf(ROOT)
    .filter(file => file.endsWith('package-lock.json'))
    .map(dirname);
  const audited = await Promise.all(folders.map(folder => audit(join(ROOT, folder), readAccepted(), today)));
  for (const [index, { kind, lines }] of audited.entries()) {
    counts[kind] += 1;
    process.stdout.write(`${folders[index]}: ${kind}\n${lines.map(line => `  ${line}\n`).join('')}`);
  }
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
  process.exitCode = counts.failed > 0 ? 1 : 0;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
