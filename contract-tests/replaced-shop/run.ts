import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { copyRepository } from '../support/copied-repository.js';
import { ownPlace } from '../support/other-shop.js';
import { SOLD } from '../support/sold.js';

/**
 * In a copy of this repository, replaces its operations by three others (one with a handler, paid up front; two of an
 * API on this machine), and has every tool check and buy them. Prints one line for each step; the last line counts
 * them.
 */

const STEP_MS = 300_000;
const HANDLER = `import type { Entry } from 'coinslot';
import type { operations } from '../generated/openapi.js';

/** Sells the number of words of a text. Words can be counted at any time. */
export const wordCount: Entry<operations['wordCount']> = () => ({
  call: async ({ body }) => {
    const words = body.text.match(/[\\p{L}\\p{N}]+/gu) ?? [];
    return { status: 200, body: { words: words.length } };
  },
  ready: async () => {},
});
`;

/** The operations that replace those of this repository, with their settings for `make operation`. */
const ADDED = [
  ['wordCount', 'PRICE=0.03', 'FLOW=upfront', 'REQUEST={"text":"One coin, one call."}', 'ANSWER={"words":4}'],
  [
    'quote',
    'PRICE=0.02',
    'METHOD=GET',
    'ROUTE=/v1/quotes/{symbol}',
    'UPSTREAM=$${REPLACED_SHOP_API}/quotes/{symbol}',
    'REQUEST={"symbol":"SOL"}',
    'ANSWER={"symbol":"SOL","price":150.5}',
  ],
  [
    'echo',
    'PRICE=0.01',
    'UPSTREAM=$${REPLACED_SHOP_API}/echo',
    'REQUEST={"text":"One coin."}',
    'ANSWER={"echo":"One coin.","length":9}',
  ],
] as const;

type Result = 'ok' | 'FAILED' | 'not run';
type Environment = Record<string, string>;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const results: Result[] = [];

/** Runs one command in the copy. @returns false if it failed, so that steps that depend on it are left out */
async function step(
  folder: string,
  env: Environment,
  name: string,
  command: string,
  ...args: string[]
): Promise<boolean> {
  const began = Date.now();
  const { status, output } = await run(folder, env, command, args);
  const skipped = /^0 passed, 0 failed, [1-9]\d* skipped$/m.test(output);
  const result = status !== 0 ? 'FAILED' : skipped ? 'not run' : 'ok';
  results.push(result);
  say(`${result}  ${name} (${Math.round((Date.now() - began) / 1000)} s)`);
  if (result !== 'ok') say(output.trimEnd().split('\n').slice(-40).join('\n').replace(/^/gm, '    '));
  return result !== 'FAILED';
}

async function run(
  cwd: string,
  env: Environment,
  command: string,
  args: string[],
): Promise<{ status: number; output: string }> {
  // In a process group of its own, so that programs started by a hanging step end with it.
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += String(chunk)));
  const deadline = setTimeout(() => {
    output += `\nended after ${STEP_MS / 1000} s\n`;
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, STEP_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(deadline);
  return { status: code ?? 1, output };
}

/** The API that is sold: `GET /quotes/{symbol}` and `POST /echo`. It rejects calls that contain payment data. */
function api(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString('utf8');
    const paid = Object.keys(request.headers).some(name => name.includes('payment'));
    const answer = paid ? undefined : answerOf(request.method ?? '', request.url ?? '', body);
    response.writeHead(answer ? 200 : 500, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { error: 'there is no such thing here' }));
  });
}

function answerOf(method: string, url: string, body: string): object | undefined {
  const [, symbol] = /^\/quotes\/([^/?]+)$/.exec(url) ?? [];
  if (method === 'GET' && symbol !== undefined) return { symbol: decodeURIComponent(symbol), price: 150.5 };
  if (method !== 'POST' || url !== '/echo') return undefined;
  const { text } = JSON.parse(body) as { text: string };
  return { echo: text, length: [...text].length };
}

/** Runs `make operation` and `make operation-remove`, as a seller would. */
async function replace(folder: string, env: Environment): Promise<boolean> {
  const make = (...args: string[]): Promise<boolean> =>
    step(folder, env, `make ${args[0]} ${args[1]}`, 'make', ...args);
  for (const [name, ...settings] of ADDED) {
    if (!(await make('operation', `NAME=${name}`, ...settings))) return false;
    if (name === 'wordCount') writeFileSync(join(folder, 'handlers', 'wordCount.ts'), HANDLER);
  }
  const dropped = [...SOLD.paid, ...SOLD.free.filter(({ id }) => id === 'listVoices')].map(({ id }) => id);
  return make('operation-remove', `NAME=${dropped.join(' ')}`);
}

/** Runs every tool on the three operations. */
async function checkShop(folder: string, env: Environment): Promise<void> {
  const check = (name: string, command: string, ...args: string[]): Promise<boolean> =>
    step(folder, env, name, command, ...args);
  const written = ['openapi.yaml', 'handlers', 'contract-tests/handlers', 'README.md'];
  await check('format: prettier', 'node_modules/.bin/prettier', '--check', ...written);
  await check('style: eslint', 'node_modules/.bin/eslint', 'handlers', 'contract-tests/handlers');
  await check('types and contract: make lint-contract', 'make', 'lint-contract');
  await check('contract tests: make test-contract', 'make', 'test-contract');
  await check('buy all three: @x402/fetch', 'node', 'dist/contract-tests/replaced-shop/buy.js');
  const mocha = ['--no-package', '--timeout', '60000', '--reporter', 'dot'];
  const silent = ['--require', './dist/src/rails/solana/silence-bigint-warning.js'];
  const mocks = [
    '-g',
    'mock',
    'dist/contract-tests/tools/prism.slow.test.js',
    'dist/contract-tests/cli/mock/mock.slow.test.js',
  ];
  await check("call Prism's mocks", 'node_modules/.bin/mocha', ...mocha, ...silent, ...mocks);
  await check('crawl: make clients CLIENTS=crawlers', 'make', 'clients', 'CLIENTS=crawlers');
  await check('fuzz, unpaid and paid: make fuzz', 'make', 'fuzz', 'CASES=3', 'SEED=1');
}

const server = createServer(api).listen(0, '127.0.0.1');
await once(server, 'listening');
const folder = copyRepository('coinslot-replaced-shop-');
process.once('SIGINT', () => process.exit(130));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const env = ownPlace(join(folder, '.coinslot'), {
  REPLACED_SHOP_API: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  ALLOW_PRIVATE_UPSTREAMS: 'true',
});
if (await replace(folder, env)) await checkShop(folder, env);
server.close();
server.closeAllConnections();
const count = (wanted: Result): number => results.filter(result => result === wanted).length;
const skipped = count('not run');
say(`${count('ok')} passed, ${count('FAILED')} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exitCode = count('FAILED') === 0 ? 0 : 1;
