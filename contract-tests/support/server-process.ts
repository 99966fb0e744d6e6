import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Connection, Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js';
import { countingProxy, type CountingProxy } from './proxy.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const READY_MS = 60_000;
const STACK_TRACE = /^\s+at .+:\d+:\d+\)?$/m;

export type Environment = Record<string, string>;
type ProcessExit = { code: number | null; signal: NodeJS.Signals | null };

/** A server process. */
export type Served = {
  url: string;
  child: ChildProcess;
  ended: Promise<ProcessExit>;
  kill(): Promise<ProcessExit>;
};

export let folder: string;
export let sandbox: Sandbox;
export let rpc: CountingProxy;
export let facilitator: CountingProxy;
export let connection: Connection;
export let buyer: Keypair;

export const children: ChildProcess[] = [];

export const keypairOf = async (stateDir: string): Promise<Keypair> =>
  Keypair.fromSecretKey(
    Uint8Array.from(JSON.parse(await readFile(join(stateDir, 'buyer.json'), 'utf8')) as number[]),
  );

/** A server with its own state folder that reaches the chain and the facilitator through the proxies. */
export const proxied = (name: string, more: Environment = {}): Environment => ({
  STATE_DIR: join(folder, name),
  PORT: '0',
  SOLANA_RPC_URL: rpc.url,
  FACILITATOR_URL: facilitator.url,
  PAY_TO: sandbox.info.payTo,
  ...more,
});

function launch(
  env: Environment,
  under: string[] = [],
): {
  child: ChildProcess;
  lines: AsyncIterable<string>;
  said: () => string;
} {
  const [command = process.execPath, ...options] = [...under, process.execPath, MAIN];
  const child = spawn(command, options, {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // In a process group of its own, because the command may run the server as its child.
    detached: under.length > 0,
  });
  children.push(child);
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  return { child, lines: createInterface(child.stdout), said: () => said };
}

/** Ends a server and the command that runs it. */
function kill(child: ChildProcess): void {
  child.kill('SIGKILL');
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The process does not lead a group, or has ended.
  }
}

/**
 * Starts a server and waits until it accepts payments. @param hear is called with each line that it logs
 * @param under a command that runs it, such as `faketime -f +2d`
 */
export async function serve(
  env: Environment,
  hear: (line: string) => void = () => {},
  under: string[] = [],
): Promise<Served> {
  const { child, lines, said } = launch(env, under);
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  const timer = setTimeout(() => kill(child), READY_MS);
  for await (const line of lines) {
    hear(line);
    const url = /ready to be paid at (http[^"]+)/.exec(line)?.[1];
    if (url === undefined) continue;
    clearTimeout(timer);
    createInterface(child.stdout!).on('line', hear);
    const end = (): Promise<ProcessExit> => {
      kill(child);
      return ended;
    };
    return { url, child, ended, kill: end };
  }
  throw new Error(`the server ended: ${said()}`);
}

/** Runs a server that is expected to refuse to start, and returns its output. */
export async function refusedStart(env: Environment, under: string[] = []): Promise<string> {
  const { child, said } = launch(env, under);
  child.stdout?.resume();
  const timer = setTimeout(() => kill(child), READY_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  expect(code, said()).to.equal(1);
  expect(said()).to.not.match(STACK_TRACE);
  return said();
}

/** Gives the tests of a suite one chain and one facilitator, each behind a proxy, and ends the servers of each test. */
export function allOnOneChain(chain: { slotMs?: number } = {}): void {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coinslot-crash-'));
    const stateDir = join(folder, 'chain');
    sandbox = await startSandbox({ stateDir, rpcPort: 0, facilitatorPort: 0, ...chain });
    rpc = await countingProxy(sandbox.rpc.url);
    facilitator = await countingProxy(sandbox.facilitator.url);
    connection = new Connection(sandbox.rpc.url, 'confirmed');
    buyer = await keypairOf(stateDir);
  });
  after(async () => {
    await Promise.all([rpc.close(), facilitator.close()]);
    await sandbox.close();
    await rm(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    rpc.intervene(undefined);
    facilitator.intervene(undefined);
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      kill(child);
      await once(child, 'exit');
    }
  });
}
