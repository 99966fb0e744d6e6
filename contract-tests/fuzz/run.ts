import { spawn, spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { Connection, PublicKey } from '@solana/web3.js';
import type { Contract, PricedOperation } from '../../src/contract/contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { toDecimal } from '../../src/price/amount.js';
import { record, recordMissing } from '../tools/record.js';
import { pythonEnvironment, succeeds } from '../support/python-environment.js';
import { operationIn, SOLD } from '../support/sold.js';
import { readInfo } from '../../src/config/sandbox-file.js';
import { call, openWorld, post, signFor, type Payer } from '../support/world.js';
import { stockLines, wordsForSt } from './stock-lines.js';

/**
 * Runs Schemathesis against a server in three ways: with the command of docs/how-to/testing.md, without payments, and
 * with a payment for every case. It starts a server in the sandbox, or uses the one at `URL`, to which it sends payments
 * only if it belongs to the sandbox in `STATE_DIR`. With `--install`, it only makes sure that Schemathesis is
 * installed. The last line counts the runs.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = join(ROOT, 'contract-tests', 'fuzz');
const VENV = join(FOLDER, '.venv');
const REQUIREMENTS = join(FOLDER, 'requirements.txt');
const VERSION = '4.32.5';
const IMAGE = `schemathesis/schemathesis:${VERSION}`;
/** A hanging run must not block continuous integration. */
const RUN_DEADLINE_MS = 15 * 60_000;

const MODES = ['stock', 'unpaid', 'paid'] as const;
type Mode = (typeof MODES)[number];
/**
 * The server under test, its contract, mints of its chain, and its receiver's USDC in atomic units. `payer`: the
 * sandbox that can pay it, if there is one.
 */
type Target = {
  url: string;
  contract: Contract;
  mints: string[];
  payer: (Payer & { earned(): Promise<bigint> }) | undefined;
  close(): Promise<void>;
};
/** The command that starts `st` in a folder, before its own arguments. */
type Tool = { how: string; command: (env: Record<string, string>, folder: string) => string[] };
const CHECKED: Record<Mode, string> = {
  stock: 'the command in docs/how-to/testing.md, with the settings that the server publishes, finds no fault',
  unpaid: 'every unpaid call gets its price, as the contract says',
  paid: 'every paid call is answered as the contract says, and the receipts agree with the chain',
};
/** The settings before and after those that the server publishes. Nothing is kept between runs: a run depends only on its seed. */
const UNPAID_BEFORE = 'hooks = "hooks.py"\nworkers = 1\nrequest-timeout = 10\ncontinue-on-failure = true\n\n';
const UNPAID_AFTER = '\n[cache]\nenabled = false\n\n[generation]\ndatabase = "none"\n';
type Report = {
  schemathesis_version: string;
  test_cases: { generated: number; unique_failures: number };
  errors: unknown[];
};

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** A container engine, or a local `st`, or a virtual environment of our own. @returns a sentence that says why, if none of them works */
function findTool(): Tool | string {
  // On other systems, the engine's host network is not this machine's.
  if (process.platform === 'linux' && succeeds('docker', ['info']) && hasImage()) {
    return { how: `docker ${IMAGE}`, command: dockerCommand };
  }
  const local = spawnSync('st', ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? '';
  if (/version 4\./.test(local)) return { how: 'st on the PATH', command: () => ['st'] };
  return ownEnvironment();
}

function hasImage(): boolean {
  return succeeds('docker', ['image', 'inspect', IMAGE]) || succeeds('docker', ['pull', IMAGE]);
}

function dockerCommand(env: Record<string, string>, folder: string): string[] {
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const user = ['--user', `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`];
  const place = ['-v', `${folder}:${folder}`, '-w', folder];
  return ['docker', 'run', '--rm', '--network', 'host', ...user, ...place, ...variables, IMAGE];
}

function ownEnvironment(): Tool | string {
  const made = pythonEnvironment(VENV, REQUIREMENTS, `Schemathesis ${VERSION}`);
  if ('stopped' in made) return `no docker engine, no st, and ${made.stopped}`;
  return { how: 'a virtual environment', command: () => [join(made.bin, 'st')] };
}

/** The total of the prices in the receipts of paid calls, counting each settlement once. */
class Takings {
  readonly #settled = new Map<string, bigint>();
  answers = 0;

  add({ price }: PricedOperation, receipts: string[]): void {
    this.answers += 1;
    for (const receipt of receipts) {
      const { success, transaction } = JSON.parse(Buffer.from(receipt, 'base64').toString()) as {
        success: boolean;
        transaction: string;
      };
      if (success) this.#settled.set(transaction, price.atomic);
    }
  }

  get settlements(): number {
    return this.#settled.size;
  }

  get total(): bigint {
    return [...this.#settled.values()].reduce((sum, price) => sum + price, 0n);
  }
}

/** `GET /sign?operation=…&version=…` returns the headers of a signed payment, `POST /answered` records an answer. */
async function startSigner({ payer, contract }: Target, takings: Takings): Promise<Server> {
  const answer = async (request: IncomingMessage): Promise<object> => {
    const url = new URL(request.url ?? '/', 'http://signer');
    if (url.pathname === '/sign') {
      const version = url.searchParams.get('version') === '1' ? 1 : 2;
      if (!payer) throw new Error('nobody can pay here');
      return sign(payer, operationIn(contract, url.searchParams.get('operation') ?? ''), version);
    }
    const { operation, receipts } = JSON.parse(await textOf(request)) as Answered;
    takings.add(operationIn(contract, operation), receipts);
    return {};
  };
  const server = createServer((request, response) => {
    answer(request).then(
      body => response.end(JSON.stringify(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return server;
}

type Answered = { operation: string; receipts: string[] };

/** The challenge comes before the body and the parameters are read, so any call to the operation's path gets it. */
async function sign(
  payer: Payer,
  { method, examplePath }: PricedOperation,
  version: 1 | 2,
): Promise<Record<string, string>> {
  const url = `${payer.url}${examplePath}${version === 1 ? '?x402Version=1' : ''}`;
  return signFor(payer, examplePath, version, await (method === 'GET' ? call(url) : post(url, {})));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function runTool(words: string[], env: Record<string, string>, folder: string): Promise<number> {
  const [command = '', ...args] = words;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit'],
      cwd: folder,
      timeout: RUN_DEADLINE_MS,
    });
    child.once('error', reject);
    child.once('exit', code => resolve(code ?? 1));
  });
}

/** Writes the files for `st`: the settings that the server publishes, our settings for paid cases, and our hooks. */
async function prepare(mode: Mode, folder: string, { url }: Target): Promise<void> {
  const settings = join(folder, 'schemathesis.toml');
  if (mode !== 'stock') await copyFile(join(FOLDER, 'hooks.py'), join(folder, 'hooks.py'));
  if (mode === 'paid') return copyFile(join(FOLDER, 'paid.toml'), settings);
  const published = (await call(`${url}/schemathesis.toml`)).body.toString('utf8');
  await writeFile(settings, mode === 'stock' ? published : UNPAID_BEFORE + published + UNPAID_AFTER);
}

/** The arguments for `st`. The stock run uses those of the Docker command in docs/how-to/testing.md, with this server's address. */
function wordsOf(mode: Mode, { url }: Target, cases: string, seed: string): string[] {
  const [run = '', , ...options] = wordsForSt(stockLines().docker);
  const limits = ['--max-examples', cases, '--seed', seed];
  // By default, Schemathesis makes a hundred examples of each operation.
  const stock = [...options, ...(process.env['CASES'] ? ['--max-examples', cases] : [])];
  const words = [run, `${url}/openapi.json`, ...(mode === 'stock' ? stock : limits)];
  return [...words, '--report-json-path', 'report.json'];
}

async function fuzz(mode: Mode, tool: Tool, target: Target, cases: string, seed: string): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'coinslot-fuzz-'));
  const takings = new Takings();
  const signer = await startSigner(target, takings);
  const before = await target.payer?.earned();
  try {
    await prepare(mode, folder, target);
    const env: Record<string, string> = {
      FUZZ_MINTS: target.mints.join(' '),
      PYTHONDONTWRITEBYTECODE: '1',
      HYPOTHESIS_STORAGE_DIRECTORY: folder,
    };
    if (mode === 'paid') env['FUZZ_SIGNER'] = `http://127.0.0.1:${(signer.address() as AddressInfo).port}`;
    const words = [...tool.command(env, folder), ...wordsOf(mode, target, cases, seed)];
    say(`\n== Schemathesis, ${mode}, from ${tool.how}`);
    const status = await runTool(words, env, folder);
    const earned = ((await target.payer?.earned()) ?? 0n) - (before ?? 0n);
    const report = JSON.parse(await readFile(join(folder, 'report.json'), 'utf8')) as Report;
    return judge(mode, status, report, takings, earned);
  } finally {
    signer.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Compares the receipts with the money that moved on the chain, and records the result. */
function judge(mode: Mode, status: number, report: Report, takings: Takings, earned: bigint): boolean {
  const { generated, unique_failures: failures } = report.test_cases;
  const errors = report.errors.length;
  const honest = earned === takings.total;
  const money = `${takings.settlements} settlements, ${toDecimal(earned)} USDC in total`;
  const paid = mode === 'paid' ? `, ${takings.answers} paid` : '';
  say(`${mode}: ${generated} cases${paid}, ${money}`);
  if (!honest)
    say(
      `FAILED: the receipts add up to ${toDecimal(takings.total)} USDC, the transfers on the chain to ${toDecimal(earned)}`,
    );
  const good = status === 0 && honest;
  record(`schemathesis-${mode}`, {
    tool: `Schemathesis, ${mode}`,
    version: report.schemathesis_version,
    checks: CHECKED[mode],
    cases: `${generated} calls${paid}, ${money}`,
    result: good
      ? 'no failure'
      : `${failures} failures, ${errors} errors${honest ? '' : ', receipts and chain disagree'}`,
  });
  return good;
}

/** A new server in the sandbox. */
async function ownTarget(): Promise<Target> {
  const world = await openWorld({ HOLD_SECONDS: '60' });
  const { classic, noAuthorities, token2022 } = world.sandbox.info.mints;
  const mints = [classic, noAuthorities, token2022];
  return { url: world.url, contract: SOLD, mints, payer: world, close: () => world.close() };
}

/** The server at a URL. */
async function targetAt(url: string): Promise<Target> {
  const contract = parseContract((await call(`${url}/openapi.json`)).body.toString('utf8'), 'openapi.json');
  const stateDir = process.env['STATE_DIR'] ?? join(ROOT, '.coinslot');
  const info = readInfo(stateDir);
  const close = async (): Promise<void> => {};
  if (info?.url !== url) return { url, contract, mints: [], payer: undefined, close };
  const { classic, noAuthorities, token2022 } = info.mints;
  const connection = new Connection(info.rpcUrl, 'confirmed');
  const receiver = getAssociatedTokenAddressSync(
    new PublicKey(info.usdcMint),
    new PublicKey(info.payTo),
    true,
  );
  const payer = {
    url,
    buyer: Uint8Array.from(JSON.parse(await readFile(join(stateDir, 'buyer.json'), 'utf8')) as number[]),
    sandbox: { rpc: { url: info.rpcUrl } },
    earned: async () => BigInt((await connection.getTokenAccountBalance(receiver)).value.amount),
  };
  return { url, contract, mints: [classic, noAuthorities, token2022], payer, close };
}

async function main(): Promise<void> {
  const tool = findTool();
  if (typeof tool === 'string') {
    for (const mode of MODES) recordMissing(`schemathesis-${mode}`, `Schemathesis, ${mode}`, tool);
    return say(`not run: Schemathesis, ${tool}\n0 passed, 0 failed, ${MODES.length} skipped`);
  }
  if (process.argv.includes('--install')) return say(`Schemathesis: ${tool.how}`);
  const cases = process.env['CASES'] ?? '5';
  const seed = process.env['SEED'] ?? '1';
  const url = process.env['URL']?.replace(/\/+$/, '');
  const ran: (boolean | undefined)[] = [];
  for (const mode of MODES) {
    const target = await (url ? targetAt(url) : ownTarget());
    try {
      const skipped = mode === 'paid' && !target.payer;
      if (skipped) say(`not run: paid, because ${target.url} does not belong to the sandbox in STATE_DIR`);
      ran.push(skipped ? undefined : await fuzz(mode, tool, target, cases, seed));
    } finally {
      await target.close();
    }
  }
  const count = (result: boolean | undefined): number => ran.filter(each => each === result).length;
  const skipped = count(undefined);
  say(`${count(true)} passed, ${count(false)} failed${skipped ? `, ${skipped} skipped` : ''}`);
  process.exitCode = count(false) === 0 ? 0 : 1;
}

await main();
