import type { Row } from '../mints/findings.js';
import { TOLERANCE } from './consensus.js';
import { formatAmount, formatPrice } from './line.js';
import type { PricedSource, Verdict } from './source.js';

/** The data behind the findings about a market: the figures of a brief, and the verdict of a source that examines tokens. */
export type Market = {
  quotes: PricedSource[];
  spread: number | null;
  /** No source knows a market for the token. */
  untraded: boolean;
  /** No majority of sources agrees on a price. */
  disputed: boolean;
  priceUsd: number | null;
  mcapUsd: number | null;
  liquidityUsd: number | null;
  change24hPercent: number | null;
  topHoldersPercent: number | null;
  organicScore: number | null;
  jupiterVerified: boolean | null;
  firstPoolAt: string | null;
  /** Absent if Jupiter did not answer or does not know the token. */
  verdict?: Verdict;
  /** Milliseconds since 1970. */
  asOf: number;
};

const HOUR_MS = 3_600_000;
const YOUNG_MS = 24 * HOUR_MS;
const STALE_MS = HOUR_MS;
const THIN_PERCENT = 1;
const FALL_PERCENT = -50;
const TOP_HOLDERS_PERCENT = 50;
const DEVELOPER_PERCENT = 5;
const MIGRATIONS = 3;

type Says = Row<Market>['says'];

const disagreement: Says = ({ quotes, spread, disputed, priceUsd }) => {
  if (spread === null || spread <= TOLERANCE) return undefined;
  const listed = quotes.map(({ source, priceUsd: price }) => `${source} ${formatPrice(price)}`).join(', ');
  const chosen = disputed
    ? `${formatPrice(priceUsd)} is given, but no other source confirms it`
    : `${formatPrice(priceUsd)} is given, and the prices too far from it were left out`;
  return `The sources disagree by a factor of more than 1.5 (${listed}): ${chosen}.`;
};

const thin: Says = ({ liquidityUsd, mcapUsd }) => {
  if (liquidityUsd === null || mcapUsd === null || mcapUsd === 0) return undefined;
  const part = (liquidityUsd / mcapUsd) * 100;
  return part < THIN_PERCENT
    ? `Liquidity (${formatAmount(liquidityUsd)}) is ${Number(part.toPrecision(2))}% of the market cap (${formatAmount(mcapUsd)}): few can sell at this price.`
    : undefined;
};

const young: Says = ({ firstPoolAt, asOf }) => {
  const age = firstPoolAt === null ? YOUNG_MS : asOf - Date.parse(firstPoolAt);
  return age < YOUNG_MS
    ? `The first pool was created less than a day ago (${firstPoolAt}): there is no trading history yet.`
    : undefined;
};

const stale: Says = ({ quotes, asOf }) => {
  const old = quotes.find(({ updatedAt }) => updatedAt && asOf - Date.parse(updatedAt) > STALE_MS);
  return old && `The figures of ${old.source} were last changed more than an hour ago (${old.updatedAt}).`;
};

const alone: Says = ({ quotes }) => {
  const [only, ...others] = quotes;
  return only && others.length === 0
    ? `Only one source (${only.source}) has a price: nothing confirms it.`
    : undefined;
};

const when = (applies: boolean | undefined, sentence: string): string | undefined =>
  applies ? sentence : undefined;

/** Every warning about the market of a token. Those about its mint are in mints/mint-findings.ts. */
export const MARKET_FINDINGS: readonly Row<Market>[] = [
  {
    code: 'suspicious',
    severity: 'critical',
    says: ({ verdict }) => when(verdict?.suspicious, 'Jupiter flags this token as suspicious.'),
  },
  {
    code: 'no-market',
    severity: 'high',
    says: ({ untraded }) =>
      when(
        untraded,
        'No source knows a market for this token: nothing here shows its value, or that it can be sold.',
      ),
  },
  {
    code: 'no-price',
    severity: 'high',
    says: ({ untraded, quotes }) =>
      when(!untraded && quotes.length === 0, 'No source has a price for this token.'),
  },
  { code: 'sources-disagree', severity: 'high', says: disagreement },
  { code: 'thin-liquidity', severity: 'medium', says: thin },
  {
    code: 'price-fall',
    severity: 'medium',
    says: ({ change24hPercent: change }) =>
      when(change !== null && change < FALL_PERCENT, `The price fell by ${-(change ?? 0)}% in 24 hours.`),
  },
  { code: 'young-pool', severity: 'medium', says: young },
  {
    code: 'top-holders',
    severity: 'medium',
    says: ({ topHoldersPercent: part }) =>
      when(
        part !== null && part > TOP_HOLDERS_PERCENT,
        `The largest holders own ${part}% of the supply, according to Jupiter.`,
      ),
  },
  {
    code: 'developer-balance',
    severity: 'medium',
    says: ({ verdict }) =>
      when(
        (verdict?.developerPercent ?? 0) > DEVELOPER_PERCENT,
        `The developer's wallet holds ${verdict?.developerPercent}% of the supply, according to Jupiter.`,
      ),
  },
  {
    code: 'developer-migrations',
    severity: 'low',
    says: ({ verdict }) =>
      when(
        (verdict?.developerMigrations ?? 0) >= MIGRATIONS,
        `Its developer has moved ${verdict?.developerMigrations} tokens from a launchpad to a market, according to Jupiter.`,
      ),
  },
  {
    code: 'unverified',
    severity: 'medium',
    says: ({ jupiterVerified }) =>
      when(
        jupiterVerified === false,
        'Jupiter has not verified this token: it may imitate another token with the same name.',
      ),
  },
  {
    code: 'low-organic-score',
    severity: 'medium',
    says: ({ verdict, organicScore }) =>
      when(
        verdict?.organic === 'low',
        `Jupiter rates little of the trading as organic${organicScore === null ? '' : ` (${organicScore} of 100)`}: volume and holders may be bought.`,
      ),
  },
  { code: 'one-source', severity: 'medium', says: alone },
  {
    code: 'not-examined',
    severity: 'medium',
    says: ({ verdict, untraded }) =>
      when(
        verdict === undefined && !untraded,
        'Jupiter gave no answer about this token: whether it is verified, suspicious or organically traded was not checked.',
      ),
  },
  { code: 'stale-figures', severity: 'low', says: stale },
];
