import { expect } from 'chai';
import { request } from 'undici';
import { startMarket } from '../../../src/sandbox/market-server.js';
import { createTokenBrief } from '../../../handlers/sol-token-brief/brief.js';
import { createMarketSources } from '../../../handlers/sol-token-brief/sources.js';

const mints = {
  example: 'Examp1e111111111111111111111111111111111111',
  classic: 'C1assic11111111111111111111111111111111111',
  noAuthorities: 'NoAuth1111111111111111111111111111111111111',
  token2022: 'Token2o22111111111111111111111111111111111',
  untraded: 'Untraded11111111111111111111111111111111111',
  uninitialised: 'Uninit1111111111111111111111111111111111111',
  doubtful: 'Doubtfu111111111111111111111111111111111111',
  frozenForEver: 'Frozen1111111111111111111111111111111111111',
};
const supplies = { classic: '1000000.000000', [mints.token2022]: '500.25' };
const SUPPLY: Record<string, string> = { [mints.classic]: '1000000.000000', [mints.token2022]: '500.25' };
const NOW = Date.UTC(2026, 10, 21, 12);
const signal = new AbortController().signal;

type Market = Awaited<ReturnType<typeof startMarket>>;

type More = Pick<Parameters<typeof startMarket>[0], 'now' | 'seed' | 'offBy'>;
const start = (more: More = {}) => startMarket({ host: '127.0.0.1', port: 0, mints, supplies, ...more });

type Json = Record<string, unknown>[] & Record<string, unknown>;

async function getJson(url: string): Promise<{ status: number; body: Json }> {
  const response = await request(url);
  return { status: response.statusCode, body: (await response.body.json()) as Json };
}

function briefOf(market: Market) {
  return createTokenBrief({
    sources: createMarketSources({ marketUrl: market.url, label: 'sandbox' }),
    mintOf: async mint => ({ supply: SUPPLY[mint] ?? '1000000', findings: [] }),
    label: 'sandbox',
  });
}

describe('the sandbox market', () => {
  let market: Market;
  before(async () => {
    market = await start();
  });
  after(() => market.close());

  it('gives a full brief of the classic mint; its mispriced deep pool changes neither price nor liquidity', async () => {
    const service = briefOf(market);
    const pools = (await getJson(`${market.url}/dexscreener/token-pairs/v1/solana/${mints.classic}`))
      .body as unknown as {
      priceUsd: string;
      liquidity: { usd: number };
    }[];
    const deepest = pools.reduce((a, b) => (a.liquidity.usd > b.liquidity.usd ? a : b));
    const brief = await service.brief(mints.classic, signal);
    await service.close();
    expect(brief.sources).to.deep.equal(['sandbox:jupiter', 'sandbox:dexscreener', 'sandbox:geckoterminal']);
    expect(Number(deepest.priceUsd)).to.be.greaterThan((brief.priceUsd ?? 0) * 4_000);
    expect(brief.liquidityUsd).to.be.lessThan(deepest.liquidity.usd / 50);
    expect(brief.priceUsd).to.be.within(0.1, 1.4);
    expect(brief.fdvUsd).to.be.closeTo((brief.priceUsd ?? 0) * 1_000_000, 0.01);
    expect(brief.mcapUsd).to.be.lessThan(brief.fdvUsd ?? 0);
    expect(brief.holders).to.be.greaterThan(0);
    expect(brief.symbol).to.equal('COIN');
    expect(brief.disclaimer).to.contain('sandbox');
  });

  it('gives a brief of a token that one source does not know', async () => {
    const service = briefOf(market);
    const brief = await service.brief(mints.token2022, signal);
    await service.close();
    expect(brief.sources).to.deep.equal(['sandbox:jupiter', 'sandbox:dexscreener']);
    expect(brief.fdvUsd).to.be.closeTo((brief.priceUsd ?? 0) * 500.25, 0.01);
  });

  it('does not mistake the FDV that DexScreener repeats for a market cap', async () => {
    const path = `${market.url}/dexscreener/token-pairs/v1/solana/${mints.noAuthorities}`;
    const [pool] = (await getJson(path)).body;
    expect(pool?.marketCap).to.equal(pool?.fdv).and.be.greaterThan(0);
    const [, dexScreener] = createMarketSources({ marketUrl: market.url });
    const quote = await dexScreener?.quote(mints.noAuthorities, signal);
    await dexScreener?.close();
    expect(quote?.priceUsd).to.be.greaterThan(0);
    expect(quote?.mcapUsd).to.equal(undefined);
  });

  it('gives the price of each source, the spread of these prices, and when a source last changed its price', async () => {
    const service = briefOf(market);
    const brief = await service.brief(mints.example, signal);
    await service.close();
    expect(brief.quotes.map(({ source, used }) => ({ source, used }))).to.deep.equal(
      ['jupiter', 'dexscreener', 'geckoterminal'].map(name => ({ source: `sandbox:${name}`, used: true })),
    );
    expect(Date.parse(brief.quotes[0]?.updatedAt ?? '')).to.be.closeTo(Date.parse(brief.asOf), 60_000);
    expect(brief.spread).to.be.within(1, 1.02);
    expect(brief.brief).to.match(/ \(sources within \d\.\d%\), market cap/);
    expect(brief.warnings).to.deep.equal([]);
  });

  it('warns about a source whose price is more than 1.5 times off, even if the others agree', async () => {
    const off = await start({ offBy: { geckoterminal: 2 } });
    const service = briefOf(off);
    const brief = await service.brief(mints.classic, signal);
    await service.close();
    await off.close();
    expect(brief.quotes.map(({ used }) => used)).to.deep.equal([true, true, false]);
    expect(brief.spread).to.be.within(1.9, 2.1);
    expect(brief.warnings).to.have.length(1);
    expect(brief.warnings[0]).to.match(
      /^The sources disagree by a factor of more than 1\.5 \(sandbox:jupiter \$\d\.\d+, .*the prices too far from it were left out\.$/,
    );
    expect(brief.brief).to.match(/ \(sources differ 2 times\)/);
  });

  it('warns if no two sources agree, and says which price was used', async () => {
    const off = await start({ offBy: { jupiter: 3, dexscreener: 9 } });
    const service = briefOf(off);
    const brief = await service.brief(mints.example, signal);
    await service.close();
    await off.close();
    expect(brief.quotes.filter(({ used }) => used).map(({ priceUsd }) => priceUsd)).to.deep.equal([
      brief.priceUsd,
    ]);
    expect(brief.warnings.join()).to.match(/\$\d[\d.]+ is given, but no other source confirms it/);
    expect(brief.brief).to.contain('low confidence: the sources disagree');
  });

  it('gives the age of a cached brief', async () => {
    let time = NOW;
    const service = createTokenBrief({
      sources: createMarketSources({ marketUrl: market.url, label: 'sandbox' }),
      mintOf: async () => ({ supply: '1000000', findings: [] }),
      now: () => time,
    });
    const first = await service.brief(mints.classic, signal);
    time += 9_000;
    const second = await service.brief(mints.classic, signal);
    await service.close();
    expect([first.ageSeconds, second.ageSeconds]).to.deep.equal([0, 9]);
    expect(second.asOf).to.equal(first.asOf);
  });

  it('has no market for the untraded mint, and the brief shows nulls', async () => {
    const service = briefOf(market);
    const brief = await service.brief(mints.untraded, signal);
    await service.close();
    const { priceUsd, mcapUsd, fdvUsd, liquidityUsd, volume24hUsd, holders, organicScore } = brief;
    expect([priceUsd, mcapUsd, fdvUsd, liquidityUsd, volume24hUsd, holders, organicScore]).to.deep.equal(
      Array(7).fill(null),
    );
    expect(brief.brief).to.contain('no market found');
    expect(brief).to.deep.include({ quotes: [], spread: null });
    expect(brief.warnings.join()).to.match(/^No source knows a market for this token/);
  });

  it('answers unknown mints and paths as the aggregators do', async () => {
    for (const mint of [mints.untraded, mints.uninitialised]) {
      expect(await getJson(`${market.url}/jupiter/tokens/v2/search?query=${mint}`)).to.deep.equal({
        status: 200,
        body: [],
      });
      const pools = await getJson(`${market.url}/dexscreener/token-pairs/v1/solana/${mint}`);
      expect(pools).to.deep.equal({ status: 200, body: [] });
      const token = await getJson(`${market.url}/geckoterminal/api/v2/networks/solana/tokens/${mint}`);
      expect(token.status).to.equal(404);
    }
    expect((await getJson(`${market.url}/elsewhere`)).status).to.equal(404);
    const post = await request(`${market.url}/jupiter/tokens/v2/search`, { method: 'POST', body: '{}' });
    await post.body.dump();
    expect(post.statusCode).to.equal(405);
  });

  it('gives the same numbers for the same time and seed, and other numbers later or with another seed', async () => {
    let clock = NOW;
    const [one, two, other] = await Promise.all([
      start({ now: () => clock }),
      start({ now: () => clock }),
      start({ now: () => clock, seed: 'other' }),
    ]);
    const read = async ({ url }: Market) =>
      (await getJson(`${url}/jupiter/tokens/v2/search?query=${mints.classic}`)).body[0] as {
        usdPrice: number;
      };
    try {
      const first = await read(one);
      expect(await read(two)).to.deep.equal(first);
      expect((await read(other)).usdPrice).to.not.equal(first.usdPrice);
      clock += 60_000;
      const later = await read(one);
      expect(later.usdPrice).to.not.equal(first.usdPrice);
      expect(later.usdPrice / first.usdPrice).to.be.within(0.9, 1.1);
    } finally {
      await Promise.all([one, two, other].map(server => server.close()));
    }
  });
});
