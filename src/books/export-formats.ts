import { csvLine } from '../operator/csv-line.js';
import { dayOf, type FiatRates } from './fiat-rates.js';
import { decimal, USDC, type Movement } from './movement.js';

/** The names of the formats, with descriptions. */
export const FORMATS = {
  movements: 'CSV, one line per movement of money',
  json: 'a JSON array of the movements of money',
  hledger: 'a journal for hledger',
  beancount: 'a file for beancount',
  stripe: 'sales and refunds in the format of Stripe’s balance export, for programs that import it',
} as const;

export type Format = keyof typeof FORMATS;

/** The media type and the file name extension of each format. */
export const FILES: Record<Format, { type: string; ending: string }> = {
  movements: { type: 'text/csv; charset=utf-8', ending: 'csv' },
  json: { type: 'application/json; charset=utf-8', ending: 'json' },
  hledger: { type: 'text/plain; charset=utf-8', ending: 'journal' },
  beancount: { type: 'text/plain; charset=utf-8', ending: 'beancount' },
  stripe: { type: 'text/csv; charset=utf-8', ending: 'stripe.csv' },
};

type Write = (movements: AsyncIterable<Movement>, rates?: FiatRates) => AsyncGenerator<string>;

/** Writes the movements in a format, piece by piece. @throws OperatorFault if a rate is missing */
export function exported(
  format: Format,
  movements: AsyncIterable<Movement>,
  rates?: FiatRates,
): AsyncGenerator<string> {
  return WRITERS[format](movements, rates);
}

const WRITERS: Record<Format, Write> = { movements: asCsv, json: asJson, hledger, beancount, stripe };

async function* asCsv(movements: AsyncIterable<Movement>, rates?: FiatRates): AsyncGenerator<string> {
  const titles = ['date', 'kind', 'amount', 'asset', 'transaction', 'payment', 'operation', 'account'];
  yield csvLine([...titles, 'counterparty', ...(rates ? ['value', 'currency'] : [])]);
  for await (const each of movements) {
    const { at, kind, transaction, payment, operation, account, counterparty } = each;
    const worth = rates ? [amountCell(rates.valueOf(each)), rates.currency] : [];
    const cells = [
      new Date(at).toISOString(),
      kind,
      amountCell(decimal(each.amount, each.asset)),
      each.asset.name,
    ];
    yield csvLine([...cells, transaction, payment, operation, account, counterparty, ...worth]);
  }
}

async function* asJson(movements: AsyncIterable<Movement>, rates?: FiatRates): AsyncGenerator<string> {
  let separator = '[\n';
  for await (const each of movements) {
    const { at, amount, asset, ...rest } = each;
    const worth = rates ? { value: rates.valueOf(each), currency: rates.currency } : {};
    const shown = { date: new Date(at).toISOString(), amount: decimal(amount, asset), asset: asset.name };
    yield `${separator}${JSON.stringify({ ...shown, ...rest, ...worth })}`;
    separator = ',\n';
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n';
}

/** The two accounts of a movement in double-entry books: the one that holds the money, and its counter-account. */
function accountsOf({ kind, operation, account, asset }: Movement): { own: string[]; other: string[] } {
  const other = {
    sale: ['Income', 'Sales', operation],
    refund: ['Income', 'Refunds', operation],
    'network fee': ['Expenses', 'Network fees'],
  }[kind];
  return { own: ['Assets', 'Coinslot', asset.name, account.slice(0, 8)], other };
}

async function* hledger(movements: AsyncIterable<Movement>, rates?: FiatRates): AsyncGenerator<string> {
  for await (const each of movements) {
    const { own, other } = accountsOf(each);
    const text = decimal(each.amount, each.asset);
    const price = rates ? ` @ ${rates.rateOf(each)} ${rates.currency}` : '';
    yield `${dayOf(each.at)} ${each.kind} of ${plain(each.operation)}  ; ${named(each)}\n    ${journalName(own)}  ${text} ${each.asset.name}${price}\n    ${journalName(other)}\n\n`;
  }
}

/** An account name for hledger: the kinds of account in lower case, as is customary; names unchanged. */
function journalName([first = '', second = '', ...names]: readonly string[]): string {
  return [first.toLowerCase(), second.toLowerCase(), ...names.map(plain)].join(':');
}

/** The comment of a journal entry: tags, separated by commas. */
function named({ transaction, payment, counterparty }: Movement): string {
  return `payment:${payment}, transaction:${transaction ?? ''}, counterparty:${plain(counterparty)}`;
}

const plain = (text: string): string => text.replace(/[^\w .-]/g, '').slice(0, 100);

async function* beancount(movements: AsyncIterable<Movement>, rates?: FiatRates): AsyncGenerator<string> {
  const opened = new Set<string>();
  const open = (parts: readonly string[]): { name: string; line: string } => {
    const name = parts.map(component).join(':');
    const line = opened.has(name) ? '' : `1970-01-01 open ${name}\n`;
    opened.add(name);
    return { name, line };
  };
  for await (const each of movements) {
    const [own, other] = Object.values(accountsOf(each)).map(open);
    const price = rates ? ` @ ${rates.rateOf(each)} ${rates.currency}` : '';
    const of = `  payment: "${each.payment}"\n  transaction: "${each.transaction ?? ''}"\n  counterparty: "${plain(each.counterparty)}"`;
    yield `${own?.line}${other?.line}${dayOf(each.at)} * "${each.kind} of ${plain(each.operation)}"\n${of}\n  ${own?.name}  ${decimal(each.amount, each.asset)} ${each.asset.name}${price}\n  ${other?.name}\n\n`;
  }
}

/** A part of a Beancount account name: letters, digits and hyphens, beginning with a capital letter or a digit. */
function component(text: string): string {
  const sound = text.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '');
  return sound === '' ? 'Other' : sound[0]?.toUpperCase() + sound.slice(1);
}

const amountCell = (text: string): { decimal: string } => ({ decimal: text });

const STRIPE_COLUMNS = ['id', 'Type', 'Source', 'Amount', 'Fee', 'Net', 'Currency', 'Created (UTC)'];
const STRIPE_MORE = ['Available On (UTC)', 'Description', 'Transfer'];

/**
 * The columns of Stripe's balance export. Without rates, amounts are in USDC and the fees, which are in SOL, are left out; with rates, each
 * row has its fee in the currency of the rates.
 */
async function* stripe(movements: AsyncIterable<Movement>, rates?: FiatRates): AsyncGenerator<string> {
  yield csvLine([...STRIPE_COLUMNS, ...STRIPE_MORE]);
  let row: Movement | undefined;
  const line = (fee?: Movement): string => (row ? csvLine(stripeCells(row, fee, rates)) : '');
  for await (const each of movements) {
    // A fee comes right after the movement for which it was paid.
    if (each.kind !== 'network fee') {
      if (row) yield line();
      row = each;
    } else {
      yield line(each);
      row = undefined;
    }
  }
  if (row) yield line();
}

function stripeCells(each: Movement, fee: Movement | undefined, rates: FiatRates | undefined) {
  const amount = rates ? rates.valueOf(each) : decimal(each.amount, USDC);
  const cost = rates && fee ? rates.valueOf({ ...fee, amount: -fee.amount }) : '0.00';
  const time = new Date(each.at).toISOString().slice(0, 19).replace('T', ' ');
  const id = `${each.kind}_${each.transaction ?? each.payment}`;
  const type = each.kind === 'sale' ? 'charge' : 'refund';
  const net = difference(amount, cost);
  const currency = (rates?.currency ?? USDC.name).toLowerCase();
  const described = `${each.operation}, ${each.counterparty}`;
  return [
    ...[id, type, each.payment, amountCell(amount), cost, amountCell(net), currency, time, time],
    ...[described, each.transaction],
  ];
}

/** The difference of decimal strings with at most 6 fractional digits. */
function difference(one: string, other: string): string {
  return decimal(atomicOf(one) - atomicOf(other), USDC);
}

function atomicOf(text: string): bigint {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.');
  const size = BigInt(whole + fraction.padEnd(USDC.decimals, '0'));
  return text.startsWith('-') ? -size : size;
}
