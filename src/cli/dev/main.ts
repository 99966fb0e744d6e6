import '../../rails/solana/silence-bigint-warning.js';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig, type Config } from '../../config.js';
import { startCommand } from '../../config/command-line.js';
import { ConfigFault } from '../../config/setting-reader.js';
import { spawnConfigured } from '../../endpoints/endpoints.js';
import { findFreePort } from '../../http/listen.js';
import { hostInUrl } from '../../net/host-names.js';
import { BuildFault } from '../build/shop-compilers.js';
import { writeErr, writeOut } from '../terminal.js';
import { DevShop } from './dev-shop.js';
import { ShopBuild } from './shop-build.js';
import { Versions } from './versions.js';
import { watchFolders } from './watch-folders.js';

const USAGE = `Usage: coinslot dev

Sells the shop in the current folder in the sandbox, and builds and sells it again whenever its contract or its handlers are saved.
Prints what is sold and a command that buys it. A fault is printed with its file and line, and the previous version keeps selling. The
sandbox stays up: its chain, its wallet, the ledger and the port are the same for every version. Ctrl-C ends everything.

It takes no options; its settings come from the environment when it starts.`;

type Running = { sandbox?: { stop(): Promise<void> }; versions?: Versions; unwatch?: () => void };

/** @throws ConfigFault, BuildFault */
async function dev(config: Config, running: Running): Promise<void> {
  if (config.network.name !== 'sandbox')
    throw new ConfigFault(
      `NETWORK: coinslot dev sells in the sandbox only, since it restarts the server at every save. Leave NETWORK out, or sell with ${startCommand()}.`,
    );
  const { shopDir, stateDir, host } = config;
  const port = await findFreePort(host, config.port);
  const url = config.publicUrl ?? `http://${hostInUrl(host)}:${port}`;
  const copy = copyOf(shopDir, stateDir);
  const build = new ShopBuild(shopDir, copy);
  const endpoints = await sandboxOf(config, url, running);
  const env = { ...process.env, ...endpoints, PORT: String(port), SHOP_DIR: copy };
  const versions = new Versions(copy, env, () => shop.crashed());
  running.versions = versions;
  const shop = new DevShop({ folder: shopDir, url, build, versions });
  const changed = (paths: string[]): void => void shop.changed(paths).catch(fail);
  running.unwatch = watchFolders(shopDir, stateDir, changed);
  changed([]);
}

/** Makes a folder with the contract and the compiled shop that are being sold. */
function copyOf(shopDir: string, stateDir: string): string {
  const copy = join(stateDir, 'dev');
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(join(copy, 'dist'), { recursive: true, mode: 0o700 });
  for (const part of ['handlers', join('dist', 'handlers')])
    symlinkSync(join(shopDir, part), join(copy, part), 'junction');
  return copy;
}

/**
 * Starts the sandbox, unless SOLANA_RPC_URL is set. @returns the settings that make a server
 * use it
 */
async function sandboxOf(
  config: Config,
  publicUrl: string,
  running: Running,
): Promise<Record<string, string>> {
  if (config.rpcUrls.length > 0) return {};
  const onExit = (reason: string): void => fail(new ConfigFault(reason));
  const sandbox = await spawnConfigured(config, { publicUrl, onExit }, 'coinslot dev');
  running.sandbox = sandbox;
  const { rpcUrl, facilitatorUrl, payTo } = sandbox.info;
  return {
    SOLANA_RPC_URL: rpcUrl,
    ...(config.facilitators.length > 0 ? {} : { FACILITATOR_URL: facilitatorUrl }),
    PAY_TO: config.payTo ?? payTo,
  };
}

const running: Running = {};
let stopping = false;

/** The first signal lets the server finish its calls; the second ends it immediately. */
async function stop(status: number): Promise<void> {
  const again = stopping;
  stopping = true;
  running.unwatch?.();
  await running.versions?.close(again ? 'SIGKILL' : 'SIGTERM');
  await running.sandbox?.stop();
  process.exit(status);
}

function fail(error: unknown): void {
  if (stopping) return;
  const known = error instanceof ConfigFault || error instanceof BuildFault;
  writeErr(`${known ? error.message : String((error as Error)?.stack ?? error)}\n`);
  void stop(1);
}

if (process.argv.length > 2) {
  writeOut(`${USAGE}\n`);
  process.exitCode = process.argv[2] === '--help' ? 0 : 2;
} else {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(0));
  try {
    await dev(readConfig(), running);
  } catch (error) {
    fail(error);
  }
}
