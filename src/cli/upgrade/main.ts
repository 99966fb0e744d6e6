import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { breakingChanges } from '../../contract/breaking-changes.js';
import { buildContract } from '../../contract/compile-contract.js';
import { ContractFault, readCompiled } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import { programVersion } from '../../contract/program-version.js';
import { shopFiles } from '../../shop/load-shop.js';
import { BuildFault, contractTypes, notInstalled } from '../build/shop-compilers.js';
import { installedManifest, installedProgram } from '../installed-program.js';
import { writeErr, writeOut } from '../terminal.js';
import { changedParts } from './changed-parts.js';
import { notesSince } from './release-notes.js';

const USAGE = `Usage: coinslot upgrade [--from VERSION]

Shows what the installed version of Coinslot changes for the shop in the current folder, which an earlier version built. It changes
nothing. It prints the changelog's lines about contract and handlers, compares the contract that buyers see with the last build (in
generated/openapi.json), and compiles the handlers in a copy. Run it after npm install and before coinslot build.

  --from VERSION   the version that the shop was built with, if the build does not record it (those up to 1.1.0 do not)

Exit status 1: the contract can't be used or the handlers don't compile with this version.`;

const CHANGELOG = fileURLToPath(new URL('../../../../CHANGELOG.md', import.meta.url));
const COMPILE_MS = 300_000;
const MOST_LINES = 60;
/** Folders that the compiler does not need. */
const NOT_COPIED = ['node_modules', '.git', '.coinslot', 'dist'];

const folder = process.cwd();
const files = shopFiles(folder);

function section(title: string, lines: readonly string[], none: string): void {
  writeOut(`\n${title}\n`);
  for (const line of lines.slice(0, MOST_LINES)) writeOut(`  ${line}\n`);
  if (lines.length > MOST_LINES) writeOut(`  … and ${lines.length - MOST_LINES} more\n`);
  if (lines.length === 0) writeOut(`  ${none}\n`);
}

/** The two packages are parts of one program, so they must have the same version. */
function sayPackages(): void {
  const sandbox = installedManifest(folder, 'coinslot-sandbox')?.version;
  if (sandbox !== undefined && sandbox !== programVersion())
    writeOut(`coinslot-sandbox has version ${sandbox}: install version ${programVersion()} of it, too.\n`);
}

function sayNotes(since: string | undefined): void {
  const { shop, others } = notesSince(readFileSync(CHANGELOG, 'utf8'), since);
  const title = `Changes to the contract and the handlers since ${since ?? 'the release before the newest (use --from VERSION)'}:`;
  section(title, shop, 'nothing');
  writeOut(`  ${others} other changes: ${CHANGELOG}\n`);
}

/** Compiles the handlers in a copy, against the types of this version. @returns the compiler's output, if it failed */
async function compileCopy(whole: string): Promise<string | undefined> {
  const compiler = installedProgram(folder, 'typescript', 'tsc');
  if (!compiler) throw notInstalled('typescript');
  const copy = mkdtempSync(join(tmpdir(), 'coinslot-upgrade-'));
  try {
    const isCopied = (path: string): boolean => path === folder || !NOT_COPIED.includes(basename(path));
    cpSync(folder, copy, { recursive: true, filter: isCopied });
    const packages = packagesAbove(folder);
    if (packages !== undefined) symlinkSync(packages, join(copy, 'node_modules'));
    writeFileSync(shopFiles(copy).types, await contractTypes(folder, whole));
    const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, '--noEmit'], {
      cwd: copy,
      encoding: 'utf8',
      timeout: COMPILE_MS,
    });
    return status === 0 ? undefined : `${stdout}${stderr}`.trim() || 'tsc did not end';
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function packagesAbove(at: string): string | undefined {
  const packages = join(at, 'node_modules');
  if (existsSync(packages)) return packages;
  return dirname(at) === at ? undefined : packagesAbove(dirname(at));
}

function sayContract(now: Json): void {
  if (!existsSync(files.whole))
    return writeOut('\nThere is no earlier build to compare the contract with.\n');
  const old = JSON.parse(readFileSync(files.whole, 'utf8')) as Json;
  const { added, removed, changed } = changedParts(old, now);
  section('Changes since the last build that break buyers:', breakingChanges(old, now), 'nothing');
  const parts = [
    ...added.map(place => `added: ${place}`),
    ...removed.map(place => `removed: ${place}`),
    ...changed.map(place => `changed: ${place}`),
  ];
  section('Other differences in the contract that buyers see:', parts, 'nothing');
}

async function upgrade(from: string | undefined): Promise<void> {
  if (!existsSync(files.contract))
    throw new ContractFault(`There is no openapi.yaml in ${folder}: go to the folder of your shop.`);
  const since = from ?? readCompiled(pathToFileURL(files.compiled))?.by;
  writeOut(
    `Built with ${since ?? 'a version up to 1.1.0'}; this is ${programVersion()}. Nothing is changed.\n`,
  );
  sayPackages();
  sayNotes(since);
  const { contract, whole } = await buildContract(folder);
  sayContract(contract.document);
  const fault = existsSync(files.handlers) ? await compileCopy(whole) : undefined;
  if (fault !== undefined) {
    section('The handlers do not compile with this version:', fault.split('\n'), '');
    process.exitCode = 1;
    return;
  }
  writeOut(
    '\nThe shop builds with this version. Next: coinslot build, and its tests; then coinslot check.\n',
  );
  writeOut('The first start may change the ledger: back it up first (docs/how-to/upgrade.md).\n');
}

try {
  const { values } = parseArgs({
    options: { from: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) writeOut(`${USAGE}\n`);
  else await upgrade(values.from);
} catch (error) {
  const isFault = error instanceof ContractFault || error instanceof BuildFault;
  if (!isFault && !(error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) throw error;
  writeErr(`${(error as Error).message}\n`);
  process.exitCode = isFault ? 1 : 2;
}
