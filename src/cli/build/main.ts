import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { writeContract } from '../../contract/compile-contract.js';
import { ContractFault, type Contract } from '../../contract/contract.js';
import { headerAdvice } from '../../methods/x402/header-room.js';
import type { Terms } from '../../methods/x402/requirements.js';
import { serviceOf } from '../../methods/x402/service.js';
import { NETWORKS } from '../../rails/solana/networks.js';
import { loadShop, shopFiles } from '../../shop/load-shop.js';
import { nameWarning } from '../../shop/shop-name.js';
import { installedProgram } from '../installed-program.js';
import { writeErr, writeOut } from '../terminal.js';
import { writeCollection } from './bruno-collection.js';
import { BuildFault, contractTypes, notInstalled, orphansOf } from './shop-compilers.js';

const USAGE = `Usage: coinslot build

Builds the shop in the current folder: checks openapi.yaml, completes it with everything that the server adds, and writes the result
to generated/openapi.json, its types to generated/openapi.d.ts and a Bruno collection to generated/bruno/. Then compiles handlers/ and
test/ into dist/, and checks that every operation is served. A shop without handlers/ needs no compiler.`;

const folder = process.cwd();
const files = shopFiles(folder);

async function writeTypes(): Promise<void> {
  const types = await contractTypes(folder, readFileSync(files.whole, 'utf8'));
  mkdirSync(dirname(files.types), { recursive: true });
  writeFileSync(files.types, types);
}

function compile(): void {
  const compiler = installedProgram(folder, 'typescript', 'tsc');
  if (!compiler) throw notInstalled('typescript');
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 300_000,
  });
  if (status !== 0) throw new BuildFault(`${stdout}${stderr}`.trim() || 'tsc did not end');
  for (const orphan of orphansOf(folder)) rmSync(orphan);
}

/** The settings that affect the size of documents. If PUBLIC_URL is not set, a URL of typical length takes its place. */
function termsOf(contract: Contract): Terms {
  const { caip2: network, v1: v1Network, usdcMint: asset } = NETWORKS.mainnet;
  const publicUrl = process.env['PUBLIC_URL'] ?? 'https://pay.example.com';
  return { network, v1Network, asset, payTo: asset, publicUrl, service: serviceOf(contract, publicUrl) };
}

async function build(): Promise<void> {
  if (!existsSync(files.contract))
    throw new BuildFault(
      `There is no openapi.yaml in ${folder}: go to the folder of your shop, or run coinslot init.`,
    );
  const contract = await writeContract(folder);
  const { paid } = contract;
  if (existsSync(files.handlers)) {
    await writeTypes();
    compile();
  }
  const shop = await loadShop(folder);
  writeCollection(folder, contract);
  const warning = nameWarning(shop, folder);
  for (const each of [
    ...(warning === undefined ? [] : [warning]),
    ...headerAdvice(shop.contract, termsOf(shop.contract)),
  ])
    writeErr(`openapi.yaml: ${each}\n`);
  writeOut(`Built: ${paid.map(({ id, price }) => `${id} (${price.shown})`).join(', ') || 'nothing'}\n`);
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
