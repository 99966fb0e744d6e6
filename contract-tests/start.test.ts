import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import {
  Agent,
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigFault, readConfig } from '../src/config.js';
import { compileContract } from '../src/contract.js';
import { Lobby } from '../src/lobby.js';
import { open, start, type Opened } from '../src/main.js';
import { openShop, type Front, type Shop } from '../src/shop.js';
import { until } from './support/faults.js';
import { call, challengeOf, openWorld, post, signFor, TEXT, type World } from './support/world.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

type Sent = {
  arrived: Promise<unknown>;
  answer: Promise<{ status: number; headers: IncomingMessage['headers']; json: Record<string, unknown> }>;
};

/** Sends a call that asks to go on before it sends its body, and so learns that the server holds it. */
function send(url: string, body: object, headers: Record<string, string>): Sent {
  const type = { 'content-type': 'application/json', expect: '100-continue' };
  const asked = request(url, { method: 'POST', headers: { ...type, ...headers }, agent: false });
  const arrived = once(asked, 'continue').then(() => asked.end(JSON.stringify(body)));
  const answer = once(asked, 'response').then(async ([response]) => {
    const message = response as IncomingMessage;
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const json = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
    return { status: message.statusCode ?? 0, headers: message.headers, json };
  });
  asked.flushHeaders();
  return { arrived, answer };
}

describe('A server that is starting', function () {
  this.timeout(60_000);
  let world: World;
  let stateDir: string;
  let opened: Opened;
  /** Lets the half that sells open. */
  let letOpen: () => void;

  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());
  afterEach(async () => {
    letOpen();
    await opened?.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  const config = () => readConfig({ ...world.env, STATE_DIR: stateDir });

  /** A server whose half that sells opens, by `then`, once the test lets it. */
  async function openHalf(then: (front: Front) => Promise<Shop> = openShop): Promise<World> {
    stateDir = mkdtempSync(join(tmpdir(), 'start-'));
    const gate = new Promise<void>(resolve => (letOpen = resolve));
    opened = await open(
      config(),
      () => {},
      async front => {
        await gate;
        return then(front);
      },
    );
    return { ...world, url: opened.url };
  }

  const asked = (): number => world.facilitator.count('/verify') + world.facilitator.count('/settle');
  const faultOf = (promise: Promise<void>): Promise<unknown> =>
    promise.then(
      () => undefined,
      (error: unknown) => error,
    );

  async function expectClosed(): Promise<void> {
    const refused = await call(`${opened.url}/health`).catch(
      (error: Error) => error.cause as NodeJS.ErrnoException,
    );
    expect(refused).to.have.property('code', 'ECONNREFUSED');
    // Its lock is free, too.
    await (await start(config())).stop();
  }

  it('names the price while the rest still loads, and lets whoever pays wait until it sells', async () => {
    const half = await openHalf();
    let ready = false;
    void opened.ready.then(() => (ready = true));
    const headers = await signFor(half, '/v1/summarize');
    const before = asked();
    const paid = send(`${half.url}/v1/summarize`, { text: TEXT }, headers);
    const health = call(`${half.url}/health`);
    await paid.arrived;
    const challenge = challengeOf(await post(`${half.url}/v1/summarize`, {}));
    expect(challenge.accepts[0]?.extra).to.have.property('recentBlockhash').that.is.a('string');
    expect([ready, asked()]).to.deep.equal([false, before]);
    letOpen();
    await opened.ready;
    const answer = await paid.answer;
    expect(answer.status, JSON.stringify(answer.json)).to.equal(200);
    expect(answer.headers).to.have.property('payment-response');
    expect(asked()).to.be.above(before);
    expect((await health).status).to.equal(200);
    expect((await call(half.url)).status).to.equal(200);
  });

  it('that can’t go on says why, closes, and sends whoever waits away uncharged', async () => {
    const fault = new ConfigFault('PEOPLE: can’t be asked, ask others');
    const half = await openHalf(async () => {
      throw fault;
    });
    const headers = await signFor(half, '/v1/summarize');
    const before = asked();
    const paid = send(`${half.url}/v1/summarize`, { text: TEXT }, headers);
    await paid.arrived;
    letOpen();
    const answer = await paid.answer;
    expect(answer.status).to.equal(503);
    expect(answer.headers['retry-after']).to.match(/^\d+$/);
    expect(answer.json.error).to.include('You were not charged for this request');
    expect(await faultOf(opened.ready)).to.equal(fault);
    expect(asked()).to.equal(before);
    await expectClosed();
  });

  it('stops when asked to, and what it had opened by then is closed', async () => {
    let seen: Front | undefined;
    const half = await openHalf(async front => {
      seen = front;
      return openShop(front);
    });
    const waiting = send(`${half.url}/v1/summarize`, {}, { 'x-payment': 'any' });
    await waiting.arrived;
    const stopped = opened.stop();
    expect((await waiting.answer).status).to.equal(503);
    letOpen();
    await stopped;
    expect(seen?.closing.aborted).to.equal(true);
    expect(seen?.undo).to.deep.equal([]);
    expect(await faultOf(opened.ready)).to.be.instanceOf(Error);
    await expectClosed();
  });
});

describe('The lobby', () => {
  let server: Server;
  let lobby: Lobby;
  let port: number;
  let agent: Agent;

  async function listen(options: ConstructorParameters<typeof Lobby>[0]): Promise<void> {
    lobby = new Lobby(options);
    agent = new Agent();
    server = createServer(lobby.receive).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  }
  afterEach(() => {
    agent.destroy();
    server.closeAllConnections();
    server.close();
  });

  function ask(path = '/', method = 'GET') {
    const asked = request({ port, host: '127.0.0.1', path, method, agent });
    const answer = once(asked, 'response').then(([response]) => response as IncomingMessage);
    answer.catch(() => {});
    asked.end();
    return { asked, answer, arrived: once(server, 'request') };
  }

  it('keeps nobody longer than its deadline', async () => {
    await listen({ waitMs: 20 });
    const { statusCode, headers } = await ask().answer;
    expect(statusCode).to.equal(503);
    expect(headers).to.include({
      'retry-after': '2',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
    });
  });

  it('holds so many and no more, and whoever leaves makes room', async () => {
    await listen({ most: 2 });
    const first = ask('/1');
    const [, held] = (await first.arrived) as [IncomingMessage, ServerResponse];
    const second = ask('/2');
    await second.arrived;
    expect((await ask('/3').answer).statusCode).to.equal(503);
    first.asked.destroy();
    await once(held, 'close');
    const fourth = ask('/4');
    await fourth.arrived;
    lobby.open((incoming, response) => response.end(incoming.url));
    for (const { answer } of [second, fourth, ask('/5')]) expect((await answer).statusCode).to.equal(200);
  });

  it('has room again when a connection is gone that held many places', async () => {
    await listen({ most: 20, waitMs: 120_000 });
    let came = 0;
    server.on('request', () => (came += 1));
    const many = connect(port, '127.0.0.1');
    many.on('error', () => {});
    many.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20));
    await until('all came', () => came === 20);
    expect((await ask('/full').answer).statusCode).to.equal(503);
    many.destroy();
    const refused = async () => {
      const ten = Array.from({ length: 10 }, () => ask('/room').answer.then(() => true));
      for (const answer of ten) answer.catch(() => {});
      const waited = new Promise<boolean>(resolve => setTimeout(() => resolve(false), 300));
      return Promise.race([...ten, waited]);
    };
    await until('there is room for ten', async () => !(await refused()));
  });

  it('sends everybody away once it is closed, also those who come later', async () => {
    await listen({});
    const waiting = ask();
    await waiting.arrived;
    lobby.close();
    for (const { answer } of [waiting, ask()]) {
      const message = await answer;
      const [text] = (await once(message, 'data')) as [Buffer];
      expect(message.statusCode).to.equal(503);
      expect(message.headers.connection).to.equal('close');
      expect(text.toString()).to.include('shutting down');
    }
  });

  it('serves those who waited in their order, and not those who left', async () => {
    await listen({});
    const served: string[] = [];
    const all: ReturnType<typeof ask>[] = [];
    for (const path of ['/1', '/2', '/3', '/4']) {
      const call = ask(path);
      const [, held] = (await call.arrived) as [IncomingMessage, ServerResponse];
      if (path !== '/3') all.push(call);
      else {
        call.asked.destroy();
        await once(held, 'close');
      }
    }
    lobby.open((incoming, response) => {
      served.push(incoming.url ?? '');
      response.end();
    });
    await Promise.all(all.map(({ answer }) => answer));
    expect(served).to.deep.equal(['/1', '/2', '/4']);
  });
});

describe('A server that was built', function () {
  this.timeout(60_000);
  let world: World;
  let folder: string;
  let child: ChildProcess | undefined;

  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'built-'));
    mkdirSync(join(folder, 'dist'));
    for (const part of ['dist/src', 'dist/handlers', 'package.json'])
      cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const contract = readFileSync(join(ROOT, 'openapi.yaml'), 'utf8');
    writeFileSync(join(folder, 'openapi.yaml'), contract);
    writeFileSync(join(folder, 'dist/openapi.json'), compileContract(contract));
  });
  afterEach(async () => {
    if (child && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  });

  function change(from: string, to: string): void {
    const text = readFileSync(join(ROOT, 'openapi.yaml'), 'utf8');
    expect(text).to.include(from);
    writeFileSync(join(folder, 'openapi.yaml'), text.replaceAll(from, to));
  }

  async function run(): Promise<{ url: string; ended: Promise<{ code: number; said: string }> }> {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address() as AddressInfo;
    await new Promise(resolve => probe.close(resolve));
    const env = {
      ...world.env,
      PORT: String(port),
      STATE_DIR: join(folder, 'state'),
      PATH: process.env.PATH,
    };
    const running = spawn(process.execPath, [join(folder, 'dist/src/main.js')], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child = running;
    let said = '';
    running.stderr.on('data', chunk => (said += String(chunk)));
    const ended = once(running, 'exit').then(([code]) => ({ code: Number(code ?? -1), said }));
    return { url: `http://127.0.0.1:${port}`, ended };
  }

  /** What it answers first, or what it said when it ended instead. */
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

  it('asks what a contract says that was changed since, not what was built', async () => {
    change("amount: '0.01', flow: authorization", "amount: '0.07', flow: authorization");
    const [option] = challengeOf(await firstAnswer(await run())).accepts;
    expect(option).to.include({ amount: '70000' });
  });

  it('ends with the sentence of a fault that only its second half finds', async () => {
    change('flow: authorization', 'flow: upfront');
    const { code, said } = await (await run()).ended;
    expect(said.trim()).to.equal('One operation must have the flow upfront, and only one');
    expect(code).to.equal(1);
  });

  it('does not open with an operation that nothing works on, nor with a handler of none, and says which file is to be written', async () => {
    change('operationId: solTokenBrief', 'operationId: tokenNews');
    const { code, said } = await (await run()).ended;
    expect(said).to.match(/sells tokenNews \(POST \/v1\/sol-token-brief\).*write handlers\/tokenNews\.ts/);
    expect(said).to.match(/createHandlers in handlers\/index\.ts has solTokenBrief.*remove it/);
    expect(code).to.equal(1);
  });

  it('does not open with an operation paid first of which nothing says whether it could be delivered', async () => {
    change('flow: upfront', 'flow: swapped');
    const text = readFileSync(join(folder, 'openapi.yaml'), 'utf8');
    const swapped = text.replace("'0.025', flow: authorization", "'0.025', flow: upfront");
    expect(swapped).to.not.equal(text);
    writeFileSync(join(folder, 'openapi.yaml'), swapped.replaceAll('flow: swapped', 'flow: authorization'));
    const { code, said } = await (await run()).ended;
    expect(said).to.match(
      /sells textToSpeech with flow: upfront.*handlers\/textToSpeech\.ts.*createReadiness/,
    );
    expect(said).to.match(/createReadiness in handlers\/index\.ts has brandFeedback.*remove it/);
    expect(code).to.equal(1);
  });

  it('ends in peace when it is asked to as soon as it answers', async () => {
    const running = await run();
    await firstAnswer(running);
    child!.kill('SIGTERM');
    expect(await running.ended).to.deep.equal({ code: 0, said: '' });
  });
});
