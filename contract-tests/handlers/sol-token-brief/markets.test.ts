import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  FAILURES,
  GOOD,
  KINDS,
  MINT,
  OTHER,
  deadlineFor,
  geckoToken,
  eachWithANewMarket,
  json,
  jupiterToken,
  market,
  open,
  pool,
  service,
  sources,
  type Behaviour,
  type Kind,
} from '../../support/aggregators.js';
import { failureOf } from '../../support/failure.js';

describe('market data', () => {
  eachWithANewMarket();

  describe('wire formats', () => {
    it('Jupiter: asks for the mint with the API key, and reads every field', async () => {
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
        change24hPercent: -8.27,
        topHoldersPercent: 15.45,
        verdict: {
          suspicious: false,
          organic: undefined,
          developerPercent: undefined,
          developerMigrations: undefined,
        },
        verified: true,
        firstPoolAt: '2024-01-29T17:33:29.000Z',
        updatedAt: '2026-01-01T23:59:50.000Z',
      });
      expect(market.asked[0]?.url).to.equal(`/jupiter/tokens/v2/search?query=${MINT}`);
      expect(market.asked[0]?.headers['x-api-key']).to.equal('k-1');
    });

    it('Jupiter: sends no key header without a key', async () => {
      await sources().jupiter.quote(MINT, open());
      expect(market.asked[0]?.headers).to.not.have.property('x-api-key');
    });

    it('Jupiter: an empty list or a list of other tokens means that there is no market', async () => {
      const { jupiter } = sources();
      market.behave.jupiter = json([]);
      expect(await jupiter.quote(MINT, open())).to.equal(undefined);
      market.behave.jupiter = json([jupiterToken({ id: OTHER })]);
      expect(await jupiter.quote(MINT, open())).to.equal(undefined);
      market.behave.jupiter = json([jupiterToken({ id: OTHER, usdPrice: 5 }), jupiterToken()]);
      expect((await jupiter.quote(MINT, open()))?.priceUsd).to.equal(1);
    });

    it('GeckoTerminal: an empty figure is unknown, named in the brief, and does not affect the others', async () => {
      market.behave.jupiter = market.behave.dexscreener = json([]);
      market.behave.geckoterminal = json(geckoToken({ market_cap_usd: '', volume_usd: { h24: '' } }));
      const { priceUsd, mcapUsd, volume24hUsd, brief } = await service().brief(MINT, open());
      expect([priceUsd, mcapUsd, volume24hUsd]).to.deep.equal([1.02, null, null]);
      expect(brief).to.contain('market cap n/a').and.contain('24h volume n/a');
    });

    it('Jupiter: an implausible change, share, flag or time is unknown, and does not affect other figures', async () => {
      for (const [change, share, flag, at] of [
        [-100.1, 101, 'yes', 'soon'],
        ['5', -1, 1, 0],
        [1e10, null, null, '9'.repeat(50)],
      ]) {
        market.behave.jupiter = json([
          jupiterToken({
            stats24h: { priceChange: change },
            audit: { topHoldersPercentage: share },
            isVerified: flag,
            firstPool: { createdAt: at },
          }),
        ]);
        const quote = await sources().jupiter.quote(MINT, open());
        expect(quote).to.include({ priceUsd: 1, change24hPercent: undefined, topHoldersPercent: undefined });
        expect(quote).to.include({ verified: undefined, firstPoolAt: undefined });
      }
    });

    it('DexScreener: the change is the median of the pools whose price counts', async () => {
      const changed = (price: string, h24: unknown) => pool(price, { priceChange: { h24 } });
      market.behave.dexscreener = json([
        changed('1', 3),
        changed('1.01', -2),
        changed('1.02', 1),
        changed('9', 800),
      ]);
      expect((await sources().dexscreener.quote(MINT, open()))?.change24hPercent).to.equal(1);
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
        change24hPercent: undefined,
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

    it('DexScreener: with fewer than three pools, none is dropped, and if two contradict each other, the lower price counts', async () => {
      market.behave.dexscreener = json([pool('1'), pool('10')]);
      const quote = await sources().dexscreener.quote(MINT, open());
      expect(quote?.priceUsd).to.equal(1);
      expect(quote?.liquidityUsd).to.equal(1_400);
    });

    it('DexScreener: ignores pools on other chains, pools with the token as quote, and pools without a price or with hostile figures', async () => {
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

    it('DexScreener: a market cap that repeats the FDV is ignored', async () => {
      market.behave.dexscreener = json([pool('1', { marketCap: 10_000 })]);
      expect((await sources().dexscreener.quote(MINT, open()))?.mcapUsd).to.equal(undefined);
    });

    it('DexScreener: an answer that has only pools of another token is a failure', async () => {
      market.behave.dexscreener = json([pool('1', { baseToken: { address: OTHER } })]);
      expect((await failureOf(sources().dexscreener.quote(MINT, open()))).kind).to.equal('failed');
    });

    it('GeckoTerminal: reads decimal strings, and reads a null market cap as unknown', async () => {
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

    it('GeckoTerminal: a 404 means that there is no market, and data of another token is a failure', async () => {
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
      ['an impossibly large market cap', 'jupiter', json([jupiterToken({ mcap: 1e30 })])],
      ['half a holder', 'jupiter', json([jupiterToken({ holderCount: 0.5 })])],
      ['a score of 1000', 'jupiter', json([jupiterToken({ organicScore: 1_000 })])],
      ['NaN', 'geckoterminal', json(geckoToken({ price_usd: 'NaN' }))],
      ['a script as price', 'geckoterminal', json(geckoToken({ price_usd: '<script>' }))],
      ['a negative reserve', 'geckoterminal', json(geckoToken({ total_reserve_in_usd: '-1' }))],
      ['nothing but unpriced pools', 'dexscreener', json([pool('0'), pool(null)])],
    ];
    for (const [what, kind, behave] of hostile) {
      it(`${kind}: fails on ${what}, and continues to work for other tokens`, async () => {
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

    it('is unavailable if it refuses connections', async () => {
      const { jupiter } = sources();
      await market.stop();
      expect((await failureOf(jupiter.quote(MINT, open()))).kind).to.equal('unavailable');
      await market.start();
    });

    it('gets the request again immediately if it closed an idle connection', async () => {
      const { jupiter } = sources();
      let dropped = 0;
      market.behave.jupiter = (request, response) => {
        if (dropped++ === 0) request.socket.destroy();
        else GOOD.jupiter(request, response);
      };
      expect((await jupiter.quote(MINT, open()))?.priceUsd).to.equal(1);
      expect(market.count('jupiter')).to.equal(2);
    });

    it('reuses its connections for consecutive calls', async () => {
      const { jupiter } = sources();
      for (let call = 0; call < 20; call += 1) await jupiter.quote(MINT, open());
      expect(market.count('jupiter')).to.equal(20);
      // The pool may open a second connection while the first is being returned.
      expect(market.connections.size).to.be.at.most(2);
    });

    it('a caller who leaves ends the call with that reason, and does not open the circuit', async () => {
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

    it('gets no requests after consecutive failures, then a single probe, and recovers', async () => {
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

    it('is paused for the time that its first 429 names', async () => {
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

    it('is not paused by a 4xx answer, which may be about a single token', async () => {
      const { geckoterminal } = sources({ breaker: { failures: 1, restMs: 60_000 } });
      market.behave.geckoterminal = json({ errors: [] }, 422);
      expect((await failureOf(geckoterminal.quote(MINT, open()))).kind).to.equal('failed');
      market.behave.geckoterminal = GOOD.geckoterminal;
      expect((await geckoterminal.quote(MINT, open()))?.priceUsd).to.equal(1.02);
    });
  });
});
