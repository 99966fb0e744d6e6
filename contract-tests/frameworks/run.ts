import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { decodePaymentResponseHeader } from '@x402/core/http';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import type { PricedOperation } from '../../src/contract/contract.js';
import { loadContract } from '../../src/contract/parse-contract.js';
import { exampleCall } from '../support/example-call.js';
import { freePort } from '../support/free-port.js';
import { ownPlace, startShop, succeed } from '../support/other-shop.js';
import { pythonEnvironment } from '../support/python-environment.js';

/**
 * Sells an API written with FastAPI, and one with Express and swagger-jsdoc, with two commands each, and buys every
 * route with the official client. Prints a line for each step; the last line counts them.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const HERE = join(ROOT, 'contract-tests', 'frameworks');
const COMMAND = join(ROOT, 'src', 'cli', 'coinslot.js');
const ROUTES = 8;
const ANSWER_MS = 30_000;
/** The time from the first command to the last purchase. */
const MOST_SECONDS = 60;

type Api = { stopped: string } | { command: string; args: string[] };
type Framework = { name: string; install: () => Api };

const FRAMEWORKS: Framework[] = [
  {
    name: 'FastAPI',
    install: () => {
      const folder = join(HERE, 'fastapi');
      const environment = pythonEnvironment(
        join(folder, '.venv'),
        join(folder, 'requirements.txt'),
        'FastAPI',
      );
      if ('stopped' in environment) return environment;
      const args = ['-m', 'uvicorn', '--app-dir', folder, '--log-level', 'warning', 'app:app', '--port'];
      return { command: join(environment.bin, 'python'), args };
    },
  },
  {
    name: 'Express with swagger-jsdoc',
    install: () => {
      const folder = join(HERE, 'express');
      const npm = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
      if (!existsSync(join(folder, 'node_modules')))
        if (spawnSync('npm', npm, { cwd: folder, stdio: 'ignore', timeout: 300_000 }).status !== 0)
          return { stopped: 'npm could not install its packages' };
      return { command: process.execPath, args: [join(folder, 'app.js'), '--port'] };
    },
  },
];

const counts = { passed: 0, failed: 0, skipped: 0 };
const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function answers(url: string, api: ChildProcess): Promise<void> {
  for (const until = Date.now() + ANSWER_MS; Date.now() < until && api.exitCode === null;) {
    const found = await fetch(url).catch(() => undefined);
    if (found?.ok) return;
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  throw new Error(`the API does not answer at ${url}`);
}

/** The steps of a seller, in an empty folder. */
async function sell(document: string, folder: string): Promise<void> {
  const env = ownPlace(join(folder, 'state'), { ALLOW_PRIVATE_UPSTREAMS: 'true', ADMIN_PORT: '0' });
  const began = performance.now();
  const seconds = (): string => ((performance.now() - began) / 1000).toFixed(1);
  const words = ['import', document, '--price', '*=0.01'];
  say((await succeed(folder, env, process.execPath, COMMAND, ...words)).trimEnd().replace(/^/gm, '    '));
  say(`    coinslot import ${document} --price '*=0.01': done after ${seconds()} s`);
  const shop = await startShop(folder, env, process.execPath, COMMAND, 'run');
  say(`    ALLOW_PRIVATE_UPSTREAMS=true coinslot run: sells after ${seconds()} s`);
  try {
    const { paid } = loadContract(join(folder, 'openapi.yaml'));
    const pay = await walletOf(join(folder, 'state'));
    // DELETE comes last, in case it removes what other routes need.
    for (const operation of paid.sort(
      (a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'),
    ))
      await buy(shop.url, operation, pay);
    if (paid.length !== ROUTES) throw new Error(`${paid.length} of ${ROUTES} routes are sold`);
    say(`    every route bought after ${seconds()} s`);
    if (Number(seconds()) > MOST_SECONDS) throw new Error(`it took more than ${MOST_SECONDS} s`);
  } finally {
    await shop.kill();
  }
}

async function walletOf(state: string): Promise<typeof fetch> {
  const keypair = JSON.parse(readFileSync(join(state, 'buyer.json'), 'utf8')) as number[];
  const { rpcUrl } = JSON.parse(readFileSync(join(state, 'sandbox.json'), 'utf8')) as { rpcUrl: string };
  const signer = await createKeyPairSignerFromBytes(Uint8Array.from(keypair));
  const client = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));
  return wrapFetchWithPayment(fetch, client);
}

async function buy(url: string, operation: PricedOperation, pay: typeof fetch): Promise<void> {
  const { query, init } = exampleCall(operation);
  const answer = await pay(`${url}${operation.examplePath}${query}`, {
    ...init,
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  const text = await answer.text();
  const receipt = answer.headers.get('payment-response');
  const what = `${operation.method} ${operation.examplePath}: ${answer.status} ${text.slice(0, 100)}`;
  if (!answer.ok || receipt === null || !decodePaymentResponseHeader(receipt).success) throw new Error(what);
  say(`    ${what}`);
}

async function check({ name, install }: Framework): Promise<void> {
  const installed = install();
  if ('stopped' in installed) {
    counts.skipped += 1;
    return say(`not run: ${name}, ${installed.stopped}`);
  }
  const port = String(await freePort());
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-framework-'));
  const env = { PATH: process.env['PATH'] ?? '', PORT: port };
  const api = spawn(installed.command, [...installed.args, port], { cwd: HERE, env, stdio: 'inherit' });
  try {
    const document = `http://127.0.0.1:${port}/openapi.json`;
    await answers(document, api);
    say(name);
    await sell(document, folder);
    counts.passed += 1;
    say(`ok  ${name}`);
  } catch (error) {
    counts.failed += 1;
    say(`FAILED  ${name}: ${(error as Error).message}`);
  } finally {
    api.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv.includes('--install')) for (const { install } of FRAMEWORKS) install();
else {
  for (const framework of FRAMEWORKS) await check(framework);
  say(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  process.exitCode = counts.failed > 0 ? 1 : 0;
}
