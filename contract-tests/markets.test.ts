import { expect } from 'chai';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { UpstreamFailure } from '../src/upstreams/failure.js';
import { createTokenBrief, type TokenBriefOptions } from '../src/upstreams/markets/brief.js';
import type { MarketSource } from '../src/upstreams/markets/source.js';
import { createMarketSources } from '../src/upstreams/markets/sources.js';

const MINT = 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN';
const OTHER = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const open = () => new AbortController().signal;

type Behaviour = (request: IncomingMessage, response: ServerResponse) => void;
type Kind = 'jupiter' | 'dexscreener' | 'geckoterminal';
const KINDS: Kind[] = ['jupiter', 'dexscreener', 'geckoterminal'];

const json =
  (body: unknown, status = 200): Behaviour =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

const jupiterToken = (more: object = {}) => ({
  id: MINT,
  name: 'Jupiter',
  symbol: 'JUP',
  icon: null,
  decimals: 6,
  circSupply: 3_000,
  holderCount: 857_247,
  fdv: 10_000,
  mcap: 3_000,
  usdPrice: 1,
  liquidity: 2_000,
  stats24h: { buyVolume: 300, sellVolume: 200.5 },
  organicScore: 98.08,
  ...more,
});

const pool = (priceUsd: unknown, more: object = {}) => ({
  chainId: 'solana',
  dexId: 'orca',
  baseToken: { address: MINT, name: 'Jupiter', symbol: 'JUP' },
  quoteToken: { address: OTHER, name: 'USD Coin', symbol: 'USDC' },
  priceNative: '1',
  priceUsd,
  volume: { h24: 100 },
  liquidity: { usd: 700, base: 1, quote: 1 },
  fdv: 10_000,
  marketCap: 3_100,
  ...more,
});

const geckoToken = (more: object = {}) => ({
  data: {
    id: `solana_${MINT}`,
    type: 'token',
    attributes: {
      address: MINT,
      name: 'Jupiter',
      symbol: 'JUP',
      price_usd: '1.02',
      fdv_usd: '10200.0',
      total_reserve_in_usd: '2500.5',
      volume_usd: { h24: '450.25' },
      market_cap_usd: null,
      ...more,
    },
  },
});

const GOOD: Record<Kind, Behaviour> = {
  jupiter: json([jupiterToken()]),
  dexscreener: json([pool('1.01'), pool('1.0'), pool('1.02')]),
  geckoterminal: json(geckoToken()),
};

/** Names what a source does wrong, and how it fails for it. */
const FAILURES: Record<string, { behave: Behaviour; kind: 'failed' | 'unavailable' }> = {
  'never answers': { behave: () => {}, kind: 'failed' },
  'stops in mid-answer': {
    kind: 'failed',
    behave: (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 5_000 });
      response.write('[{"id":');
      setTimeout(() => response.destroy(), 20);
    },
  },
  'stalls in mid-answer': {
    kind: 'failed',
    behave: (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 5_000 });
      response.write('[{"id":');
    },
  },
  'answers too much': {
    kind: 'failed',
    behave: (_request, response) => response.end(`["${'x'.repeat(2_100_000)}"]`),
  },
  'answers 429': {
    kind: 'unavailable',
    behave: (_request, response) =>
      response.writeHead(429, { 'retry-after': '7' }).end('{"message":"slow down"}'),
  },
  'answers 500': { behave: json({ error: 'boom' }, 500), kind: 'failed' },
  'answers 401': { behave: json({ code: 401, message: 'no' }, 401), kind: 'failed' },
  'answers a redirect': {
    behave: (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end(),
    kind: 'failed',
  },
  'answers a page of HTML': { behave: json('<html><h1>Just a moment…</h1></html>'), kind: 'failed' },
  'answers a 404 page of HTML': { behave: json('<html>no such page</html>', 404), kind: 'failed' },
  'answers JSON of another shape': { behave: json({ pairs: 'none' }), kind: 'failed' },
  'answers null': { behave: json('null'), kind: 'failed' },
  'cuts the connection': { behave: request => request.socket.destroy(), kind: 'failed' },
};

/** Short only where the deadline itself is what ends the call. */
const deadlineFor = (what: string, short = 500): number => (/never|stalls/.test(what) ? short : 4_000);

/** The three aggregators on one server; `behave` may be changed at any time. */
class Aggregators {
  readonly behave: Record<Kind, Behaviour> = { ...GOOD };
  readonly asked: IncomingMessage[] = [];
  readonly connections = new Set<unknown>();
  readonly #server: Server = createServer((request, response) => {
    this.asked.push(request);
    const kind = KINDS.find(name => request.url?.startsWith(`/${name}/`));
    if (kind) this.behave[kind](request, response);
    else response.writeHead(404).end();
  });
  url = '';

  async start(): Promise<this> {
    this.#server.on('connection', socket => this.connections.add(socket));
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  count(kind: Kind): number {
    return this.asked.filter(request => request.url?.startsWith(`/${kind}/`)).length;
  }

  async stop(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

async function failureOf(promise: Promise<unknown>): Promise<UpstreamFailure> {
  const error = await promise.then(
    value => expect.fail(`answered ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(UpstreamFailure);
  return error as UpstreamFailure;
}

describe('market data', () => {
  let market: Aggregators;
  let opened: { close(): Promise<void> }[];

  beforeEach(async () => {
    market = await new Aggregators().start();
    opened = [];
  });
  afterEach(async () => {
    await market.stop();
    await Promise.all(opened.map(each => each.close()));
  });

  type Options = Parameters<typeof createMarketSources>[0];
  function sources(options: Options = {}): Record<Kind, MarketSource> {
    const [jupiter, dexscreener, geckoterminal] = createMarketSources({ marketUrl: market.url, ...options });
    if (!jupiter || !dexscreener || !geckoterminal) throw new Error('a source is missing');
    opened.push(jupiter, dexscreener, geckoterminal);
    return { jupiter, dexscreener, geckoterminal };
  }

  function service(options: Partial<TokenBriefOptions> = {}, sourceOptions: Options = {}) {
    const made = createTokenBrief({
      sources: createMarketSources({ marketUrl: market.url, deadlineMs: 4_000, ...sourceOptions }),
      supplyOf: async () => ({ supply: '10000.000000', decimals: 6 }),
      ...options,
    });
    opened.push(made);
    return made;
  }

  describe('wire formats', () => {
    it('Jupiter: asks for the mint with its key and reads every field', async () => {
      const { jupiter } = sources({ jupiterApiKey: 'k-1' });
      expect(await jupiter.quote(MINT, open())).to.deep.equal({
        symbol: 'JUP',
        name: 'Jupiter',
        priceUsd: 1,
        mcapUsd: 3_000,
        liquidityUsd: 2_000,
        volume24hUsd: 500.5,
        holders: 857_247,
        organicScore: 98.08,
      });
      expect(market.asked[0]?.url).to.equal(`/jupiter/tokens/v2/search?query=${MINT}`);
      expect(market.asked[0]?.headers['x-api-key']).to.equal('k-1');
    });

    it('Jupiter: sends no key header without a key', async () => {
      await sources().jupiter.quote(MINT, open());
      expect(market.asked[0]?.headers).to.not.have.property('x-api-key');
    });

    it('Jupiter: an empty list and fuzzy matches are no market', async () => {
      const { jupiter } = sources();
      market.behave.jupiter = json([]);
      expect(await jupiter.quote(MINT, open())).to.equal(undefined);
      market.behave.jupiter = json([jupiterToken({ id: OTHER })]);
      expect(await jupiter.quote(MINT, open())).to.equal(undefined);
      market.behave.jupiter = json([jupiterToken({ id: OTHER, usdPrice: 5 }), jupiterToken()]);
      expect((await jupiter.quote(MINT, open()))?.priceUsd).to.equal(1);
    });

    it('Jupiter: null figures are unknown, not zero', async () => {
      market.behave.jupiter = json([
        jupiterToken({ usdPrice: null, mcap: null, liquidity: null, holderCount: null, stats24h: null }),
      ]);

      const quote = await sources().jupiter.quote(MINT, open());
      expect(quote?.symbol).to.equal('JUP');
      for (const field of ['priceUsd', 'mcapUsd', 'liquidityUsd', 'holders', 'volume24hUsd'] as const) {
        expect(quote?.[field]).to.equal(undefined);
      }
    });

    it('DexScreener: the price is the median of the pools, liquidity and volume their sums', async () => {
      const quote = await sources().dexscreener.quote(MINT, open());
      expect(quote).to.deep.equal({
        symbol: 'JUP',
        name: 'Jupiter',
        priceUsd: 1.01,
        mcapUsd: 3_100,
        liquidityUsd: 2_100,
        volume24hUsd: 300,
      });
      expect(market.asked[0]?.url).to.equal(`/dexscreener/token-pairs/v1/solana/${MINT}`);
    });

    it('DexScreener: a deep mispriced pool moves neither price nor liquidity', async () => {
      market.behave.dexscreener = json([
        pool('4950', { liquidity: { usd: 421e6 }, volume: { h24: 9e6 } }),
        pool('1.01'),
        pool('1.0'),
        pool('1.02'),
      ]);

      const quote = await sources().dexscreener.quote(MINT, open());
      expect(quote?.priceUsd).to.equal(1.01);
      expect(quote?.liquidityUsd).to.equal(2_100);
      expect(quote?.volume24hUsd).to.equal(300);
    });

    it('DexScreener: under three pools none is dropped, and of two that contradict the lower price counts', async () => {
      market.behave.dexscreener = json([pool('1'), pool('10')]);
      const quote = await sources().dexscreener.quote(MINT, open());
      expect(quote?.priceUsd).to.equal(1);
      expect(quote?.liquidityUsd).to.equal(1_400);
    });

    it('DexScreener: leaves out pools of other chains, of the token as quote, without a price and with hostile figures', async () => {
      const asQuote = { baseToken: { address: OTHER }, quoteToken: { address: MINT } };
      market.behave.dexscreener = json([
        pool('1.0'),
        pool('7', asQuote),
        pool('7', { chainId: 'ethereum' }),
        pool(undefined),
        pool('-7'),
        pool('NaN'),
        pool('1', { liquidity: { usd: -5e9 } }),
        pool('1', { volume: { h24: '1e3' } }),
        'junk',
        null,
      ]);

      const quote = await sources().dexscreener.quote(MINT, open());
      expect(quote?.priceUsd).to.equal(1);
      expect(quote?.liquidityUsd).to.equal(700);
      market.behave.dexscreener = json([pool('7', asQuote)]);
      expect(await sources().dexscreener.quote(MINT, open())).to.equal(undefined);
    });

    it('DexScreener: a market cap that repeats the fdv is none', async () => {
      market.behave.dexscreener = json([pool('1', { marketCap: 10_000 })]);
      expect((await sources().dexscreener.quote(MINT, open()))?.mcapUsd).to.equal(undefined);
    });

    it('DexScreener: pools of another token alone are a failure', async () => {
      market.behave.dexscreener = json([pool('1', { baseToken: { address: OTHER } })]);
      expect((await failureOf(sources().dexscreener.quote(MINT, open()))).kind).to.equal('failed');
    });

    it('GeckoTerminal: reads decimal strings, a null market cap is unknown', async () => {
      const quote = await sources().geckoterminal.quote(MINT, open());
      expect(quote).to.deep.equal({
        symbol: 'JUP',
        name: 'Jupiter',
        priceUsd: 1.02,
        mcapUsd: undefined,
        liquidityUsd: 2_500.5,
        volume24hUsd: 450.25,
      });
      expect(market.asked[0]?.url).to.equal(`/geckoterminal/api/v2/networks/solana/tokens/${MINT}`);
    });

    it('GeckoTerminal: 404 is no market, another token a failure', async () => {
      const { geckoterminal } = sources();
      market.behave.geckoterminal = json({ errors: [{ status: '404', title: 'Not Found' }] }, 404);
      expect(await geckoterminal.quote(MINT, open())).to.equal(undefined);
      market.behave.geckoterminal = json(geckoToken({ address: OTHER }));
      expect((await failureOf(geckoterminal.quote(MINT, open()))).kind).to.equal('failed');
    });

    const hostile: [string, Kind, Behaviour][] = [
      ['a negative price', 'jupiter', json([jupiterToken({ usdPrice: -1 })])],
      ['a price as a string', 'jupiter', json([jupiterToken({ usdPrice: '1' })])],
      [
        'an overflowing price',
        'jupiter',
        json(JSON.stringify([jupiterToken()]).replace('"usdPrice":1', '"usdPrice":1e999')),
      ],
      ['a market cap beyond all money', 'jupiter', json([jupiterToken({ mcap: 1e30 })])],
      ['half a holder', 'jupiter', json([jupiterToken({ holderCount: 0.5 })])],
      ['a score of 1000', 'jupiter', json([jupiterToken({ organicScore: 1_000 })])],
      ['NaN', 'geckoterminal', json(geckoToken({ price_usd: 'NaN' }))],
      ['a script as price', 'geckoterminal', json(geckoToken({ price_usd: '<script>' }))],
      ['a negative reserve', 'geckoterminal', json(geckoToken({ total_reserve_in_usd: '-1' }))],
      ['nothing but unpriced pools', 'dexscreener', json([pool('0'), pool(null)])],
    ];
    for (const [what, kind, behave] of hostile) {
      it(`${kind}: fails on ${what}, and stays open for other tokens`, async () => {
        market.behave[kind] = behave;
        const source = sources({ breaker: { failures: 1, restMs: 60_000 } })[kind];
        expect((await failureOf(source.quote(MINT, open()))).kind).to.equal('failed');
        market.behave[kind] = GOOD[kind];
        expect((await source.quote(MINT, open()))?.priceUsd).to.be.greaterThan(0);
      });
    }

    it('cleans hostile names and shortens long ones', async () => {
      const symbol = '<b>\u202eEVIL\u0000\n"</b>';
      market.behave.jupiter = json([jupiterToken({ symbol, name: 'x'.repeat(500) })]);
      const quote = await sources().jupiter.quote(MINT, open());
      expect(quote?.symbol).to.equal('bEVIL /b');
      expect(quote?.name).to.equal('x'.repeat(64));
    });

    it('puts the label before the name', () => {
      const names = Object.values(sources({ label: 'sandbox' })).map(source => source.name);
      expect(names).to.deep.equal(['sandbox:jupiter', 'sandbox:dexscreener', 'sandbox:geckoterminal']);
    });
  });

  describe('a source that misbehaves', () => {
    for (const [what, { behave, kind }] of Object.entries(FAILURES)) {
      for (const name of KINDS) {
        it(`${name} ${what}: ${kind}`, async () => {
          market.behave[name] = behave;
          const source = sources({ deadlineMs: deadlineFor(what, 200) })[name];
          const failure = await failureOf(source.quote(MINT, open()));
          expect(failure.kind).to.equal(kind);
          expect(failure.message)
            .to.match(new RegExp(`^${name} `))
            .and.not.contain('127.0.0.1');
          expect(source.health().status).to.equal(
            what === 'answers null' || what.includes('shape') || what.includes('404') ? 'ok' : 'degraded',
          );
        });
      }
    }

    it('that refuses connections is unavailable', async () => {
      const { jupiter } = sources();
      await market.stop();
      expect((await failureOf(jupiter.quote(MINT, open()))).kind).to.equal('unavailable');
      await market.start();
    });

    it('is asked again at once when it closed an idle connection', async () => {
      const { jupiter } = sources();
      let dropped = 0;
      market.behave.jupiter = (request, response) => {
        if (dropped++ === 0) request.socket.destroy();
        else GOOD.jupiter(request, response);
      };
      expect((await jupiter.quote(MINT, open()))?.priceUsd).to.equal(1);
      expect(market.count('jupiter')).to.equal(2);
    });

    it('keeps its connections for calls one after another', async () => {
      const { jupiter } = sources();
      for (let call = 0; call < 20; call += 1) await jupiter.quote(MINT, open());
      expect(market.count('jupiter')).to.equal(20);
      // The pool may open a second one while the first is being handed back.
      expect(market.connections.size).to.be.at.most(2);
    });

    it('ends with the reason of a caller who leaves, which opens no circuit', async () => {
      market.behave.jupiter = () => {};
      const { jupiter } = sources({ breaker: { failures: 1, restMs: 60_000 } });
      const caller = new AbortController();
      const gone = new Error('gone');
      const call = jupiter.quote(MINT, caller.signal).catch((error: unknown) => error);
      setTimeout(() => caller.abort(gone), 30);
      expect(await call).to.equal(gone);
      market.behave.jupiter = GOOD.jupiter;
      expect((await jupiter.quote(MINT, open()))?.priceUsd).to.equal(1);
    });

    it('is left alone after failures in a row, then probed by one request, and recovers', async () => {
      const { jupiter } = sources({ breaker: { failures: 2, restMs: 600 } });
      market.behave.jupiter = json({ error: 'boom' }, 500);
      await failureOf(jupiter.quote(MINT, open()));
      await failureOf(jupiter.quote(MINT, open()));
      const resting = await failureOf(jupiter.quote(MINT, open()));
      expect(resting.kind).to.equal('unavailable');
      expect(resting.retryAfterSeconds).to.equal(1);
      expect(market.count('jupiter')).to.equal(2);
      expect(jupiter.health().status).to.equal('degraded');
      market.behave.jupiter = (request, response) => setTimeout(() => GOOD.jupiter(request, response), 50);
      await sleep(700);
      const probes = await Promise.allSettled([1, 2, 3].map(() => jupiter.quote(MINT, open())));
      expect(probes.map(probe => probe.status)).to.deep.equal(['fulfilled', 'rejected', 'rejected']);
      expect(market.count('jupiter')).to.equal(3);
      expect((await jupiter.quote(MINT, open()))?.priceUsd).to.equal(1);
      expect(jupiter.health()).to.have.property('status', 'ok');
    });

    it('rests as long as its 429 asks for, from the first one on', async () => {
      const { geckoterminal } = sources({ breaker: { failures: 5, restMs: 60_000 } });
      market.behave.geckoterminal = (_request, response) =>
        response.writeHead(429, { 'retry-after': '1' }).end('{}');
      expect((await failureOf(geckoterminal.quote(MINT, open()))).retryAfterSeconds).to.equal(1);
      market.behave.geckoterminal = GOOD.geckoterminal;
      expect((await failureOf(geckoterminal.quote(MINT, open()))).kind).to.equal('unavailable');
      expect(market.count('geckoterminal')).to.equal(1);
      await sleep(1_100);
      expect((await geckoterminal.quote(MINT, open()))?.priceUsd).to.equal(1.02);
    });

    it('is not closed for all by 4xx answers about single tokens', async () => {
      const { geckoterminal } = sources({ breaker: { failures: 1, restMs: 60_000 } });
      market.behave.geckoterminal = json({ errors: [] }, 422);
      expect((await failureOf(geckoterminal.quote(MINT, open()))).kind).to.equal('failed');
      market.behave.geckoterminal = GOOD.geckoterminal;
      expect((await geckoterminal.quote(MINT, open()))?.priceUsd).to.equal(1.02);
    });
  });

  describe('the token brief', () => {
    it('combines three sources into exactly the fields of the specification', async () => {
      const brief = await service({ now: () => Date.UTC(2026, 0, 2) }).brief(MINT, open());
      expect(brief).to.deep.equal({
        mint: MINT,
        symbol: 'JUP',
        name: 'Jupiter',
        priceUsd: 1.01,
        mcapUsd: 3_000,
        fdvUsd: 10_100,
        liquidityUsd: 2_100,
        volume24hUsd: 450.25,
        holders: 857_247,
        organicScore: 98.08,
        brief:
          'JUP (JUPy…DvCN): price $1.01, market cap $3.00K, liquidity $2.10K, 24h volume $450.25. ' +
          'Sources: jupiter, dexscreener, geckoterminal. This is not financial advice.',
        sources: ['jupiter', 'dexscreener', 'geckoterminal'],
        asOf: '2026-01-02T00:00:00.000Z',
        disclaimer: 'Aggregated from public market data without warranty; not financial advice.',
      });
    });

    const SOLO: Record<Kind, number> = { jupiter: 1, dexscreener: 1.01, geckoterminal: 1.02 };
    for (const [what, { behave, kind }] of Object.entries(FAILURES)) {
      // Every stall takes a whole deadline: one source stands for all.
      for (const name of what.startsWith('stalls') ? KINDS.slice(0, 1) : KINDS) {
        it(`goes on without ${name} when it ${what}`, async () => {
          market.behave[name] = behave;
          const rest = KINDS.filter(other => other !== name);
          const brief = await service({}, { deadlineMs: deadlineFor(what) }).brief(MINT, open());
          expect(brief.sources).to.deep.equal(rest);
          expect(brief.priceUsd).to.be.closeTo(
            rest.reduce((sum, other) => sum + SOLO[other] / 2, 0),
            1e-9,
          );
          expect(brief.holders).to.equal(name === 'jupiter' ? null : 857_247);
        });

        it(`goes on with ${name} alone when the others do: ${what}`, async () => {
          for (const other of KINDS) if (other !== name) market.behave[other] = behave;
          const brief = await service({}, { deadlineMs: deadlineFor(what) }).brief(MINT, open());
          expect(brief.sources).to.deep.equal([name]);
          expect(brief.priceUsd).to.equal(SOLO[name]);
          expect(brief.fdvUsd).to.be.closeTo(SOLO[name] * 10_000, 1e-6);
        });
      }

      it(`is ${kind} when every source ${what}`, async () => {
        for (const name of KINDS) market.behave[name] = behave;
        const failure = await failureOf(service({}, { deadlineMs: deadlineFor(what) }).brief(MINT, open()));
        expect(failure.kind).to.equal(kind);
        for (const name of KINDS) expect(failure.message).to.contain(name);
        if (kind === 'unavailable') expect(failure.retryAfterSeconds).to.equal(7);
      });
    }

    it('is unavailable when nobody can be reached, and failed when one of them at least answered', async () => {
      const briefs = service();
      await market.stop();
      expect((await failureOf(briefs.brief(MINT, open()))).kind).to.equal('unavailable');
      market = await new Aggregators().start();
      market.behave.jupiter = FAILURES['answers 500']?.behave ?? GOOD.jupiter;
      market.behave.dexscreener = market.behave.geckoterminal =
        FAILURES['answers 429']?.behave ?? GOOD.jupiter;
      expect((await failureOf(service().brief(MINT, open()))).kind).to.equal('failed');
    });

    it('is unavailable while every circuit is open, and sends no request', async () => {
      const briefs = service({}, { breaker: { failures: 1, restMs: 60_000 } });
      for (const name of KINDS) market.behave[name] = json({}, 500);
      expect((await failureOf(briefs.brief(MINT, open()))).kind).to.equal('failed');
      const failure = await failureOf(briefs.brief(MINT, open()));
      expect(failure.kind).to.equal('unavailable');
      expect(failure.retryAfterSeconds).to.be.within(1, 60);
      expect(market.asked.length).to.equal(3);
      expect(Object.values(briefs.health()).map(health => health.status)).to.deep.equal(
        Array(3).fill('degraded'),
      );
    });

    it('takes two sources where the third knows nothing', async () => {
      market.behave.geckoterminal = json({ errors: [] }, 404);
      const brief = await service().brief(MINT, open());
      expect(brief.sources).to.deep.equal(['jupiter', 'dexscreener']);
      expect(brief.priceUsd).to.equal(1.005);
    });

    it('is not moved by a source that is off, but keeps its head count', async () => {
      market.behave.jupiter = json([jupiterToken({ usdPrice: 4_950, liquidity: 421e6, mcap: 9e9 })]);
      const brief = await service().brief(MINT, open());
      expect(brief.priceUsd).to.equal(1.015);
      expect(brief.liquidityUsd).to.equal(2_100);
      expect(brief.mcapUsd).to.equal(3_100);
      expect(brief.holders).to.equal(857_247);
      expect(brief.brief).to.not.contain('disagree');
    });

    it('of exactly two contradicting prices takes the lower one and says that they disagree', async () => {
      market.behave.geckoterminal = json({}, 500);
      market.behave.dexscreener = json([pool('4950', { liquidity: { usd: 421e6 } })]);
      const brief = await service().brief(MINT, open());
      expect(brief.priceUsd).to.equal(1);
      expect(brief.liquidityUsd).to.equal(2_000);
      expect(brief.sources).to.deep.equal(['jupiter']);
      expect(brief.brief).to.contain('low confidence: the sources disagree');
    });

    it('never fills the market cap from the fdv', async () => {
      market.behave.jupiter = json([jupiterToken({ mcap: null })]);
      market.behave.dexscreener = json([pool('1', { marketCap: 10_000 })]);
      const brief = await service().brief(MINT, open());
      expect(brief.mcapUsd).to.equal(null);
      expect(brief.fdvUsd).to.equal(10_000);
      expect(brief.brief).to.contain('market cap n/a');
    });

    it('values the largest supply to twelve digits and a supply of zero not at all', async () => {
      const valued = async (supply: string) => {
        const briefs = service({ supplyOf: async () => ({ supply, decimals: 6 }) });
        return (await briefs.brief(MINT, open())).fdvUsd;
      };
      expect(await valued('18446744073709.551615')).to.equal(18_631_211_514_400);
      expect(await valued('0.000000')).to.equal(null);
    });

    it('says so with nulls when nobody trades the token', async () => {
      market.behave.jupiter = market.behave.dexscreener = json([]);
      market.behave.geckoterminal = json({ errors: [] }, 404);
      const brief = await service().brief(MINT, open());
      for (const field of [
        'priceUsd',
        'mcapUsd',
        'fdvUsd',
        'liquidityUsd',
        'volume24hUsd',
        'holders',
        'organicScore',
      ] as const) {
        expect(brief[field]).to.equal(null);
      }
      expect(brief).to.not.have.any.keys('symbol', 'name');
      expect(brief.brief).to.match(
        /^Unnamed token \(JUPy…DvCN\): no market found, price n\/a.*not financial advice\.$/,
      );
      expect(brief.sources).to.deep.equal(KINDS);
    });

    it('does not take an empty list of DexScreener alone for a token without market', async () => {
      market.behave.jupiter = market.behave.geckoterminal = json({}, 500);
      market.behave.dexscreener = json([]);
      expect((await failureOf(service().brief(MINT, open()))).kind).to.equal('failed');
      market.behave.jupiter = json([]);
      expect((await service().brief(MINT, open())).sources).to.deep.equal(['jupiter', 'dexscreener']);
    });

    it('refuses what is no mint on the chain, and asks no source for it', async () => {
      const supplyOf = async () => Promise.reject(new UpstreamFailure('invalid', 'no such mint'));
      expect((await failureOf(service({ supplyOf }).brief(MINT, open()))).kind).to.equal('invalid');
      expect((await failureOf(service().brief('../../etc', open()))).kind).to.equal('invalid');
      expect(market.asked.length).to.equal(0);
    });

    it('passes on why the chain could not be read, and hides a stray error', async () => {
      const down = async () => Promise.reject(new UpstreamFailure('unavailable', 'the chain is down'));
      expect((await failureOf(service({ supplyOf: down }).brief(MINT, open()))).kind).to.equal('unavailable');
      const stray = async () => Promise.reject(new Error('http://secret/'));
      const failure = await failureOf(service({ supplyOf: stray }).brief(MINT, open()));
      expect(failure.kind).to.equal('failed');
      expect(failure.message).to.not.contain('secret');
    });

    it('stays one line whatever the names are', async () => {
      const evil = '\r\n\u2028JUP\u0085</script><script>alert(1)</script>\u202e';
      market.behave.jupiter = json([jupiterToken({ symbol: evil, name: evil })]);
      const { brief, symbol } = await service().brief(MINT, open());
      expect(brief).to.not.match(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}<>]/u);
      expect(symbol?.length).to.be.at.most(32);
    });

    it('marks stand-in data in the source names and the disclaimer', async () => {
      const brief = await service({ label: 'sandbox' }).brief(MINT, open());
      expect(brief.sources).to.deep.equal(KINDS.map(name => `sandbox:${name}`));
      expect(brief.disclaimer).to.contain('sandbox');
    });

    it('asks each source once for any number of callers at once, and again only after 15 seconds', async () => {
      let clock = 1_000_000;
      let supplies = 0;
      const supplyOf = async () => ((supplies += 1), { supply: '10000', decimals: 0 });
      const briefs = service({ now: () => clock, supplyOf });
      const all = await Promise.all(Array.from({ length: 20 }, () => briefs.brief(MINT, open())));
      expect(new Set(all.map(brief => JSON.stringify(brief))).size).to.equal(1);
      const counts = () => [supplies, ...KINDS.map(name => market.count(name))];
      expect(counts()).to.deep.equal([1, 1, 1, 1]);
      clock += 14_999;
      await briefs.brief(MINT, open());
      expect(counts()).to.deep.equal([1, 1, 1, 1]);
      clock += 1;
      const later = await briefs.brief(MINT, open());
      expect(counts()).to.deep.equal([2, 2, 2, 2]);
      expect(later.asOf).to.not.equal(all[0]?.asOf);
    });

    it('hands every caller a copy of its own', async () => {
      const briefs = service();
      const first = await briefs.brief(MINT, open());
      first.sources.push('forged');
      first.priceUsd = 0;
      const second = await briefs.brief(MINT, open());
      expect(second.sources).to.deep.equal(KINDS);
      expect(second.priceUsd).to.equal(1.01);
    });

    it('does not keep a failure', async () => {
      const briefs = service();
      for (const name of KINDS) market.behave[name] = json({}, 500);
      await failureOf(briefs.brief(MINT, open()));
      Object.assign(market.behave, GOOD);
      expect((await briefs.brief(MINT, open())).priceUsd).to.equal(1.01);
    });

    it('goes on for the others when the caller who started it leaves', async () => {
      market.behave.jupiter = (request, response) => setTimeout(() => GOOD.jupiter(request, response), 150);
      const briefs = service();
      const first = new AbortController();
      const gone = new Error('gone');
      const left = briefs.brief(MINT, first.signal).catch((error: unknown) => error);
      const stays = briefs.brief(MINT, open());
      setTimeout(() => first.abort(gone), 30);
      expect(await left).to.equal(gone);
      expect((await stays).sources).to.deep.equal(KINDS);
      expect(market.count('jupiter')).to.equal(1);
    });

    it('refuses more tokens at once than it can hold, and takes the next ones after', async () => {
      let release = () => {};
      const gate = new Promise<void>(resolve => (release = resolve));
      const supplyOf = async () => (await gate, { supply: '1', decimals: 0 });
      const briefs = service({ supplyOf });
      const mint = (index: number) =>
        MINT.slice(0, -2) + [...'123456789ABC'][Math.floor(index / 10)] + ((index % 9) + 1);
      const names = [...new Set(Array.from({ length: 120 }, (_, index) => mint(index)))];
      const running = names.slice(0, 64).map(name => briefs.brief(name, open()));
      const refused = await failureOf(briefs.brief(names[64] ?? '', open()));
      expect(refused.kind).to.equal('unavailable');
      for (const name of KINDS)
        market.behave[name] = json(name === 'geckoterminal' ? {} : [], name === 'geckoterminal' ? 404 : 200);
      release();
      await Promise.all(running);
      expect((await briefs.brief(names[64] ?? '', open())).priceUsd).to.equal(null);
    });

    it('ends running rounds when it is closed', async () => {
      for (const name of KINDS) market.behave[name] = () => {};
      const briefs = service();
      const running = failureOf(briefs.brief(MINT, open()));
      await sleep(50);
      await briefs.close();
      expect((await running).kind).to.equal('unavailable');
    });
  });
});
