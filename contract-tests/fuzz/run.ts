import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PricedOperation } from '../../src/contract/contract.js';
import { toDecimal } from '../../src/contract/price.js';
import { record, recordMissing } from '../tools/record.js';
import { pythonEnvironment, succeeds } from '../support/python-environment.js';
import { operationIn, SOLD } from '../support/sold.js';
import { call, openWorld, post, signFor, type World } from '../support/world.js';

/**
 * Runs Schemathesis against a server in the sandbox: first without payments, then with one for every case. With `--install` it
 * only sees to it that there is a Schemathesis. The last line counts the two runs.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = join(ROOT, 'contract-tests', 'fuzz');
const VENV = join(FOLDER, '.venv');
const REQUIREMENTS = join(FOLDER, 'requirements.txt');
const VERSION = '4.32.5';
const IMAGE = `schemathesis/schemathesis:${VERSION}`;
/** A run that hangs must not hang continuous integration. */
const RUN_DEADLINE_MS = 15 * 60_000;

type Mode = 'unpaid' | 'paid';
/** How `st` is started: the words before its own arguments, and the folder that it sees as `folder`. */
type Tool = { how: string; command: (env: Record<string, string>, reports: string) => string[] };
type Report = {
  schemathesis_version: string;
  test_cases: { generated: number; unique_failures: number };
  errors: unknown[];
};

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** An engine, else a local `st`, else a virtual environment of our own; a sentence where there is none of them. */
function findTool(): Tool | string {
  // Elsewhere the engine's host network is not ours.
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

function dockerCommand(env: Record<string, string>, reports: string): string[] {
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const user = `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`;
  const mounts = ['-v', `${FOLDER}:${FOLDER}:ro`, '-v', `${reports}:${reports}`];
  return [
    'docker',
    'run',
    '--rm',
    '--network',
    'host',
    '--user',
    user,
    '-w',
    FOLDER,
    ...mounts,
    ...variables,
    IMAGE,
  ];
}

function ownEnvironment(): Tool | string {
  const made = pythonEnvironment(VENV, REQUIREMENTS, `Schemathesis ${VERSION}`);
  if ('stopped' in made) return `no docker engine, no st, and ${made.stopped}`;
  return { how: 'a virtual environment', command: () => [join(made.bin, 'st')] };
}

/** What was answered to paid calls: the price of every settlement that a receipt names, once each. */
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

/** `GET /sign?operation=…&version=…` answers the headers of a signed payment, `POST /answered` takes note of an answer. */
async function startSigner(world: World, takings: Takings): Promise<Server> {
  const answer = async (request: IncomingMessage): Promise<object> => {
    const url = new URL(request.url ?? '/', 'http://signer');
    if (url.pathname === '/sign') {
      const version = url.searchParams.get('version') === '1' ? 1 : 2;
      return sign(world, operationIn(SOLD, url.searchParams.get('operation') ?? ''), version);
    }
    const { operation, receipts } = JSON.parse(await textOf(request)) as Answered;
    takings.add(operationIn(SOLD, operation), receipts);
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

/** The price comes before the body and the parameters are read, so that any call at the operation's path learns it. */
async function sign(
  world: World,
  { method, examplePath }: PricedOperation,
  version: 1 | 2,
): Promise<Record<string, string>> {
  const url = `${world.url}${examplePath}${version === 1 ? '?x402Version=1' : ''}`;
  return signFor(world, examplePath, version, await (method === 'GET' ? call(url) : post(url, {})));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function runTool(words: string[], env: Record<string, string>): Promise<number> {
  const [command = '', ...args] = words;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit'],
      cwd: FOLDER,
      timeout: RUN_DEADLINE_MS,
    });
    child.once('error', reject);
    child.once('exit', code => resolve(code ?? 1));
  });
}

async function fuzz(mode: Mode, tool: Tool, world: World, cases: string, seed: string): Promise<boolean> {
  const reports = await mkdtemp(join(tmpdir(), 'coinslot-fuzz-'));
  const takings = new Takings();
  const signer = await startSigner(world, takings);
  const before = await world.earned();
  try {
    const { classic, noAuthorities, token2022 } = world.sandbox.info.mints;
    const env: Record<string, string> = {
      FUZZ_MINTS: [classic, noAuthorities, token2022].join(' '),
      PYTHONDONTWRITEBYTECODE: '1',
      HYPOTHESIS_STORAGE_DIRECTORY: reports,
    };
    if (mode === 'paid') env['FUZZ_SIGNER'] = `http://127.0.0.1:${(signer.address() as AddressInfo).port}`;
    const report = join(reports, 'report.json');
    const words = [
      ...tool.command(env, reports),
      ...['--config-file', join(FOLDER, `${mode}.toml`), 'run', `${world.url}/openapi.json`],
      ...['--max-examples', cases, '--seed', seed, '--report-json-path', report],
    ];
    say(
      `\n== Schemathesis, ${mode}: ${cases} random cases for each operation, seed ${seed}, from ${tool.how}`,
    );
    const status = await runTool(words, env);
    const earned = (await world.earned()) - before;
    return judge(mode, status, JSON.parse(await readFile(report, 'utf8')) as Report, takings, earned);
  } finally {
    signer.close();
    await rm(reports, { recursive: true, force: true });
  }
}

/** Compares what the answers claim with the money that moved on the chain, and notes the result. */
function judge(mode: Mode, status: number, report: Report, takings: Takings, earned: bigint): boolean {
  const { generated, unique_failures: failures } = report.test_cases;
  const errors = report.errors.length;
  const honest = earned === takings.total;
  const money = `${takings.settlements} settlements, ${toDecimal(earned)} USDC in total`;
  const paid = mode === 'paid' ? `, ${takings.answers} paid` : '';
  say(`${mode}: ${generated} cases${paid}, ${money}`);
  if (!honest)
    say(`FAILED: the receipts speak of ${toDecimal(takings.total)} USDC, the chain of ${toDecimal(earned)}`);
  const good = status === 0 && honest;
  record(`schemathesis-${mode}`, {
    tool: `Schemathesis, ${mode}`,
    version: report.schemathesis_version,
    checks:
      mode === 'unpaid'
        ? 'every unpaid call gets its price, as the contract says'
        : 'every paid call is answered as the contract says, and the receipts agree with the chain',
    cases: `${generated} calls${paid}, ${money}`,
    result: good
      ? 'no failure'
      : `${failures} failures, ${errors} errors${honest ? '' : ', receipts and chain disagree'}`,
  });
  return good;
}

async function main(): Promise<void> {
  const tool = findTool();
  if (typeof tool === 'string') {
    for (const mode of ['unpaid', 'paid'])
      recordMissing(`schemathesis-${mode}`, `Schemathesis, ${mode}`, tool);
    return say(`not run: Schemathesis, ${tool}\n0 passed, 0 failed, 2 skipped`);
  }
  if (process.argv.includes('--install')) return say(`Schemathesis: ${tool.how}`);
  const cases = process.env['CASES'] ?? '5';
  const seed = process.env['SEED'] ?? '1';
  let passed = 0;
  for (const mode of ['unpaid', 'paid'] as const) {
    const world = await openWorld({ HOLD_SECONDS: '60' });
    try {
      if (await fuzz(mode, tool, world, cases, seed)) passed += 1;
    } finally {
      await world.close();
    }
  }
  say(`${passed} passed, ${2 - passed} failed`);
  process.exitCode = passed === 2 ? 0 : 1;
}

await main();
