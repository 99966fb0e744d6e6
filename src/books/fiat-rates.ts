import { readFile } from 'node:fs/promises';
import { messageOf } from '../ledger/fault.js';
import { HttpClient } from '../net/http-client.js';
import { OperatorFault } from '../operator/operator-fault.js';
import type { Movement } from './movement.js';

const MAX_BYTES = 16 * 1024 * 1024;
const DEADLINE_MS = 20_000;
const DAY_MS = 86_400_000;
/** How old a rate may be. No rates are published on weekends and at Easter; the last earlier rate is used then. */
const MAX_AGE_DAYS = 7;
const DIGITS = 6;
const SCALE = 10n ** 12n;
const LINE = /^(\d{4}-\d{2}-\d{2}),([A-Za-z0-9]{1,10}),([A-Z]{3}),(\d{1,12}(?:\.\d{1,12})?)$/;
const FORM = 'day,asset,currency,rate, such as 2026-11-01,USDC,EUR,0.8612';

/** The exchange rates of a currency, by UTC day. */
export class FiatRates {
  readonly currency: string;
  /** The rates by day and asset, multiplied by SCALE. */
  readonly #rates: ReadonlyMap<string, bigint>;

  private constructor(currency: string, rates: ReadonlyMap<string, bigint>) {
    this.currency = currency;
    this.#rates = rates;
  }

  /**
   * Reads a file or what a URL returns: CSV with or without a header line.
   * @throws OperatorFault that says what is wrong with it
   */
  static async from(source: string): Promise<FiatRates> {
    return FiatRates.parse(await textOf(source), source);
  }

  static parse(text: string, source = 'the rates'): FiatRates {
    const rates = new Map<string, bigint>();
    let currency: string | undefined;
    for (const [index, line] of text.split(/\r?\n/).entries()) {
      const isTitle = index === 0 && !/^\d/.test(line);
      if (line.trim() === '' || isTitle) continue;
      const read = rateIn(line, `${source}, line ${index + 1}`);
      if (currency !== undefined && read.currency !== currency)
        throw new OperatorFault(
          `${source}, line ${index + 1}: all rates must be in one currency, here ${currency}.`,
        );
      currency = read.currency;
      rates.set(`${read.day} ${read.asset}`, read.rate);
    }
    if (currency !== undefined) return new FiatRates(currency, rates);
    throw new OperatorFault(`${source} has no rates. A line must have the form ${FORM}.`);
  }

  /**
   * The value of a movement on its day, as a decimal string of 6 digits, rounded half away from zero.
   * @throws OperatorFault if there is no rate for that day or the week before it
   */
  valueOf({ amount, asset, at }: Pick<Movement, 'amount' | 'asset' | 'at'>): string {
    const product = amount * this.#rateAt(asset.name, at);
    const unit = (SCALE * 10n ** BigInt(asset.decimals)) / 10n ** BigInt(DIGITS);
    const size = product < 0n ? -product : product;
    const rounded = (size + unit / 2n) / unit;
    const digits = rounded.toString().padStart(DIGITS + 1, '0');
    return `${product < 0n && rounded > 0n ? '-' : ''}${digits.slice(0, -DIGITS)}.${digits.slice(-DIGITS)}`;
  }

  /** The rate of a day as a decimal string. @throws OperatorFault in the same cases as `valueOf` */
  rateOf({ asset, at }: Pick<Movement, 'asset' | 'at'>): string {
    const digits = this.#rateAt(asset.name, at).toString().padStart(13, '0');
    return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/0{1,12}$/, '').replace(/\.$/, '');
  }

  #rateAt(asset: string, at: number): bigint {
    for (let age = 0; age <= MAX_AGE_DAYS; age += 1) {
      const rate = this.#rates.get(`${dayOf(at - age * DAY_MS)} ${asset}`);
      if (rate !== undefined) return rate;
    }
    throw new OperatorFault(
      `There is no rate of ${asset} in ${this.currency} for ${dayOf(at)} or the ${MAX_AGE_DAYS} days before it.`,
    );
  }
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** @throws OperatorFault that names the place */
function rateIn(line: string, place: string): { day: string; asset: string; currency: string; rate: bigint } {
  const [, day = '', asset = '', currency = '', rate = ''] = LINE.exec(line.trim()) ?? [];
  if (day !== '' && !Number.isNaN(Date.parse(day))) return { day, asset, currency, rate: scaled(rate) };
  throw new OperatorFault(`${place}: must have the form ${FORM}.`);
}

function scaled(rate: string): bigint {
  const [whole = '0', fraction = ''] = rate.split('.');
  return BigInt(whole + fraction.padEnd(12, '0'));
}

async function textOf(source: string): Promise<string> {
  try {
    if (!/^https?:\/\//.test(source)) {
      const bytes = await readFile(source);
      if (bytes.length <= MAX_BYTES) return bytes.toString('utf8');
      throw new Error(`larger than ${MAX_BYTES} bytes`);
    }
    const client = new HttpClient(source, { connections: 1, maxAnswerBytes: MAX_BYTES });
    try {
      const { status, text } = await client.request({ method: 'GET', path: '', ms: DEADLINE_MS });
      if (status === 200) return text;
      throw new Error(`status ${status}`);
    } finally {
      await client.close();
    }
  } catch (error) {
    throw new OperatorFault(`The rates at ${source} cannot be read: ${messageOf(error)}.`);
  }
}
