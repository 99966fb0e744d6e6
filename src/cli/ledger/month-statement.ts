import { FiatRates, dayOf } from '../../books/fiat-rates.js';
import { statementWithChain, type Comparison } from '../../books/compare-with-chain.js';
import { decimal, SOL, USDC } from '../../books/movement.js';
import type { BookSource } from '../../books/movements.js';
import { monthOf, statementOf, type Statement, type Sum } from '../../books/booked-sums.js';
import { countOf, table, time, type Cell, type Report } from './print.js';

type Options = { rates: string | undefined; chain: { rpcUrls: string[]; most: number } | undefined };

/**
 * The statement of a month: incoming and outgoing money, and whether it matches the receivers' balance on chain.
 * @throws OperatorFault; UpstreamFailure if the chain cannot be read
 */
export async function statement(
  reader: BookSource,
  month: string | undefined,
  { rates: source, chain }: Options,
): Promise<Report> {
  const within = monthOf(month);
  const rates = source === undefined ? undefined : await FiatRates.from(source);
  const { statement: books, comparison } = chain
    ? await statementWithChain(reader, within, { rates, ...chain })
    : { statement: await statementOf(reader, within, { rates }), comparison: undefined };
  const data = {
    ...dataOf(books),
    ...(rates ? { currency: rates.currency } : {}),
    chain: chainData(comparison),
  };
  const ok = !comparison || isExplained(comparison);
  return {
    data,
    lines: [...linesOf(books, comparison, rates?.currency), ...chainLines(books, comparison)],
    ok,
  };
}

function isExplained({ unexplained, missing }: Comparison): boolean {
  return unexplained === 0n && missing.length === 0;
}

const usdc = (amount: bigint): string => decimal(amount, USDC);
const sumData = ({ count, amount, value }: Sum) => ({
  count,
  usdc: usdc(amount),
  ...(value === undefined ? {} : { value }),
});

function dataOf({ from, to, receivers, opening, closing, sales, refunds, ...rest }: Statement) {
  return {
    from: time(from),
    to: time(to),
    receivers,
    opening: usdc(opening),
    sales: sumData(sales),
    refunds: sumData(refunds),
    refundsFromOtherWallets: sumData(rest.refundsElsewhere),
    closing: usdc(closing),
    byOperation: Object.fromEntries([...rest.byOperation].map(([name, sum]) => [name, sumData(sum)])),
    networkFees: [...rest.fees].map(([feePayer, { count, amount, value }]) => ({
      ...{ feePayer, transactions: count, sol: decimal(amount, SOL) },
      ...(value === undefined ? {} : { value }),
    })),
  };
}

function chainData(comparison: Comparison | undefined) {
  if (!comparison) return null;
  const { slot, opening, closing, others, late, early, missing, unexplained } = comparison;
  return {
    slot,
    opening: usdc(opening),
    closing: usdc(closing),
    otherTransfers: others.map(({ at, amount, ...of }) => ({ at: time(at), usdc: usdc(amount), ...of })),
    bookedHereOnly: sumData(late),
    landedHereOnly: sumData(early),
    missing: missing.map(({ amount, ...of }) => ({ ...of, usdc: usdc(amount) })),
    unexplained: usdc(unexplained),
  };
}

function linesOf(
  books: Statement,
  comparison: Comparison | undefined,
  currency: string | undefined,
): string[] {
  const { from, to, opening, closing, sales, refunds, refundsElsewhere } = books;
  const others = (comparison?.others ?? []).map(({ amount }) => amount);
  const [came, left] = [others.filter(amount => amount > 0n), others.filter(amount => amount < 0n)];
  const total = (amounts: readonly bigint[]): string => usdc(amounts.reduce((sum, each) => sum + each, 0n));
  const worth = ({ value }: Sum, sign = ''): Cell[] =>
    currency === undefined ? [] : [`${sign}${value ?? '0.00'}`];
  const none = currency === undefined ? [] : [''];
  const rows: Cell[][] = [
    [`balance on ${dayOf(from)}`, '', usdc(opening), ...none],
    ['sales', sales.count, usdc(sales.amount), ...worth(sales)],
    ['refunds', refunds.count, usdc(-refunds.amount), ...worth(refunds, refunds.count > 0 ? '-' : '')],
    ...(came.length > 0 ? [['other transfers in', came.length, total(came), ...none]] : []),
    ...(left.length > 0 ? [['other transfers out', left.length, total(left), ...none]] : []),
    [`balance before ${dayOf(to)}`, '', usdc(closing), ...none],
  ];
  const titles = ['', 'number', 'USDC', ...(currency === undefined ? [] : [currency])];
  return [
    `Statement from ${dayOf(from)} to ${dayOf(to - 1)} (UTC) of ${books.receivers.join(', ') || 'a ledger that has sold nothing'}`,
    '',
    ...table(titles, rows),
    ...(books.byOperation.size === 0 ? [] : ['', ...operationLines(books, currency)]),
    ...feeLines(books, currency),
    ...(refundsElsewhere.count === 0
      ? []
      : [
          '',
          `Not included above: ${usdc(refundsElsewhere.amount)} USDC in ${countOf(refundsElsewhere.count, 'refund')} from other wallets.`,
        ]),
  ];
}

function operationLines({ byOperation }: Statement, currency: string | undefined): string[] {
  const rows = [...byOperation].map(([name, { count, amount, value }]) => [
    ...[name, count, usdc(amount)],
    ...(currency === undefined ? [] : [value]),
  ]);
  return table(['sales of', 'number', 'USDC', ...(currency === undefined ? [] : [currency])], rows);
}

function feeLines({ fees }: Statement, currency: string | undefined): string[] {
  return [...fees].map(
    ([feePayer, { count, amount, value }]) =>
      `Network fees: ${decimal(amount, SOL)} SOL${currency === undefined ? '' : ` (${value ?? '0.00'} ${currency})`} for ${countOf(count, 'transaction')}, paid by ${feePayer}.`,
  );
}

function chainLines({ closing }: Statement, comparison: Comparison | undefined): string[] {
  if (!comparison)
    return [
      '',
      'Not compared with the chain. The opening balance is what this ledger had taken in before this period.',
    ];
  const { slot, late, early, missing, unexplained, others } = comparison;
  const shown = others
    .slice(0, 50)
    .map(each => [time(each.at), usdc(each.amount), each.counterparty, each.transaction]);
  const lines = [
    ...(shown.length === 0
      ? []
      : ['', ...table(['other transfers at', 'USDC', 'from or to', 'transaction'], shown)]),
    '',
    `On chain (finalized, slot ${slot}) the balance is ${usdc(comparison.closing)} USDC: ${
      comparison.closing === closing
        ? 'the same.'
        : `${usdc(comparison.closing - closing)} more than in the books.`
    }`,
  ];
  if (late.count > 0)
    lines.push(
      `Booked in this period, on chain shortly before or after it, or not final yet: ${countOf(late.count, 'movement')}, ${usdc(late.amount)} USDC.`,
    );
  if (early.count > 0)
    lines.push(
      `On chain in this period, booked shortly before or after it: ${countOf(early.count, 'movement')}, ${usdc(early.amount)} USDC.`,
    );
  for (const { payment, transaction, amount } of missing.slice(0, 50))
    lines.push(
      `Not on chain: ${usdc(amount)} USDC of payment ${payment}, transaction ${transaction ?? 'unknown'}.`,
    );
  if (missing.length > 50) lines.push(`… and ${missing.length - 50} more that are not on chain.`);
  if (unexplained !== 0n)
    lines.push(`${usdc(unexplained)} USDC is not explained by any of these: “verify” compares every amount.`);
  return lines;
}
