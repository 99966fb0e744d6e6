import { execFileSync } from 'node:child_process';
import { readFileSync, realpathSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Cuts a release. Run by `make release VERSION=…`: dates the Unreleased section of CHANGELOG.md, and updates the
 * version everywhere. It commits nothing.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/;
const HEADING = /^## (\d+\.\d+\.\d+)(?: \((\d{4}-\d{2}-\d{2})\))?$/m;
/** The names of packed files (`npm pack`) in the documentation. */
export const PACKED = /\bcoinslot(-sandbox)?-(\d+\.\d+\.\d+)\.tgz\b/g;
const UNRELEASED = '## Unreleased\n';

type Json = Record<string, unknown>;

/** The newest release in a changelog. */
export function newestRelease(changelog: string): string {
  const version = HEADING.exec(changelog)?.[1];
  if (version === undefined) throw new Error('CHANGELOG.md names no release');
  return version;
}

function isNewer(version: string, than: string): boolean {
  const [a, b] = [version, than].map(each => VERSION.exec(each)?.slice(1).map(Number) ?? []);
  const at = a?.findIndex((number, index) => number !== b?.[index]) ?? -1;
  return at >= 0 && (a?.[at] ?? 0) > (b?.[at] ?? 0);
}

/** @throws Error that says why this release can't be cut */
export function datedChangelog(changelog: string, version: string, day: string): string {
  if (!VERSION.test(version)) throw new Error(`${version || 'no version'}: say for example VERSION=1.2.0`);
  const newest = newestRelease(changelog);
  if (!isNewer(version, newest)) throw new Error(`${version} is not newer than ${newest}`);
  const [before, after] = changelog.split(UNRELEASED);
  if (before === undefined || after === undefined || !/^- /m.test(after.split(/^## /m)[0] ?? ''))
    throw new Error('CHANGELOG.md has nothing under Unreleased');
  return `${before}${UNRELEASED}\n## ${version} (${day})\n${after}`;
}

/** A package.json or a lock file with another version of our packages. */
export function withVersion(text: string, from: string, version: string): string {
  const json = JSON.parse(text) as Json;
  const { '': own, ...others } = (json['packages'] ?? {}) as Record<string, Json>;
  const ours = Object.entries(others).flatMap(([path, each]) =>
    path.includes('node_modules/') ? [] : [each],
  );
  for (const each of [json, ...(own ? [own] : []), ...ours]) {
    if (each['version'] === from) each['version'] = version;
    const peers = each['peerDependencies'] as Json | undefined;
    if (peers?.['coinslot'] === from) peers['coinslot'] = version;
  }
  return `${JSON.stringify(json, undefined, 2)}\n`;
}

/** Every JSON file with our version: the package.json and package-lock.json files in git. */
export function manifestsOf(root: string): string[] {
  return execFileSync('git', ['ls-files', '*package.json', '*package-lock.json'], {
    cwd: root,
    encoding: 'utf8',
  })
    .trim()
    .split('\n');
}

function rewrite(file: string, change: (text: string) => string): void {
  const path = join(ROOT, file);
  const text = readFileSync(path, 'utf8');
  const changed = change(text);
  if (changed !== text) writeFileSync(path, changed);
}

function cut(version: string): void {
  const day = new Date().toISOString().slice(0, 10);
  const from = newestRelease(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'));
  rewrite('CHANGELOG.md', text => datedChangelog(text, version, day));
  for (const file of manifestsOf(ROOT)) rewrite(file, text => withVersion(text, from, version));
  rewrite('openapi.yaml', text => text.replace(/^( {2}version: ).*$/m, `$1${version}`));
  rewrite('docs/tutorial/sell-your-own.md', text => text.replaceAll(PACKED, `coinslot$1-${version}.tgz`));
  // The installed packages have not changed, so make need not install them again.
  const now = new Date();
  utimesSync(join(ROOT, 'node_modules/.installed'), now, now);
  process.stdout.write(`CHANGELOG.md, openapi.yaml and the manifests say ${version}\n`);
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  cut(process.argv[2] ?? '');
