import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Browser, noBrowser } from '../support/browser.js';
import { freePort } from '../support/free-port.js';
import { SOLD } from '../support/sold.js';

/**
 * Measures the time from a clone of this repository to the first paid call, in the terminal and in a browser. It clones
 * the last commit into an empty folder and runs the commands of the README there. npm takes packages from its own cache
 * if it has them.
 */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const READY = 'ready to be paid at ';
const START_MS = 900_000;
const [FIRST] = SOLD.paid;

type Step = { name: string; seconds: number };
const steps: Step[] = [];

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const result = await work();
  steps.push({ name, seconds: (performance.now() - begun) / 1000 });
  return result;
}

async function succeed(folder: string, command: string, ...options: string[]): Promise<string> {
  const child = spawn(command, options, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [status] = (await once(child, 'close')) as [number | null];
  if (status !== 0) throw new Error(`${command} ${options.join(' ')} ended with ${status}: ${output}`);
  return output;
}

/** `make run` on free ports, in a process group of its own. @returns once it accepts payments, with its URL */
async function run(folder: string, onStart: (server: ChildProcess) => void): Promise<string> {
  const ports: Record<string, string> = {};
  for (const name of ['PORT', 'ADMIN_PORT', 'SANDBOX_RPC_PORT', 'SANDBOX_FACILITATOR_PORT'])
    ports[name] = String(await freePort());
  const server = spawn('make', ['run'], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...ports },
  });
  onStart(server);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('make run: not ready')), START_MS);
    let said = '';
    server.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      const [, url] = new RegExp(`${READY}(http://[\\d.:]+)`).exec(said) ?? [];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    });
    server.once('exit', status => reject(new Error(`make run ended with ${status}: ${said.slice(-1000)}`)));
  });
}

const PAY = `[...document.querySelectorAll('.pay button')].find(each => each.textContent.includes('sandbox wallet'))`;

/** Follows the links from the page at / to the reference, the operation, its page, and the answer. */
async function buyInBrowser(
  url: string,
  { id, path }: { id: string; path: string },
  tag: string,
): Promise<void> {
  const browser = await Browser.start();
  const click = async (selector: string): Promise<void> => {
    await browser.until(`document.querySelector(${JSON.stringify(selector)})`);
    await browser.read(`document.querySelector(${JSON.stringify(selector)}).click()`);
  };
  try {
    await browser.resize(1280, 900);
    await timed('browser: the page at /', async () => {
      await browser.open(url);
      await browser.until(`document.querySelector('#backends li')`);
    });
    await timed('browser: /docs, the operation, and its link to try it', async () => {
      await click('nav a[href="/docs"]');
      await browser.until(`document.querySelector('#reference h2')`);
      await click(`[role=navigation] a[href="#/${tag}"]`);
      await click(`a[href="#/${tag}/${id.toLowerCase()}"]`);
      await click(`a[href$="${path}"]`);
      await browser.until(PAY);
    });
    await timed(
      'browser: pay with the sandbox wallet, until the answer and its transfer are shown',
      async () => {
        await browser.read(`${PAY}.click()`);
        await browser.until(`document.querySelector('.say').textContent.startsWith('Paid ')`);
      },
    );
  } finally {
    await browser.close();
  }
}

if (!FIRST?.request) throw new Error('The first operation of the contract has no body.');
const { id, path, tags, request } = FIRST;
const folder = mkdtempSync(join(tmpdir(), 'coinslot-first-call-'));
const clone = join(folder, 'coinslot');
let server: ChildProcess | undefined;
process.stdout.write(`${cpus().length} CPUs, load ${loadavg()[0]?.toFixed(1)} at the start\n`);
try {
  await timed('git clone', () => succeed(folder, 'git', 'clone', '-q', ROOT, clone));
  const url = await timed('make run, until it can be paid', () => run(clone, started => (server = started)));
  const body = JSON.stringify(request.example);
  await timed(`npm run buy -- ${id}`, () => succeed(clone, 'npm', 'run', '--silent', 'buy', '--', id, body));
  if (noBrowser) process.stdout.write(`skipped: the browser (${noBrowser})\n`);
  else await buyInBrowser(url, { id, path }, (tags[0] ?? '').toLowerCase());
} finally {
  if (server?.pid !== undefined && server.exitCode === null) {
    process.kill(-server.pid, 'SIGTERM');
    await once(server, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
}
for (const { name, seconds } of steps) process.stdout.write(`${seconds.toFixed(1).padStart(7)} s  ${name}\n`);
process.stdout.write(`load ${loadavg()[0]?.toFixed(1)} at the end\n`);
