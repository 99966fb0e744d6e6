import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { postgresPlace } from '../support/ledger-places.js';
import { readiness, scrape, type Samples } from '../support/metrics.js';
import {
  allOnOneChain,
  buyer,
  folder,
  proxied,
  sandbox,
  serve,
  type Environment,
} from '../support/server-process.js';
import { call, post, TEXT, type Answer } from '../support/world.js';

type Line = { level: number; msg: string; [field: string]: unknown };

/** A server, and what its operator can ask and read. */
class Watched {
  readonly lines: Line[] = [];
  readonly url: string;
  readonly admin: string;

  private constructor(url: string, admin: string) {
    this.url = url;
    this.admin = admin;
  }

  /** @param under a command that runs it */
  static async start(name: string, env: Environment, under: string[] = []): Promise<Watched> {
    const all = proxied(name, env);
    const { url, child } = await serve(all, undefined, under);
    const link = await readFile(join(all['STATE_DIR'] ?? '', 'operator-page.url'), 'utf8');
    const server = new Watched(url, new URL(link).origin);
    let rest = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString()).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) server.lines.push(JSON.parse(part) as Line);
    });
    return server;
  }

  async buy(text: string): Promise<Answer> {
    return post(`${this.url}/v1/summarize`, { text }, await this.sign());
  }

  /** @returns the headers with a payment for a summary */
  async sign(): Promise<Record<string, string>> {
    const client = new x402HTTPClient(
      new x402Client().register(
        'solana:*',
        new ExactSvmScheme(await createKeyPairSignerFromBytes(buyer.secretKey), { rpcUrl: sandbox.rpc.url }),
      ),
    );
    const challenge = await post(`${this.url}/v1/summarize`, {});
    const required = client.getPaymentRequiredResponse(name => challenge.headers.get(name), challenge.json());
    return client.encodePaymentSignatureHeader(await client.createPaymentPayload(required));
  }

  metrics(): Promise<Samples> {
    return scrape(this.admin);
  }

  ready(): Promise<{ status: number; reasons: string[] }> {
    return readiness(this.admin);
  }

  async health(upstream: string): Promise<{ status: string; detail?: string }> {
    const { upstreams } = (await call(`${this.url}/health`)).json() as {
      upstreams: Record<string, { status: string; detail?: string }>;
    };
    return upstreams[upstream] ?? expect.fail(`no ${upstream}`);
  }

  said(pattern: RegExp): Line[] {
    return this.lines.filter(({ msg }) => pattern.test(msg));
  }
}

async function until(what: string, done: () => Promise<boolean> | boolean, ms = 30_000): Promise<void> {
  const late = Date.now() + ms;
  while (!(await done())) {
    if (Date.now() > late) throw new Error(`it did not happen: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}

/** A TCP proxy that can be cut, as if the machine behind it were gone. */
async function cutter(
  port: number,
  host: string,
): Promise<{ port: number; cut(): void; mend(): void; close(): void }> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server: Server = createServer(socket => {
    if (isCut) return void socket.destroy();
    const behind = connect(port, host);
    for (const [one, other] of [
      [socket, behind],
      [behind, socket],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
      one.pipe(other);
    }
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const end = (): void => sockets.forEach(socket => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      end();
    },
    mend: () => void (isCut = false),
    close: () => {
      end();
      server.close();
    },
  };
}

describe('What log, metrics, /ready and /health say of', function () {
  this.timeout(120_000);
  allOnOneChain();

  it('a backend that fails: its calls are not charged, and it is degraded, though its probe succeeds', async () => {
    const server = await Watched.start('backend', {
      SUMMARIZER_URL: 'http://127.0.0.1:1/v1',
      SUMMARIZER_MODEL: 'none',
    });
    for (let n = 0; n < 3; n++) expect((await server.buy(`${TEXT} ${n}`)).status).to.equal(503);
    await until('the log is written', () => server.said(/^503 for summarize/).length === 3);
    expect(server.said(/^backend summarizer fails: the summarizer is not available/)).to.have.length(1);
    expect(server.said(/^503 for summarize/)[0]).to.include({
      level: 40,
      paid: false,
      operation: 'summarize',
    });
    expect(server.said(/^upstream failed$/)).to.have.length(1);
    const samples = await server.metrics();
    expect(samples.get('coinslot_upstream_errors_total{upstream="summarizer"}')).to.equal(3);
    expect(samples.get('coinslot_upstream_ok{upstream="summarizer"}')).to.equal(0);
    expect((await server.health('summarizer')).status).to.be.oneOf(['degraded', 'down']);
    expect(await server.ready()).to.deep.equal({ status: 200, reasons: [] });
  });

  it('a clock two days ahead: nothing but the times in the log, and nobody is charged too little or twice', async function () {
    if (spawnSync('faketime', ['--version']).status !== 0) return this.skip();
    const server = await Watched.start('clock', {}, ['faketime', '--exclude-monotonic', '-f', '+2d']);
    const path = `${server.url}/v1/summarize`;
    const payment = await server.sign();
    const [first, again] = [
      await post(path, { text: TEXT }, payment),
      await post(path, { text: TEXT }, payment),
    ];
    expect([first.status, again.status]).to.deep.equal([200, 200]);
    expect(again.body).to.deep.equal(first.body);
    await until('the sale is logged', () => server.said(/^sold summarize/).length === 1);
    expect(Number(server.said(/^sold summarize/)[0]?.['time'])).to.be.above(Date.now() + 47 * 3_600_000);
    expect(await server.ready()).to.deep.equal({ status: 200, reasons: [] });
    expect((await server.metrics()).get('coinslot_sales_total{operation="summarize"}')).to.equal(1);
    expect((await server.metrics()).get('coinslot_chain_view_age_seconds')).to.be.below(40);
    expect((await server.health('solana')).status).to.equal('ok');
  });

  it('a disk that is full, and has room again', async function () {
    const mounted = join(folder, 'full');
    await mkdir(mounted);
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', mounted]).status !== 0)
      return this.skip();
    try {
      const server = await Watched.start('disk', { DATABASE_URL: `file:${mounted}/ledger.db` });
      expect((await server.buy(`${TEXT} Room.`)).status).to.equal(200);
      await writeFile(join(mounted, 'filler'), Buffer.alloc(6 * 1024 * 1024)).catch(() => {});
      await until('it is not ready', async () => (await server.ready()).status === 503);
      expect((await server.ready()).reasons.join()).to.match(/ledger|disk/i);
      expect((await server.buy(`${TEXT} Full.`)).status).to.equal(503);
      await until('/health knows', async () => (await server.health('ledger')).status === 'down');
      const samples = await server.metrics();
      expect(samples.get('coinslot_ready')).to.equal(0);
      expect(samples.get('coinslot_ledger_errors_total')).to.be.above(0);
      expect(server.said(/^the ledger fails: /)).to.have.length(1);
      await rm(join(mounted, 'filler'));
      await until('it is ready', async () => (await server.ready()).status === 200);
      await until(
        'the end is told',
        () => server.said(/^the ledger is back after \d+ s \(\d+ failures\)/).length === 1,
      );
      expect((await server.buy(`${TEXT} Room again.`)).status).to.equal(200);
    } finally {
      spawnSync('umount', ['-l', mounted]);
    }
  });

  const database = process.env['TEST_DATABASE_URL'];
  (database ? it : it.skip)('a database that is gone and comes back (TEST_DATABASE_URL)', async () => {
    const place = await postgresPlace(database ?? '');
    const url = new URL(place.url);
    const line = await cutter(Number(url.port || 5432), url.hostname);
    url.host = `127.0.0.1:${line.port}`;
    try {
      const server = await Watched.start('database', { DATABASE_URL: url.href });
      expect((await server.buy(`${TEXT} Before.`)).status).to.equal(200);
      line.cut();
      await until('it is not ready', async () => (await server.ready()).status === 503);
      expect((await server.buy(`${TEXT} Meanwhile.`)).status).to.equal(503);
      expect((await server.ready()).reasons.join()).to.match(/PostgreSQL|ledger|within/);
      await until('/health knows', async () => (await server.health('ledger')).status !== 'ok');
      expect((await server.metrics()).get('coinslot_ledger_errors_total')).to.be.above(0);
      line.mend();
      await until('it is ready', async () => (await server.ready()).status === 200);
      await until('the end is told', () => server.said(/^the ledger is back after \d+ s/).length === 1);
      expect(server.said(/^the ledger fails: /)).to.have.length(1);
      expect((await server.buy(`${TEXT} After.`)).status).to.equal(200);
    } finally {
      line.close();
      await place.remove();
    }
  });
});
