import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { writeContract } from '../../contract/compile-contract.js';
import { ContractFault } from '../../contract/contract.js';
import { loadShop, shopFiles } from '../../shop/load-shop.js';
import { installedProgram } from '../installed-program.js';
import { writeErr, writeOut } from '../terminal.js';
import { writeCollection } from './bruno-collection.js';

const USAGE = `Usage: coinslot build

Builds the shop in the current folder: checks openapi.yaml, writes it with everything that the server adds to generated/openapi.json,
its types to generated/openapi.d.ts and a Bruno collection to generated/bruno/, compiles handlers/ and test/ into dist/, and checks
that every operation is served. A shop without handlers/ needs no compiler.`;

/** What compiles handlers: development packages of the shop, so that a server that runs it needs no compiler. */
const COMPILERS = { 'openapi-typescript': 'openapi-typescript', tsc: 'typescript' } as const;

class BuildFault extends Error {}

const folder = process.cwd();
const files = shopFiles(folder);

function run(tool: keyof typeof COMPILERS, args: string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [programOf(tool), ...args], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 300_000,
  });
  if (status !== 0) throw new BuildFault(`${stdout}${stderr}`.trim() || `${tool} did not end`);
}

/** @throws BuildFault if the package is not installed in the shop's folder, or in one above it */
function programOf(tool: keyof typeof COMPILERS): string {
  const name = COMPILERS[tool];
  const program = installedProgram(folder, name, tool);
  if (program) return program;
  throw new BuildFault(
    `The package ${name} is not installed, and handlers/ can't be compiled without it: npm install --save-dev ${name}`,
  );
}

/** What was compiled from a file that is gone would still be loaded. */
function removeOrphans(): void {
  for (const name of ['handlers', 'test']) {
    const compiled = join(folder, 'dist', name);
    if (!existsSync(compiled)) continue;
    for (const entry of readdirSync(compiled, { recursive: true, encoding: 'utf8' })) {
      const source = join(folder, name, entry.replace(/\.js(\.map)?$/, '.ts'));
      if (/\.js(\.map)?$/.test(entry) && !existsSync(source)) rmSync(join(compiled, entry));
    }
  }
}

async function build(): Promise<void> {
  if (!existsSync(files.contract))
    throw new BuildFault(
      `There is no openapi.yaml in ${folder}: go to the folder of your shop, or run coinslot init.`,
    );
  const contract = await writeContract(folder);
  const { paid } = contract;
  if (existsSync(files.handlers)) {
    run('openapi-typescript', [relative(folder, files.whole), '--output', relative(folder, files.types)]);
    run('tsc', []);
    removeOrphans();
  }
  await loadShop(folder);
  writeCollection(folder, contract);
  writeOut(`Built: ${paid.map(({ id, price }) => `${id} (${price.amount} USDC)`).join(', ') || 'nothing'}\n`);
}

if (process.argv.length > 2) {
  writeOut(`${USAGE}\n`);
  process.exitCode = process.argv[2] === '--help' ? 0 : 2;
} else {
  try {
    await build();
  } catch (error) {
    if (!(error instanceof BuildFault || error instanceof ContractFault)) throw error;
    writeErr(`${error.message}\n`);
    process.exitCode = 1;
  }
}
