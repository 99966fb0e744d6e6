import { expect } from 'chai';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { readConfig } from '../../src/config.js';
import { sourceOf } from '../../src/http/request-source.js';
import type { Event } from '../../src/observe/observer.js';
import { SourceLimits } from '../../src/http/source-limits.js';
import { openLedgerReader } from '../../src/ledger/store.js';
import { mcp, type ToolCall } from '../support/mcp-call.js';
import { scrape } from '../support/metrics.js';
import { openWorld, post, signFor, TEXT, type World } from '../support/world.js';

const FAR = '203.0.113.7';

const request = (remoteAddress: string, forwarded?: string): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

describe('limits per source', () => {
  it('let an address make 1 000 unpaid calls in a burst and 100 a second after that, and affect no other address', () => {
    let now = 0;
    const limits = new SourceLimits({ trustedProxies: 0 }, () => now);
    for (let n = 0; n < 1_000; n += 1) expect(limits.takeUnpaid(FAR)).to.equal(0);
    expect(limits.takeUnpaid(FAR)).to.equal(1);
    expect(limits.takeUnpaid('203.0.113.8')).to.equal(0);
    now += 1_000;
    for (let n = 0; n < 100; n += 1) expect(limits.takeUnpaid(FAR)).to.equal(0);
    expect(limits.wait(FAR)).to.equal(1);
  });

  it('count a refused call as ten, and say how long to wait', () => {
    const limits = new SourceLimits({ trustedProxies: 0 }, () => 0);
    for (let n = 0; n < 99; n += 1) limits.failed(FAR);
    expect(limits.wait(FAR)).to.equal(0);
    limits.failed(FAR);
    expect(limits.wait(FAR)).to.equal(1);
  });

  it('give back the cost of a message once it counts as a call', () => {
    const limits = new SourceLimits({ trustedProxies: 0 }, () => 0);
    for (let n = 0; n < 2_000; n += 1) {
      expect(limits.takeUnpaid(FAR)).to.equal(0);
      limits.giveBack(FAR);
    }
    for (let n = 0; n < 1_000; n += 1) expect(limits.takeUnpaid(FAR)).to.equal(0);
    expect(limits.takeUnpaid(FAR)).to.equal(1);
  });

  it('exempt loopback, unless a proxy is trusted', () => {
    const direct = new SourceLimits({ trustedProxies: 0 }, () => 0);
    const proxied = new SourceLimits({ trustedProxies: 1 }, () => 0);
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) {
      const source = direct.of(request(address));
      for (let n = 0; n < 2_000; n += 1) expect(direct.takeUnpaid(source)).to.equal(0);
      for (let n = 0; n < 1_000; n += 1) proxied.takeUnpaid(source);
      expect(proxied.takeUnpaid(source), address).to.equal(1);
    }
  });

  it('rely on as many proxies as are trusted, and no more', () => {
    const of = (trustedProxies: number, remote: string, forwarded?: string): string =>
      new SourceLimits({ trustedProxies }).of(request(remote, forwarded));
    expect(of(0, '127.0.0.1', FAR)).to.equal('127.0.0.1');
    expect(of(1, '127.0.0.1', `6.6.6.6, ${FAR}`)).to.equal(FAR);
    expect(of(2, '127.0.0.1', `6.6.6.6, ${FAR}, 10.0.0.2`)).to.equal(FAR);
    expect(of(1, '127.0.0.1', `${FAR}:51234`)).to.equal(FAR);
    expect(of(1, '127.0.0.1', '[2001:db8::7]:443')).to.equal('2001:db8:0:0');
    for (const forwarded of [undefined, '', 'unknown', '6.6.6.6, <script>'])
      expect(of(1, '10.0.0.2', forwarded)).to.equal('10.0.0.2');
  });

  it('close the connections of an address beyond 1 000, and only those', () => {
    const server = new EventEmitter();
    new SourceLimits({ trustedProxies: 0 }).watch(server as Server);
    const connect = (remoteAddress: string) => {
      const socket = Object.assign(new EventEmitter(), {
        remoteAddress,
        destroyed: false,
        destroy: () => {},
      });
      socket.destroy = () => void (socket.destroyed = true);
      server.emit('connection', socket);
      return socket;
    };
    const open = Array.from({ length: 1_000 }, () => connect(FAR));
    expect(open.some(({ destroyed }) => destroyed)).to.equal(false);
    expect(connect(FAR).destroyed).to.equal(true);
    expect(connect('203.0.113.8').destroyed).to.equal(false);
    open[0]?.emit('close');
    expect(connect(FAR).destroyed).to.equal(false);
    expect(connect(FAR).destroyed).to.equal(true);
  });

  it('count a /64 of IPv6 as one address, in any notation, and IPv4 in IPv6 as IPv4', () => {
    const one = ['2001:db8::7', '2001:DB8::8', '2001:0db8:0:0:ffff::1', '2001:db8:0:0:1:2:3:4'];
    expect(new Set(one.map(sourceOf))).to.deep.equal(new Set(['2001:db8:0:0']));
    expect(sourceOf('2001:db8:0:1::7')).to.equal('2001:db8:0:1');
    expect(sourceOf('fe80::1%eth0')).to.equal('fe80:0:0:0');
    for (const mapped of [
      '::ffff:203.0.113.7',
      '::FFFF:203.0.113.7',
      '::ffff:cb00:7107',
      '0:0:0:0:0:ffff:cb00:7107',
    ])
      expect(sourceOf(mapped), mapped).to.equal(FAR);
  });

  it('warn once, and name the setting, when an untrusted proxy exceeds them', () => {
    const lines: [object, string][] = [];
    const log = { warn: (fields: object, message: string) => void lines.push([fields, message]) };
    const limits = new SourceLimits({ trustedProxies: 0, log }, () => 0);
    const proxied = request('10.0.0.2', FAR);
    for (let n = 0; n < 1_000; n += 1) limits.takeUnpaid(limits.of(proxied));
    expect(lines, 'below the limit').to.deep.equal([]);
    limits.of(request('10.0.0.2'));
    expect(lines, 'without the header').to.deep.equal([]);
    for (let n = 0; n < 3; n += 1) limits.of(proxied);
    expect(lines).to.have.length(1);
    expect(lines[0]?.[0]).to.deep.equal({ source: '10.0.0.2' });
    expect(lines[0]?.[1])
      .to.include('set TRUST_PROXY to the number of proxies')
      .and.include('X-Forwarded-For');
    const trusting = new SourceLimits({ trustedProxies: 1, log }, () => 0);
    for (let n = 0; n < 1_001; n += 1) trusting.takeUnpaid(trusting.of(proxied));
    expect(lines.filter(([, message]) => message.includes('TRUST_PROXY'))).to.have.length(1);
  });

  it('report each refused call, and log it so that repetitions can be counted', () => {
    const lines: object[] = [];
    const log = { warn: (fields: object) => void lines.push(fields) };
    const told: Event[] = [];
    const observer = { tell: (event: Event) => void told.push(event) };
    const limits = new SourceLimits({ trustedProxies: 0, log, observer }, () => 0);
    for (let n = 0; n < 1_001; n += 1) limits.takeUnpaid(FAR);
    expect(told).to.deep.equal([{ kind: 'throttled' }]);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.have.property('source', FAR);
    expect(lines[0], 'what lines are counted by').to.have.property('error');
  });

  it('require a valid number of proxies', () => {
    expect(readConfig({ TRUST_PROXY: '2' }).trustedProxies).to.equal(2);
    expect(() => readConfig({ TRUST_PROXY: 'yes' })).to.throw('TRUST_PROXY');
  });
});

describe('a server behind a trusted proxy', function () {
  this.timeout(60_000);
  let world: World;
  const path = '/v1/summarize';
  const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });

  before(async () => {
    world = await openWorld({ TRUST_PROXY: '1' });
  });
  after(() => world.close());

  const rows = async (): Promise<number> => {
    const reader = await openLedgerReader({ url: `file:${world.stateDir}/ledger.db` });
    try {
      return (await reader.list()).length;
    } finally {
      await reader.close();
    }
  };

  it('refuses an address that floods it, but neither others nor a payment that it knows', async () => {
    const url = `${world.url}${path}`;
    const paid = await signFor(world, path);
    const first = await post(url, { text: TEXT }, { ...paid, ...from(FAR) });
    expect(first.status).to.equal(200);
    const fresh = await signFor(world, path);
    // These refusals count as 2 500 calls, of which at most 1 999 are kept, so the address has to wait for ten seconds.
    for (let n = 0; n < 250; n += 1)
      await post(url, { text: TEXT }, { 'payment-signature': 'bm90IG9uZQ==', ...from(FAR) });
    const garbage = await post(url, { text: TEXT }, { 'payment-signature': 'bm90IG9uZQ==', ...from(FAR) });
    expect(garbage.status).to.equal(503);
    expect(Number(garbage.headers.get('retry-after'))).to.be.greaterThan(0);
    const tool = { name: 'summarize', arguments: { text: TEXT } };
    const { message } = await mcp(world.url, 'tools/call', tool, from(FAR));
    expect(message.error?.message)
      .to.include('from your address')
      .and.include('was not read and costs nothing');
    const others = await mcp(world.url, 'tools/call', tool, from('203.0.113.9'));
    expect((others.message.result as ToolCall).structuredContent).to.have.property('accepts');
    const unpaid = await post(url, { text: TEXT }, from(FAR));
    expect(unpaid.status).to.equal(503);
    expect(Number(unpaid.headers.get('retry-after'))).to.be.greaterThan(0);
    expect(unpaid.json()['error']).to.include('were not charged').and.include('from your address');
    const before = await rows();
    const turnedAway = await post(url, { text: TEXT }, { ...fresh, ...from(FAR) });
    expect(turnedAway.status).to.equal(503);
    expect(Number(turnedAway.headers.get('retry-after'))).to.be.greaterThan(0);
    expect(await rows()).to.equal(before);
    const again = await post(url, { text: TEXT }, { ...paid, ...from(FAR) });
    expect(again.status).to.equal(200);
    expect(again.body.equals(first.body)).to.equal(true);
    expect((await post(url, { text: TEXT }, from('203.0.113.8'))).status).to.equal(402);
    expect((await post(url, { text: TEXT }, { ...fresh, ...from('203.0.113.8') })).status).to.equal(200);
  });

  it('refuses requests that have a payment and a wrong method beyond the limit, and reports only those it answered', async () => {
    const wrong = (address: string): Promise<Response> =>
      fetch(world.url + path, {
        method: 'DELETE',
        headers: { 'payment-signature': 'bm90IG9uZQ==', ...from(address) },
      });
    const name = 'coinslot_answers_total{operation="summarize",transport="http",status="405"}';
    const answered = async (): Promise<number> => (await scrape(world.server.admin.url)).get(name) ?? 0;
    const before = await answered();
    const statuses: number[] = [];
    for (let n = 0; n < 250; n += 1) statuses.push((await wrong('203.0.113.20')).status);
    const served = statuses.filter(status => status === 405).length;
    expect(served).to.be.within(100, 249);
    expect(await answered()).to.equal(before + served);
    const turnedAway = await wrong('203.0.113.20');
    expect(turnedAway.status).to.equal(503);
    expect(Number(turnedAway.headers.get('retry-after'))).to.be.greaterThan(0);
    expect(await turnedAway.json())
      .to.have.property('error')
      .that.includes('from your address');
    expect((await wrong('203.0.113.21')).status).to.equal(405);
  });
});
