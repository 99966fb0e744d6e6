import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compose, type Running } from '../../src/compose.js';
import { readConfig } from '../../src/config.js';
import { ConfigFault } from '../../src/config/setting-reader.js';
import { compileContract } from '../../src/contract/compile-contract.js';
import { until } from '../support/faults.js';
import { freePort } from '../support/free-port.js';
import { call, challengeOf, openWorld, post, signFor, TEXT, type World } from '../support/world.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

describe('A server that is starting', function () {
  this.timeout(60_000);
  let world: World;
  let stateDir: string;
  let url: string;
  let env: Record<string, string>;

  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());
  beforeEach(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    stateDir = mkdtempSync(join(tmpdir(), 'start-'));
    env = { ...world.env, STATE_DIR: stateDir, PORT: String(port), ADMIN_PORT: '0' };
  });
  afterEach(() => {
    world.facilitator.intervene(undefined);
    rmSync(stateDir, { recursive: true, force: true });
  });

  async function expectClosed(): Promise<void> {
    const refused = await call(`${url}/health`).catch((error: Error) => error.cause as NodeJS.ErrnoException);
    expect(refused).to.have.property('code', 'ECONNREFUSED');
  }

  /** Starts a server whose facilitator answers only when the test lets it. */
  async function startHeld(): Promise<{ starting: Promise<Running>; letGoOn: () => void }> {
    let asked = (): void => {};
    let letGoOn = (): void => {};
    const isAsked = new Promise<void>(resolve => (asked = resolve));
    const mayAnswer = new Promise<void>(resolve => (letGoOn = resolve));
    world.facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/supported') asked();
      if (path === '/supported') await mayAnswer;
      const { status, body } = await forward();
      respond(status, body);
    });
    const starting = compose(readConfig(env));
    await isAsked;
    return { starting, letGoOn };
  }

  it('opens its port once it accepts payments, and not before', async () => {
    const { starting, letGoOn } = await startHeld();
    await expectClosed();
    letGoOn();
    const running = await starting;
    try {
      expect(running.url).to.equal(url);
      const headers = await signFor({ ...world, url }, '/v1/summarize');
      const paid = await post(`${url}/v1/summarize`, { text: TEXT }, headers);
      expect(paid.status, JSON.stringify(paid.json())).to.equal(200);
      expect(paid.headers.get('payment-response')).to.be.a('string');
    } finally {
      await running.stop();
    }
    await expectClosed();
  });

  it("says why it can't listen if its port was taken meanwhile, and closes what it had opened", async () => {
    const { starting, letGoOn } = await startHeld();
    const other = createServer().listen(Number(env.PORT), '127.0.0.1');
    await once(other, 'listening');
    letGoOn();
    const fault: unknown = await starting.catch((error: unknown) => error);
    expect(fault).to.be.instanceOf(ConfigFault);
    expect((fault as Error).message).to.include('is in use; set PORT to another one');
    await new Promise(resolve => other.close(resolve));
    await expectClosed();
    // The ledger's lock has been released as well.
    await (await compose(readConfig(env))).stop();
  });
});

describe('A built server', function () {
  this.timeout(60_000);
  let world: World;
  let folder: string;
  let child: ChildProcess | undefined;

  before(async () => {
    world = await openWorld();
    folder = mkdtempSync(join(tmpdir(), 'built-'));
    mkdirSync(join(folder, 'dist'));
    const assets = [
      ...['admin', 'pages', 'site'].map(room => `src/${room}/assets`),
      'handlers/brand-feedback/assets',
      'src/contract/expand',
    ];
    for (const part of ['dist/src', 'dist/handlers', ...assets, 'package.json'])
      cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  });
  after(async () => {
    await world.close();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    const contract = readFileSync(join(ROOT, 'openapi.yaml'), 'utf8');
    writeFileSync(join(folder, 'openapi.yaml'), contract);
    writeFileSync(join(folder, 'dist/openapi.json'), await compileContract(contract));
  });
  afterEach(async () => {
    if (child && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(join(folder, 'state'), { recursive: true, force: true });
  });

  function change(from: string, to: string): void {
    const text = readFileSync(join(ROOT, 'openapi.yaml'), 'utf8');
    expect(text).to.include(from);
    writeFileSync(join(folder, 'openapi.yaml'), text.replaceAll(from, to));
  }

  async function build(): Promise<void> {
    const text = readFileSync(join(folder, 'openapi.yaml'), 'utf8');
    writeFileSync(join(folder, 'dist/openapi.json'), await compileContract(text));
  }

  async function run(): Promise<{ url: string; ended: Promise<{ code: number; said: string }> }> {
    const port = await freePort();
    const env = {
      ...world.env,
      PORT: String(port),
      ADMIN_PORT: '0',
      STATE_DIR: join(folder, 'state'),
      PATH: process.env.PATH,
    };
    const running = spawn(process.execPath, [join(folder, 'dist/src/main.js')], {
      cwd: folder,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child = running;
    let said = '';
    running.stderr.on('data', chunk => (said += String(chunk)));
    const ended = once(running, 'exit').then(([code]) => ({ code: Number(code ?? -1), said }));
    return { url: `http://127.0.0.1:${port}`, ended };
  }

  /** The server's first answer, or its output if it ended instead. */
  async function firstAnswer({ url, ended }: Awaited<ReturnType<typeof run>>) {
    let end: { said: string } | undefined;
    void ended.then(how => (end = how));
    for (const until = Date.now() + 30_000; Date.now() < until && !end;) {
      const answer = await post(`${url}/v1/summarize`, {}).catch(() => undefined);
      if (answer) return answer;
      await new Promise(resolve => setTimeout(resolve, 10));
    }
    throw new Error(`no answer: ${end?.said ?? 'it still starts'}`);
  }

  it('does not start after a change of the contract until it is rebuilt, and then asks for the new price', async () => {
    change("amount: '0.01', flow: authorization", "amount: '0.07', flow: authorization");
    const { code, said } = await (await run()).ended;
    expect(said.trim()).to.match(
      /^openapi\.yaml was changed after the last build.*build again \(npm run build\)\.$/,
    );
    expect(code).to.equal(1);
    await build();
    const [option] = challengeOf(await firstAnswer(await run())).accepts;
    expect(option).to.include({ amount: '70000' });
  });

  it('does not start if an operation has no handler or a handler has no operation, and names the file to write', async () => {
    change('operationId: solTokenBrief', 'operationId: tokenNews');
    await build();
    const { code, said } = await (await run()).ended;
    expect(said).to.match(/sells tokenNews \(POST \/v1\/sol-token-brief\).*write handlers\/tokenNews\.ts/);
    expect(said).to.match(/handlers\/index\.ts has solTokenBrief.*remove it/);
    expect(code).to.equal(1);
  });

  it('ends cleanly when it is stopped before its first answer, and its ledger can be opened again', async () => {
    const running = await run();
    await until('its ledger is open', () => existsSync(join(folder, 'state/ledger.db')));
    child!.kill('SIGTERM');
    expect(await running.ended).to.deep.equal({ code: 0, said: '' });
    await firstAnswer(await run());
  });

  it('ends cleanly when it is stopped right after its first answer', async () => {
    const running = await run();
    await firstAnswer(running);
    child!.kill('SIGTERM');
    expect(await running.ended).to.deep.equal({ code: 0, said: '' });
  });
});
