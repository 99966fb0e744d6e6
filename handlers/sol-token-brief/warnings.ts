import { TOLERANCE } from './consensus.js';
import { formatPrice } from './line.js';
import type { PricedSource } from './source.js';

type Doubts = {
  quotes: PricedSource[];
  spread: number | null;
  untraded: boolean;
  priceUsd: number | null;
  /** No majority of sources agrees on a price. */
  disputed: boolean;
};

function disagreement({ quotes, spread, disputed, priceUsd }: Doubts): string[] {
  if (spread === null || spread <= TOLERANCE) return [];
  const listed = quotes.map(({ source, priceUsd: price }) => `${source} ${formatPrice(price)}`).join(', ');
  const chosen = disputed
    ? `${formatPrice(priceUsd)} is given, but no other source confirms it`
    : `${formatPrice(priceUsd)} is given, and those too far from it were left out`;
  return [`The sources disagree by more than 1.5 times (${listed}): ${chosen}.`];
}

/** What makes the figures of a brief doubtful: no market, a single price, or prices that are more than 1.5 times apart. */
export function briefWarnings(doubts: Doubts): string[] {
  if (doubts.untraded) {
    return [
      'No source knows a market for this token: nothing here says what it is worth, or that it can be sold.',
    ];
  }
  if (doubts.quotes.length === 0) return ['No source has a price for this token.'];
  const [only] = doubts.quotes;
  return [
    ...disagreement(doubts),
    ...(doubts.quotes.length === 1 && only
      ? [`Only one source (${only.source}) has a price: nothing confirms it.`]
      : []),
  ];
}
