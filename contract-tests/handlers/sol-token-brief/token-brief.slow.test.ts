import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import { UpstreamFailure } from '../../../src/net/failure.js';
import {
  openMarket,
  FAILURES,
  GOOD,
  KINDS,
  MINT,
  deadlineFor,
  eachWithANewMarket,
  json,
  jupiterToken,
  market,
  open,
  pool,
  service,
  type Kind,
} from '../../support/aggregators.js';
import { failureOf } from '../../support/failure.js';

describe('market data', () => {
  eachWithANewMarket();

  describe('the token brief', () => {
    const SOLO: Record<Kind, number> = { jupiter: 1, dexscreener: 1.01, geckoterminal: 1.02 };
    it('combines three sources into the fields of the specification and those added later', async () => {
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
        change24hPercent: -8.27,
        topHoldersPercent: 15.45,
        jupiterVerified: true,
        firstPoolAt: '2024-01-29T17:33:29.000Z',
        brief:
          'JUP (JUPy…DvCN): price $1.01 (sources within 2.0%), market cap $3.00K, liquidity $2.10K, 24h volume $450.25. ' +
          'Sources: jupiter, dexscreener, geckoterminal. This is not financial advice.',
        sources: ['jupiter', 'dexscreener', 'geckoterminal'],
        asOf: '2026-01-02T00:00:00.000Z',
        ageSeconds: 0,
        quotes: KINDS.map(source => ({
          source,
          priceUsd: SOLO[source],
          used: true,
          ...(source === 'jupiter' ? { updatedAt: '2026-01-01T23:59:50.000Z' } : {}),
        })),
        spread: 1.02,
        findings: [],
        warnings: [],
        disclaimer: 'Aggregated from public market data without warranty; not financial advice.',
      });
    });

    for (const [what, { behave, kind }] of Object.entries(FAILURES)) {
      // Every stall lasts until the deadline, so only one source is tested.
      for (const name of what.startsWith('stalls') ? KINDS.slice(0, 1) : KINDS) {
        it(`continues without ${name} when it ${what}`, async () => {
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

        it(`continues with ${name} alone when the others fail: ${what}`, async () => {
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

    it('is unavailable when no source can be reached, and failed when at least one answered', async () => {
      const briefs = service();
      await market.stop();
      expect((await failureOf(briefs.brief(MINT, open()))).kind).to.equal('unavailable');
      await openMarket();
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

    it('uses two sources if the third does not know the token', async () => {
      market.behave.geckoterminal = json({ errors: [] }, 404);
      const brief = await service().brief(MINT, open());
      expect(brief.sources).to.deep.equal(['jupiter', 'dexscreener']);
      expect(brief.priceUsd).to.equal(1.005);
    });

    it('ignores a price that is far from the others, but keeps the number of holders from the same source', async () => {
      market.behave.jupiter = json([jupiterToken({ usdPrice: 4_950, liquidity: 421e6, mcap: 9e9 })]);
      const brief = await service().brief(MINT, open());
      expect(brief.priceUsd).to.equal(1.015);
      expect(brief.liquidityUsd).to.equal(2_100);
      expect(brief.mcapUsd).to.equal(3_100);
      expect(brief.holders).to.equal(857_247);
      expect(brief.change24hPercent, 'of a price that was refused').to.equal(null);
      expect(brief.brief).to.not.contain('disagree');
    });

    it('takes the lower of exactly two contradicting prices, and says that they disagree', async () => {
      market.behave.geckoterminal = json({}, 500);
      market.behave.dexscreener = json([pool('4950', { liquidity: { usd: 421e6 } })]);
      const brief = await service().brief(MINT, open());
      expect(brief.priceUsd).to.equal(1);
      expect(brief.liquidityUsd).to.equal(2_000);
      expect(brief.sources).to.deep.equal(['jupiter']);
      expect(brief.brief).to.contain('low confidence: the sources disagree');
    });

    it('never uses the FDV as market cap', async () => {
      market.behave.jupiter = json([jupiterToken({ mcap: null })]);
      market.behave.dexscreener = json([pool('1', { marketCap: 10_000 })]);
      const brief = await service().brief(MINT, open());
      expect(brief.mcapUsd).to.equal(null);
      expect(brief.fdvUsd).to.equal(10_000);
      expect(brief.brief).to.contain('market cap n/a');
    });

    it('gives the value of the largest supply to twelve digits, and null for a supply of zero', async () => {
      const valued = async (supply: string) => {
        const briefs = service({ mintOf: async () => ({ supply, findings: [] }) });
        return (await briefs.brief(MINT, open())).fdvUsd;
      };
      expect(await valued('18446744073709.551615')).to.equal(18_631_211_514_400);
      expect(await valued('0.000000')).to.equal(null);
    });

    it('shows nulls when nobody trades the token', async () => {
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
        'change24hPercent',
        'topHoldersPercent',
        'jupiterVerified',
        'firstPoolAt',
      ] as const) {
        expect(brief[field]).to.equal(null);
      }
      expect(brief).to.not.have.any.keys('symbol', 'name');
      expect(brief.brief).to.match(
        /^Unnamed token \(JUPy…DvCN\): no market found, price n\/a.*not financial advice\.$/,
      );
      expect(brief.sources).to.deep.equal(KINDS);
    });

    it("does not conclude from DexScreener's empty list alone that a token has no market", async () => {
      market.behave.jupiter = market.behave.geckoterminal = json({}, 500);
      market.behave.dexscreener = json([]);
      expect((await failureOf(service().brief(MINT, open()))).kind).to.equal('failed');
      market.behave.jupiter = json([]);
      expect((await service().brief(MINT, open())).sources).to.deep.equal(['jupiter', 'dexscreener']);
    });

    it('rejects an address that is not a mint on the chain, without querying any source', async () => {
      const mintOf = async () => Promise.reject(new UpstreamFailure('invalid', 'no such mint'));
      expect((await failureOf(service({ mintOf }).brief(MINT, open()))).kind).to.equal('invalid');
      expect((await failureOf(service().brief('../../etc', open()))).kind).to.equal('invalid');
      expect(market.asked.length).to.equal(0);
    });

    it('passes on why the chain could not be read, and hides an unexpected error', async () => {
      const down = async () => Promise.reject(new UpstreamFailure('unavailable', 'the chain is down'));
      expect((await failureOf(service({ mintOf: down }).brief(MINT, open()))).kind).to.equal('unavailable');
      const stray = async () => Promise.reject(new Error('http://secret/'));
      const failure = await failureOf(service({ mintOf: stray }).brief(MINT, open()));
      expect(failure.kind).to.equal('failed');
      expect(failure.message).to.not.contain('secret');
    });

    it('is one line, whatever characters the names contain', async () => {
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

    it('asks each source once for any number of concurrent callers, and again only after 15 seconds', async () => {
      let clock = 1_000_000;
      let supplies = 0;
      const mintOf = async () => ((supplies += 1), { supply: '10000', findings: [] });
      const briefs = service({ now: () => clock, mintOf });
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

    it('gives every caller a separate copy', async () => {
      const briefs = service();
      const first = await briefs.brief(MINT, open());
      first.sources.push('forged');
      first.priceUsd = 0;
      const second = await briefs.brief(MINT, open());
      expect(second.sources).to.deep.equal(KINDS);
      expect(second.priceUsd).to.equal(1.01);
    });

    it('does not cache a failure', async () => {
      const briefs = service();
      for (const name of KINDS) market.behave[name] = json({}, 500);
      await failureOf(briefs.brief(MINT, open()));
      Object.assign(market.behave, GOOD);
      expect((await briefs.brief(MINT, open())).priceUsd).to.equal(1.01);
    });

    it('continues for the others when the caller who started it leaves', async () => {
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

    it('refuses a token while 64 others are being processed, and accepts it later', async () => {
      let release = () => {};
      const gate = new Promise<void>(resolve => (release = resolve));
      const mintOf = async () => (await gate, { supply: '1', findings: [] });
      const briefs = service({ mintOf });
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

    it('ends running requests when it is closed', async () => {
      for (const name of KINDS) market.behave[name] = () => {};
      const briefs = service();
      const running = failureOf(briefs.brief(MINT, open()));
      await sleep(50);
      await briefs.close();
      expect((await running).kind).to.equal('unavailable');
    });
  });
});
