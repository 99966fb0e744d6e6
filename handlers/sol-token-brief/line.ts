import type { Finding } from '../mints/findings.js';
import { TOLERANCE } from './consensus.js';

/** The contents of the one-line brief; null is printed as `n/a`. */
export type LineFacts = {
  mint: string;
  symbol?: string;
  priceUsd: number | null;
  mcapUsd: number | null;
  liquidityUsd: number | null;
  volume24hUsd: number | null;
  sources: string[];
  /** No source knows a market for the token. */
  untraded: boolean;
  /** The sources contradict each other, and one price was chosen. */
  disputed: boolean;
  /** The highest source price divided by the lowest; null if fewer than two have one. */
  spread: number | null;
  findings: Pick<Finding, 'severity'>[];
};

const UNITS: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'K'],
];

/** An amount in USD, with three significant digits from a thousand up: `$1.23M`, `$12.3K`, `$950.00`, `$0.42`, `n/a`. */
export function formatAmount(usd: number | null): string {
  if (usd === null) return 'n/a';
  // Rounded before the unit is chosen, so that 999 999 becomes $1.00M and not $1000K.
  const rounded = usd >= 999.995 ? Number(usd.toPrecision(3)) : usd;
  if (rounded >= 1e15) return `$${usd.toExponential(2).replace('e+', 'e')}`;
  const unit = UNITS.find(([size]) => rounded >= size);
  if (!unit) return usd > 0 && usd < 0.005 ? '<$0.01' : `$${rounded.toFixed(2)}`;
  return `$${(rounded / unit[0]).toPrecision(3)}${unit[1]}`;
}

/**
 * A price in USD: two decimals and thousands separators from one dollar up, four significant digits below one dollar, scientific
 * notation below a trillionth: `$64,123.45`, `$0.4321`, `$0.00001234`, `$1.234e-15`, `n/a`.
 */
export function formatPrice(usd: number | null): string {
  if (usd === null) return 'n/a';
  if (usd >= 1e9) return formatAmount(usd);
  const rounded = usd >= 1 ? usd : Number(usd.toPrecision(4));
  if (rounded >= 1) {
    return `$${rounded.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  }
  if (rounded === 0) return '$0.00';
  if (rounded < 1e-12) return `$${rounded.toExponential(3)}`;
  const decimals = 3 - Math.floor(Math.log10(rounded));
  // Removes trailing zeros, but keeps two decimals.
  return `$${rounded.toFixed(decimals).replace(/(\.\d\d(?:\d{0,13}[1-9])?)0+$/, '$1')}`;
}

/** `Abcd…wxyz`. */
export const shortenMint = (mint: string): string => `${mint.slice(0, 4)}…${mint.slice(-4)}`;

/** `1.004` is `within 0.4%`, `2.1` is `differ 2.1 times`. */
function spreadWords(spread: number): string {
  if (spread > TOLERANCE)
    return `differ ${spread >= 1_000 ? spread.toExponential(1) : Number(spread.toPrecision(2))} times`;
  const percent = (spread - 1) * 100;
  return `within ${percent < 0.05 ? '0.1' : percent.toFixed(1)}%`;
}

function confidence({ disputed, spread, untraded, priceUsd }: LineFacts): string {
  if (disputed) return ' (low confidence: the sources disagree)';
  if (spread !== null) return ` (sources ${spreadWords(spread)})`;
  return untraded || priceUsd === null ? '' : ' (one source)';
}

/** ` Warnings: 1 critical, 2 high.`, for readers who see only this line; empty if nothing is that severe. */
function warned(findings: LineFacts['findings']): string {
  const counts = (['critical', 'high'] as const).flatMap(severity => {
    const count = findings.filter(finding => finding.severity === severity).length;
    return count === 0 ? [] : [`${count} ${severity}`];
  });
  return counts.length === 0 ? '' : ` Warnings: ${counts.join(', ')}.`;
}

/** The brief, on one line. The symbol must already be cleaned. */
export function briefLine(facts: LineFacts): string {
  const token = `${facts.symbol ?? 'Unnamed token'} (${shortenMint(facts.mint)})`;
  const figures = [
    ...(facts.untraded ? ['no market found'] : []),
    `price ${formatPrice(facts.priceUsd)}${confidence(facts)}`,
    `market cap ${formatAmount(facts.mcapUsd)}`,
    `liquidity ${formatAmount(facts.liquidityUsd)}`,
    `24h volume ${formatAmount(facts.volume24hUsd)}`,
  ];
  return `${token}: ${figures.join(', ')}.${warned(facts.findings)} Sources: ${facts.sources.join(', ')}. This is not financial advice.`;
}
