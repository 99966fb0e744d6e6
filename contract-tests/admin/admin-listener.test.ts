import { expect } from 'chai';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { Agent, createServer, request, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  openAdmin,
  placeAdmin,
  type AdminListener,
  type AdminPlace,
} from '../../src/admin/admin-listener.js';
import type { MachineRoute } from '../../src/admin/admin-server.js';
import { readConfig, type AdminConfig } from '../../src/config.js';
import { ConfigFault } from '../../src/config/setting-reader.js';

const TOKEN = 'a-token-that-nobody-guesses';
const log = { info: () => {}, warn: () => {}, error: () => {} };
const routes: MachineRoute[] = [
  { path: '/metrics', withoutToken: 'private', serve: ctx => void (ctx.body = 'sold 3\n') },
  {
    path: '/ready',
    withoutToken: 'status',
    serve: ctx => {
      ctx.status = 503;
      ctx.body = 'the chain is stale\n';
    },
  },
];

type Got = { status: number; headers: IncomingMessage['headers']; body: string };

async function get(
  url: string,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Got> {
  const { hostname, port } = new URL(url);
  const asking = request({
    host: hostname.replace(/[[\]]/g, ''),
    port,
    path,
    headers,
    method,
    agent: false,
  }).end();
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  let body = '';
  for await (const chunk of response) body += String(chunk);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

describe('the admin listener', () => {
  let stateDir: string;
  let open: { close(): Promise<void> }[];

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'coinslot-admin-'));
    open = [];
  });
  afterEach(async () => {
    await Promise.all(open.map(listener => listener.close()));
    await rm(stateDir, { recursive: true, force: true });
  });

  const place = async (env: Record<string, string> = {}, more: object = {}): Promise<AdminPlace> => {
    const { admin } = readConfig({ ADMIN_PORT: '0', ...env });
    const found = await placeAdmin({ admin, anyPort: false, isSandbox: true, stateDir, log, ...more });
    open.push(found);
    return found;
  };

  const start = async (env: Record<string, string> = {}): Promise<AdminListener> =>
    openAdmin(await place(env), stateDir, { routes, log });

  /** Connections that send nothing or only part of a request. */
  async function holdConnections(url: string, count: number): Promise<Socket[]> {
    const { port } = new URL(url);
    const held = Array.from({ length: count }, () =>
      connect(Number(port), '127.0.0.1').on('error', () => {}),
    );
    await Promise.all(held.map(socket => once(socket, 'connect')));
    held.forEach((socket, index) => index % 2 && socket.write('GET /ready HTTP/1.1\r\n'));
    return held;
  }

  describe('on loopback', () => {
    it('serves programs without a token, and nothing at an unknown path', async () => {
      const { url } = await start();
      expect(await get(url, '/metrics')).to.include({ status: 200, body: 'sold 3\n' });
      expect(await get(url, '/ready')).to.include({ status: 503, body: 'the chain is stale\n' });
      expect((await get(url, '/metrics/')).status).to.equal(404);
      expect(await get(url, '/metrics', {}, 'POST')).to.include({ status: 405 });
      expect((await get(url, '/metrics', {}, 'HEAD')).body).to.equal('');
    });

    it('hides everything from a page that reaches it by DNS rebinding', async () => {
      const { url } = await start();
      const { port } = new URL(url);
      const foreign = { Host: `rebound.example:${port}` };
      expect((await get(url, '/metrics', foreign)).status).to.equal(403);
      expect((await get(url, '/', foreign)).status).to.equal(403);
      // A foreign page can read the status, but that tells it nothing it could not measure itself.
      expect(await get(url, '/ready', foreign)).to.include({ status: 503, body: '' });
      for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, '[::1]', '10.1.2.3'])
        expect((await get(url, '/metrics', { Host: host })).status, host).to.equal(200);
    });

    it('behind a proxy (ADMIN_URL) serves programs only with the token, under any name', async () => {
      const found = await place({ ADMIN_URL: 'https://ops.example', ADMIN_TOKEN: TOKEN });
      await openAdmin(found, stateDir, { routes, log });
      expect(found.url).to.equal('https://ops.example');
      const local = `http://127.0.0.1:${found.port}`;
      // A proxy may forward any Host, so the name does not show who is asking.
      for (const Host of ['ops.example', 'coinslot:8404', '127.0.0.1'])
        expect((await get(local, '/metrics', { Host })).status, Host).to.equal(401);
      expect(await get(local, '/ready', { Host: 'ops.example' })).to.include({ status: 503, body: '' });
      expect((await get(local, '/', { Host: 'coinslot:8404' })).status).to.equal(403);
      const authorization = `Bearer ${TOKEN}`;
      expect((await get(local, '/metrics', { Host: 'coinslot:8404', authorization })).status).to.equal(200);
    });
  });

  it('on any other address, gives programs without the token only the readiness status', async () => {
    const { url } = await start({ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN: TOKEN });
    const local = url.replace('0.0.0.0', '127.0.0.1');
    expect(await get(local, '/metrics')).to.include({ status: 401 });
    expect((await get(local, '/metrics', { authorization: 'Bearer wrong' })).status).to.equal(401);
    expect((await get(local, '/metrics', { authorization: `Bearer ${TOKEN}` })).body).to.equal('sold 3\n');
    expect(await get(local, '/ready')).to.include({ status: 503, body: '' });
    expect((await get(local, '/ready', { authorization: `Bearer ${TOKEN}` })).body).to.equal(
      'the chain is stale\n',
    );
  });

  it('saves its link with a generated token in a file that only its owner can read, and keeps the token across restarts', async () => {
    const file = join(stateDir, 'operator-page.url');
    await writeFile(file, 'left over', { mode: 0o666 });
    const first = await start();
    expect(first.link).to.match(/^http:\/\/127\.0\.0\.1:\d+\/#[\w-]{32}$/);
    expect(await readFile(file, 'utf8')).to.equal(`${first.link}\n`);
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    const again = await start();
    expect(new URL(again.link).hash).to.equal(new URL(first.link).hash);
    const own = await start({ ADMIN_TOKEN: TOKEN });
    expect(own.link).to.match(new RegExp(`#${TOKEN}$`));
    expect(await readFile(file, 'utf8')).to.equal(`${again.link}\n`);
  });

  it('closes immediately, even while a connection has sent no request', async () => {
    const { url } = await start();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write('GET /ready HTTP/1.1\r\n');
    const ended = once(socket, 'close');
    await open.pop()?.close();
    await ended;
  });

  it('answers despite any number of connections that send nothing', async () => {
    const { url } = await start();
    const held = await holdConnections(url, 300);
    for (let times = 0; times < 3; times++)
      expect(await get(url, '/ready')).to.include({ status: 503, body: 'the chain is stale\n' });
    for (const socket of held) socket.destroy();
  });

  it('keeps a connection that has sent the token, however many others are held open', async () => {
    const { url } = await start({ ADMIN_TOKEN: TOKEN });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = async (): Promise<{ body: string; reused: boolean }> => {
      const asking = request(`${url}/metrics`, {
        agent,
        headers: { authorization: `Bearer ${TOKEN}` },
      }).end();
      const [response] = (await once(asking, 'response')) as [IncomingMessage];
      let body = '';
      for await (const chunk of response) body += String(chunk);
      return { body, reused: asking.reusedSocket };
    };
    expect(await ask()).to.deep.equal({ body: 'sold 3\n', reused: false });
    const held = await holdConnections(url, 300);
    expect((await get(url, '/ready')).status).to.equal(503);
    expect(await ask()).to.deep.equal({ body: 'sold 3\n', reused: true });
    agent.destroy();
    for (const socket of held) socket.destroy();
  });

  it('reports that the server is starting until its readiness is known', async () => {
    const found = await place();
    expect(await get(found.url, '/ready')).to.include({ status: 503, body: 'The server is starting.\n' });
    await openAdmin(found, stateDir, { routes, log });
    expect(await get(found.url, '/ready')).to.include({ status: 503, body: 'the chain is stale\n' });
  });

  describe('the port of the admin listener', () => {
    let taken: Server;
    let port: string;
    beforeEach(async () => {
      taken = createServer().listen(0, '127.0.0.1');
      await once(taken, 'listening');
      port = String((taken.address() as AddressInfo).port);
    });
    afterEach(() => taken.close());

    const admin = (given: Partial<AdminConfig>): AdminConfig => ({
      host: '127.0.0.1',
      port: undefined,
      url: undefined,
      token: undefined,
      ...given,
    });

    it('prevents startup with a one-sentence error if it was set and is in use', async () => {
      const fault = await place({ ADMIN_PORT: port }).catch((error: unknown) => error);
      expect(fault).to.be.instanceOf(ConfigFault);
      expect((fault as Error).message).to.equal(
        `ADMIN_PORT: ${port} is in use; set ADMIN_PORT to another one`,
      );
    });

    it('is open when it is returned, so that two servers that start concurrently never get the same port', async () => {
      const beside = (): Promise<AdminPlace> => place({}, { admin: admin({}) });
      const places = [...(await Promise.all([beside(), beside()])), await beside()];
      expect(new Set(places.map(found => found.port)).size).to.equal(3);
      for (const found of places) await openAdmin(found, stateDir, { routes, log });
      for (const found of places) expect((await get(found.url, '/metrics')).body).to.equal('sold 3\n');
    });

    it('is any free port if the server itself uses any free port', async () => {
      const found = await place({}, { admin: admin({}), anyPort: true, isSandbox: false });
      expect(found.port).to.not.equal(8404);
    });
  });

  it("without a token of its own, warns that the panel's token does not open it, and still works", async () => {
    const warned: string[] = [];
    const hearing = { ...log, warn: (_: object, text: string) => void warned.push(text) };
    const pageTokens = ['PANEL_TOKEN'];
    await place({}, { pageTokens, log: hearing });
    expect(warned).to.deep.equal([
      `ADMIN_TOKEN: not set. PANEL_TOKEN does not open the operator page; the link that opens it is in ${join(stateDir, 'operator-page.url')}`,
    ]);
    await place({ ADMIN_TOKEN: TOKEN }, { pageTokens, log: hearing });
    await place({}, { log: hearing });
    expect(warned).to.have.length(1);
  });

  it('rejects a short token, and a URL with a path', () => {
    const faults = (env: Record<string, string>): string => {
      try {
        readConfig(env);
        return '';
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(faults({ ADMIN_TOKEN: 'short' })).to.include('ADMIN_TOKEN: must have at least 16 characters');
    expect(faults({ ADMIN_URL: 'https://ops.example/admin' })).to.include('ADMIN_URL');
    expect(faults({ ADMIN_PORT: '70000' })).to.include('ADMIN_PORT');
  });
});
