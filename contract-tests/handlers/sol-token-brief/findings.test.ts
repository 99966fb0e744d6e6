import { expect } from 'chai';
import type { Finding } from '../../../handlers/mints/findings.js';
import { MINT_FINDINGS } from '../../../handlers/mints/mint-findings.js';
import { MARKET_FINDINGS } from '../../../handlers/sol-token-brief/market-findings.js';
import { createGeckoTerminal } from '../../../handlers/sol-token-brief/geckoterminal.js';
import {
  eachWithANewMarket,
  geckoToken,
  GOOD,
  json,
  jupiterToken,
  market,
  MINT,
  open,
  pool,
  service,
} from '../../support/aggregators.js';

const NOW = Date.UTC(2026, 0, 2);
const audit = { mintAuthorityDisabled: true, topHoldersPercentage: 15.45 };

/**
 * Made-up answers in the documented formats of the sources, each with values that make a token doubtful. Their terms do
 * not allow us to publish recordings of real answers.
 */
const DOUBTS: Record<string, () => void> = {
  suspicious: () => jupiterSays({ audit: { ...audit, isSus: true } }),
  unverified: () => jupiterSays({ isVerified: false }),
  'low-organic-score': () => jupiterSays({ organicScore: 3.1, organicScoreLabel: 'low' }),
  'top-holders': () => jupiterSays({ audit: { topHoldersPercentage: 50.1 } }),
  'developer-balance': () => jupiterSays({ audit: { ...audit, devBalancePercentage: 5.1 } }),
  'developer-migrations': () => jupiterSays({ audit: { ...audit, devMigrations: 3 } }),
  'price-fall': () => jupiterSays({ stats24h: { priceChange: -50.1 } }),
  'young-pool': () => jupiterSays({ firstPool: { id: MINT, createdAt: '2026-01-01T00:00:01Z' } }),
  'stale-figures': () => jupiterSays({ updatedAt: '2026-01-01T22:59:59Z' }),
  'thin-liquidity': () => {
    jupiterSays({ liquidity: 20, mcap: 3_000 });
    market.behave.dexscreener = json([pool('1', { liquidity: { usd: 20 } })]);
  },
  'sources-disagree': () => {
    market.behave.geckoterminal = json(geckoToken({ price_usd: '1.6' }));
  },
  'one-source': () => {
    market.behave.dexscreener = json([]);
    market.behave.geckoterminal = json({ errors: [] }, 404);
  },
  'not-examined': () => {
    market.behave.jupiter = json({ message: 'slow down' }, 429);
  },
  'no-price': () => {
    jupiterSays({ usdPrice: null });
    market.behave.dexscreener = json([]);
    market.behave.geckoterminal = json({ errors: [] }, 404);
  },
  'no-market': () => {
    market.behave.jupiter = market.behave.dexscreener = json([]);
    market.behave.geckoterminal = json({ errors: [] }, 404);
  },
};

function jupiterSays(more: object): void {
  market.behave.jupiter = json([jupiterToken(more)]);
}

describe('the findings of a token brief', () => {
  eachWithANewMarket();

  it('every market finding has a test, and no two findings share a code', () => {
    const codes = [...MARKET_FINDINGS, ...MINT_FINDINGS].map(({ code }) => code);
    expect(MARKET_FINDINGS.map(({ code }) => code)).to.have.members(Object.keys(DOUBTS));
    expect(new Set(codes).size).to.equal(codes.length);
  });

  it('are empty for a token without any warning sign', async () => {
    const brief = await service({ now: () => NOW }).brief(MINT, open());
    expect([brief.findings, brief.warnings]).to.deep.equal([[], []]);
    expect(brief.brief).to.not.contain('Warnings');
  });

  for (const [code, doubt] of Object.entries(DOUBTS)) {
    it(`${code}: is found if its source reports it, and is then the only finding`, async () => {
      doubt();
      const { findings, warnings } = await service({ now: () => NOW }).brief(MINT, open());
      expect(findings.map(finding => finding.code)).to.deep.equal([code]);
      expect(warnings).to.deep.equal(findings.map(({ sentence }) => sentence));
      expect(warnings[0]).to.match(/^[A-Z].{20,}\.$/);
      Object.assign(market.behave, GOOD);
    });
  }

  it('begin with the most severe, include those of the mint, and count the severe ones in the brief', async () => {
    jupiterSays({ audit: { isSus: true, devMigrations: 9 }, isVerified: false });
    const ofMint: Finding[] = [
      { code: 'mint-authority', severity: 'high', sentence: 'Somebody can mint.' },
      { code: 'mutable-metadata', severity: 'low', sentence: 'Somebody can rename it.' },
    ];
    const mintOf = async () => ({ supply: '10000', findings: ofMint });
    const { findings, brief } = await service({ now: () => NOW, mintOf }).brief(MINT, open());
    expect(findings.map(({ code }) => code)).to.deep.equal([
      'suspicious',
      'mint-authority',
      'unverified',
      'developer-migrations',
      'mutable-metadata',
    ]);
    expect(brief).to.contain('. Warnings: 1 critical, 1 high. Sources: ');
  });

  it("GeckoTerminal's data comes from CoinGecko if a CoinGecko key is set, and the key is sent in the header for its plan", async () => {
    for (const plan of ['demo', 'pro'] as const) {
      const source = createGeckoTerminal({
        url: `${market.url}/geckoterminal`,
        coinGecko: { key: 'CG-secret', plan },
      });
      expect((await source.quote(MINT, open()))?.priceUsd).to.equal(1.02);
      await source.close();
      const asked = market.asked.at(-1);
      expect(asked?.url).to.equal(`/geckoterminal/api/v3/onchain/networks/solana/tokens/${MINT}`);
      expect(asked?.headers[`x-cg-${plan}-api-key`]).to.equal('CG-secret');
    }
  });
});
