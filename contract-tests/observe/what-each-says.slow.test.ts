import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { settleFault } from '../support/faults.js';
import { postgresPlace } from '../support/ledger-places.js';
import { allOnOneChain, facilitator, folder, rpc } from '../support/server-process.js';
import { until, Watched } from '../support/watched-server.js';
import { post, TEXT } from '../support/world.js';

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

describe('What log, metrics, /ready, /health and the operator page report for', function () {
  this.timeout(120_000);
  allOnOneChain();

  it('a failing backend: its calls are not charged, and it is reported as degraded although its probe succeeds', async () => {
    const server = await Watched.start('backend', {
      SUMMARIZER_URL: 'http://127.0.0.1:1/v1',
      SUMMARIZER_MODEL: 'none',
    });
    for (let n = 0; n < 3; n++) expect((await server.buy(`${TEXT} ${n}`)).status).to.equal(503);
    // The other two failures are summed up in one line at the end of the minute.
    await until('the log is written', () => server.said(/^503 for summarize/).length === 1);
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
    expect(await server.page('upstreams')).to.match(
      /summarizer (degraded|down) .*the last 3 calls failed, since [\dT:.-]+Z: the summarizer is not available/,
    );
    expect(await server.page('headline')).to.include('degraded');
  });

  it('a clock two days ahead: only the times in the log are wrong, and every buyer is charged once and in full', async function () {
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
    for (const upstream of ['solana', 'ledger', 'facilitator'])
      expect((await server.health(upstream)).status, upstream).to.equal('ok');
    expect(await server.page('came-in')).to.match(/Today 0\.01 USDC by 1 sale/);
    expect(await server.page('sales'), 'its age is measured by the same clock').to.match(
      /\b\d+ s ago summarize 0\.01/,
    );
    expect(await server.page('headline')).to.match(/\bok\b/);
  });

  it('a disk that is full, and then has room again', async function () {
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
      const failures = (): number => server.said(/^the ledger fails: /).length;
      const ends = (): number => server.said(/^the ledger is back after \d+ s \(\d+ failures\)/).length;
      // A write that fits into the pages that the file already has can succeed in between.
      await until('the failure is told', () => failures() === ends() + 1);
      expect(await server.page('upstreams')).to.match(/ledger down/);
      expect(await server.page('headline')).to.include('degraded');
      expect(await server.page('sales'), 'it can still be read').to.include('summarize 0.01');
      await rm(join(mounted, 'filler'));
      await until('it is ready', async () => (await server.ready()).status === 200);
      await until('the end is told', () => ends() === failures());
      expect((await server.buy(`${TEXT} Room again.`)).status).to.equal(200);
      await until('/health knows', async () => (await server.health('ledger')).status === 'ok');
      expect(await server.page('upstreams')).to.match(/ledger ok/);
    } finally {
      spawnSync('umount', ['-l', mounted]);
    }
  });

  it('a facilitator that does not answer, and then recovers', async () => {
    const server = await Watched.start('silent', {});
    const payments = await Promise.all(Array.from({ length: 4 }, () => server.sign()));
    facilitator.intervene(({ drop }) => drop());
    for (const [n, payment] of payments.entries())
      expect((await post(`${server.url}/v1/summarize`, { text: `${TEXT} ${n}` }, payment)).status).to.equal(
        503,
      );
    await until('it is not ready', async () => (await server.ready()).status === 503);
    expect((await server.ready()).reasons).to.deep.equal(['no facilitator answers']);
    await until('the log is written', () => server.said(/^facilitator .* fails: /).length === 1);
    expect(server.said(/^no usable answer from the facilitator$/), 'once, however many').to.have.length(1);
    const samples = await server.metrics();
    const { host } = new URL(facilitator.url);
    expect(samples.get(`coinslot_breaker_open{service="${host}/"}`)).to.equal(1);
    expect(samples.get('coinslot_ready')).to.equal(0);
    await until('/health knows', async () => (await server.health('facilitator')).status === 'down');
    expect(await server.page('facilitators')).to.match(/ down open, next try in \d+ s .*down since/);
    expect(await server.page('headline')).to.include('degraded');
    facilitator.intervene(undefined);
    await until('it is ready', async () => (await server.ready()).status === 200);
    expect((await server.buy(`${TEXT} Again.`)).status).to.equal(200);
    await until('the end is told', () => server.said(/^facilitator .* is back after \d+ s/).length === 1);
    await until('/health knows', async () => (await server.health('facilitator')).status === 'ok');
    expect(await server.page('facilitators')).to.match(/ ok closed /);
  });

  it("a chain that can't be read, and then recovers", async () => {
    const server = await Watched.start('chain gone', {});
    const payment = await server.sign();
    rpc.intervene(({ drop }) => drop());
    await until('it is not ready', async () => (await server.ready()).status === 503, 90_000);
    expect((await server.ready()).reasons).to.deep.equal([
      'no Solana RPC server has given a usable answer for 40 s',
    ]);
    expect((await post(`${server.url}/v1/summarize`, { text: TEXT }, payment)).status).to.equal(503);
    expect(server.said(/^no usable answer from the Solana RPC/)).to.have.length(1);
    const samples = await server.metrics();
    expect(samples.get('coinslot_chain_view_age_seconds')).to.be.above(39);
    expect(samples.get('coinslot_ready')).to.equal(0);
    await until('/health knows', async () => (await server.health('solana')).status === 'down');
    expect(await server.page('upstreams')).to.match(/solana down/);
    rpc.intervene(undefined);
    await until('it is ready', async () => (await server.ready()).status === 200);
    await until(
      'the end is told',
      () => server.said(/^the Solana RPC is answering again after \d+ s/).length === 1,
    );
    await until('/health knows', async () => (await server.health('solana')).status === 'ok');
    expect(await server.page('upstreams')).to.match(/solana ok/);
    expect((await server.buy(`${TEXT} Again.`)).status).to.equal(200);
  });

  it('a server that shuts down: it is not ready, and finishes what it began', async () => {
    const server = await Watched.start('stopping', {});
    let began = false;
    facilitator.intervene(async ({ forward, respond }) => {
      began = true;
      await new Promise(resolve => setTimeout(resolve, 3_000));
      const answer = await forward();
      respond(answer.status, answer.body);
    });
    const bought = server.buy(TEXT);
    await until('it has begun', () => began);
    server.stop();
    await until('it is not ready', async () => (await server.ready()).status === 503);
    expect((await server.ready()).reasons).to.include('the server is shutting down');
    expect((await server.metrics()).get('coinslot_ready')).to.equal(0);
    expect((await bought).status).to.equal(200);
    await until('the log ends', () => server.said(/^stopped$/).length === 1);
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
      for (const section of ['came-in', 'sales', 'attention'] as const)
        expect(await server.page(section), section).to.include('The ledger cannot be read at the moment');
      expect(await server.page('upstreams')).to.match(/ledger (down|degraded)/);
      line.mend();
      await until('it is ready', async () => (await server.ready()).status === 200);
      await until('the end is told', () => server.said(/^the ledger is back after \d+ s/).length === 1);
      expect(server.said(/^the ledger fails: /)).to.have.length(1);
      expect((await server.buy(`${TEXT} After.`)).status).to.equal(200);
      await until('/health knows', async () => (await server.health('ledger')).status === 'ok');
      expect(await server.page('upstreams')).to.match(/ledger ok/);
      expect(await server.page('came-in')).to.match(/Today 0\.02 USDC by 2 sales/);
    } finally {
      line.close();
      await place.remove();
    }
  });
});

describe('What log, metrics, /ready, /health and the operator page report on a fast chain for', function () {
  this.timeout(120_000);
  allOnOneChain({ slotMs: 100 });

  it('a facilitator that reports a settlement which never happened, when the chain proves it', async () => {
    const server = await Watched.start('liar', {});
    facilitator.intervene(async ask => {
      if (ask.path.endsWith('/settle')) return settleFault('lie')(ask);
      const answer = await ask.forward();
      ask.respond(answer.status, answer.body);
    });
    expect((await server.buy(`${TEXT} Believed.`)).status).to.equal(200);
    expect(await server.page('facilitators')).to.match(/ ok closed /);
    const LIE = /^THE FACILITATOR REPORTED A SETTLEMENT THAT IS NOT ON CHAIN/;
    await until('the lie is told', () => server.said(LIE).length > 0, 90_000);
    expect(server.said(LIE)).to.have.length(1);
    expect(server.said(LIE)[0]).to.include({ level: 50, operation: 'summarize', usdc: '0.01' });
    expect(server.said(LIE)[0]).to.include.keys('payment', 'payer', 'settlement');
    expect((await server.metrics()).get('coinslot_false_settlements_total{operation="summarize"}')).to.equal(
      1,
    );
    expect(await server.ready()).to.deep.equal({ status: 200, reasons: [] });
    expect((await server.health('facilitator')).status).to.equal('ok');
    expect(await server.page('facilitators')).to.match(
      /degraded .*it has reported a settlement that is not on chain/,
    );
    const doubted = await server.buy(`${TEXT} Doubted.`);
    expect(doubted.status, 'not believed any more').to.equal(503);
    facilitator.intervene(undefined);
    expect((await server.buy(`${TEXT} True.`)).status).to.equal(200);
  });
});
