import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { MINT, NETWORK, PAY_TO } from './terms.js';

/** Every server, stub and load generator is a process of its own. Servers run on one core, everything else on another. */

const HERE = fileURLToPath(new URL('./', import.meta.url));
const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** On the repository's disk, because fsync costs nothing in an in-memory file system. */
const RUN = join(HERE, '.run');
const START_DEADLINE_MS = 30_000;
const END_DEADLINE_MS = 10_000;

export const SERVER_CORE = '0';
export const LOAD_CORE = '1';
export const PINNED =
  process.platform === 'linux' && availableParallelism() > 1 && existsSync('/usr/bin/taskset');

/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** @param {string | null} core @param {string[]} args @param {object} options */
function spawnNode(core, args, options) {
  const command = core !== null && PINNED ? ['taskset', '-c', core, process.execPath] : [process.execPath];
  const child = spawn(command[0], [...command.slice(1), ...args], options);
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Empties the folder for the servers' files. */
export function cleanRuns() {
  rmSync(RUN, { recursive: true, force: true });
  mkdirSync(RUN, { recursive: true });
}

/** @param {string} name @returns {string} a fresh folder on the repository's disk */
export function runFolder(name) {
  const folder = join(RUN, `${name}-${Math.random().toString(36).slice(2, 8)}`);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** @returns {Promise<number>} */
export async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}

/** A child process that is controlled over IPC: the stubs, the load generator. */
export class Partner {
  #child;
  #queue = Promise.resolve();

  /** @param {string} script in this folder @param {string | null} core null: any */
  constructor(script, core = LOAD_CORE) {
    this.#child = spawnNode(core, [join(HERE, script)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  /** The next message from the child. @returns {Promise<object>} */
  async hears() {
    const [message] = await once(this.#child, 'message');
    return message;
  }

  /** @param {object} job @returns {Promise<import('./load.js').Result>} */
  ask(job) {
    const asked = this.#queue.then(async () => {
      this.#child.send(job);
      const { result, error } = await this.hears();
      if (error) throw new Error(`the load generator failed: ${error}`);
      return result;
    });
    this.#queue = asked.catch(() => undefined);
    return asked;
  }

  end() {
    this.#child.disconnect();
  }
}

/** @param {{ port: number, path: string, method?: string, body?: string, headers?: object }} what */
export function fetchOnce({ port, path, method = 'POST', body = '', headers = {} }) {
  return new Promise((resolve, reject) => {
    const all = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers };
    const asked = request({ port, host: '127.0.0.1', path, method, headers: all, agent: false }, response => {
      const chunks = [];
      response.on('data', chunk => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        const { statusCode: status, rawHeaders } = response;
        resolve({ status, rawHeaders, body: Buffer.concat(chunks) });
      });
    });
    asked.once('error', reject);
    asked.end(body);
  });
}

/** A running server. */
export class Server {
  /** @param {{ name: string, child: import('node:child_process').ChildProcess, port: number, log: string, folder: string }} parts */
  constructor({ name, child, port, log, folder }) {
    this.name = name;
    this.child = child;
    this.port = port;
    this.log = log;
    this.folder = folder;
    /** The number of the next payment that this server has not seen. */
    this.nextPayment = 0;
    /** The server's payment challenges, by path. @type {Map<string, object>} */
    this.challenges = new Map();
  }

  /** @param {string} path @returns {Promise<object>} the payment challenge of the path, as a buyer reads it from the header */
  async challenge(path) {
    const known = this.challenges.get(path);
    if (known) return known;
    const { status, rawHeaders } = await fetchOnce({ port: this.port, path, body: '{}' });
    const at = rawHeaders.findIndex(name => name.toLowerCase() === 'payment-required');
    if (status !== 402 || at < 0) throw new Error(`${this.name} answered ${status} instead of a challenge`);
    const challenge = JSON.parse(Buffer.from(rawHeaders[at + 1], 'base64').toString('utf8'));
    this.challenges.set(path, challenge);
    return challenge;
  }

  /** Resident memory in MB; undefined on systems without /proc. */
  memory() {
    const status = readProc(this.child.pid, 'status');
    const kilobytes = /VmRSS:\s+(\d+) kB/.exec(status ?? '')?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
  }

  /** Processor time used so far, in seconds; undefined on systems without /proc. */
  cpuSeconds() {
    const fields = statOf(this.child.pid);
    return fields && (Number(fields[11]) + Number(fields[12])) / 100;
  }

  async stop() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), END_DEADLINE_MS);
    await once(this.child, 'exit');
    clearTimeout(late);
  }
}

/** @param {number | undefined} pid @param {string} file */
function readProc(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}

/** @param {number | undefined} pid @returns {string[] | undefined} the fields of /proc/<pid>/stat, starting with the state */
export const statOf = pid =>
  readProc(pid, 'stat')
    ?.replace(/^.*\) /, '')
    .split(' ');

/**
 * Starts a server and waits until it answers unpaid and paid calls.
 * @param {{ name: string, script: string, env: object, probe?: string, core?: string | null, nodeArgs?: string[], folder?: string }} what
 *   `probe`: a path that is answered with 402 or 200 once the server is ready; `folder`: where it runs and keeps its state
 * @returns {Promise<{ server: Server, startMs: number, startCpu: number | undefined, readyMs: number }>} `startMs`: from the
 *   start of the process to its first answer; `startCpu`: the processor time in seconds that it had used by then; `readyMs`: from the start
 *   of the process to its first answer to a payment
 */
export async function startServer({
  name,
  script,
  env,
  probe = '/v1/sol-token-brief',
  core = SERVER_CORE,
  nodeArgs = [],
  folder = runFolder(name.replace(/\W/g, '')),
}) {
  const port = await freePort();
  const log = join(folder, 'server.log');
  const out = openSync(log, 'a');
  const began = performance.now();
  const child = spawnNode(core, [...nodeArgs, script], {
    cwd: folder,
    stdio: ['ignore', out, out],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env, PORT: String(port), STATE_DIR: folder },
  });
  const server = new Server({ name, child, port, log, folder });
  while (performance.now() - began < START_DEADLINE_MS) {
    if (child.exitCode !== null) break;
    const answer = await fetchOnce({ port, path: probe, body: '{}' }).catch(() => undefined);
    if (answer && (answer.status === 402 || answer.status === 200)) {
      const startMs = performance.now() - began;
      const startCpu = server.cpuSeconds();
      // An invalid payment, which every server reads and refuses.
      await fetchOnce({ port, path: probe, body: '{}', headers: { 'payment-signature': 'e30=' } });
      return { server, startMs, startCpu, readyMs: performance.now() - began };
    }
    await new Promise(resolve => setTimeout(resolve, 2));
  }
  throw new Error(`${name} did not start:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
}

/** @typedef {{ facilitator: string, slowFacilitator: string, rpc: string, slowRpc: string, model: string, market: string }} Stubs */

/**
 * Starts our server as users do: the built program, with its ledger on disk (fsync) and its log in a file.
 * @param {Stubs} stubs
 * @param {{ slow?: boolean, model?: boolean, root?: string, shop?: string, name?: string, probe?: string, env?: object, folder?: string, core?: string | null, nodeArgs?: string[] }} how
 */
export async function startOurs(
  stubs,
  {
    slow = false,
    model = false,
    root = ROOT,
    shop = root,
    env = {},
    folder = runFolder('coinslot'),
    name = 'coinslot',
    ...rest
  } = {},
) {
  const { rpc: rpcUrl, market: marketUrl } = stubs;
  writeFileSync(
    join(folder, 'sandbox.json'),
    JSON.stringify({ id: 'bench', rpcUrl, marketUrl, mints: { classic: MINT } }),
  );
  return startServer({
    folder,
    name,
    script: join(root, 'dist/src/main.js'),
    env: {
      NETWORK: 'sandbox',
      SHOP_DIR: shop,
      SOLANA_RPC_URL: slow ? stubs.slowRpc : stubs.rpc,
      FACILITATOR_URL: slow ? stubs.slowFacilitator : stubs.facilitator,
      PAY_TO,
      ...(model ? { SUMMARIZER_URL: stubs.model, SUMMARIZER_MODEL: 'stub' } : {}),
      ...env,
    },
    ...rest,
  });
}

/** Builds a shop that sells three HTTP APIs and has no handlers. @returns {string} its folder */
export function shopOfApis() {
  const folder = runFolder('apis');
  copyFileSync(join(ROOT, 'examples/petstore/openapi.yaml'), join(folder, 'openapi.yaml'));
  execFileSync(process.execPath, [join(ROOT, 'src/cli/coinslot.js'), 'build'], { cwd: folder });
  return folder;
}

/** @param {'express' | 'hono'} name @param {Stubs} stubs */
export async function startPeer(
  name,
  stubs,
  { slow = false, work = 'instant', answerFile = '', ...rest } = {},
) {
  return startServer({
    name: `@x402/${name}`,
    script: join(HERE, `peers/${name}.js`),
    env: {
      NETWORK_ID: NETWORK,
      PAY_TO,
      FACILITATOR_URL: slow ? stubs.slowFacilitator : stubs.facilitator,
      SOLANA_RPC_URL: slow ? stubs.slowRpc : stubs.rpc,
      SUMMARIZER_URL: stubs.model,
      WORK: work,
      ANSWER_FILE: answerFile,
      NODE_ENV: 'production',
    },
    ...rest,
  });
}

/** Starts a server with only the speech engine. */
export async function startEngine() {
  return startServer({
    name: 'the engine alone',
    script: join(HERE, 'peers/engine.js'),
    env: {},
    probe: '/',
  });
}

/** @param {'bare' | 'fastify'} name @param {string} fixedFile */
export async function startFixed(name, fixedFile) {
  return startServer({
    name: name === 'bare' ? 'node:http' : 'fastify',
    script: join(HERE, `peers/${name}.js`),
    env: { FIXED_FILE: fixedFile, NODE_ENV: 'production' },
  });
}

export const MINT_BODY = JSON.stringify({ mint: MINT });

/** @returns {string} the git revision that is measured */
export function revision() {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}
