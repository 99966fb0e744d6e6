import type { Within } from '../ledger/store.js';
import { OperatorFault } from '../operator/operator-fault.js';
import type { FiatRates } from './fiat-rates.js';
import type { Movement } from './movement.js';
import { movements, payToAddresses, type BookSource } from './movements.js';

/** `amount` in atomic units; `value` in the currency of the rates, as a decimal string. */
export type Sum = { count: number; amount: bigint; value?: string | undefined };

/** The books of a period. All sums except the fees are in USDC and not negative. */
export type Statement = Within & {
  receivers: string[];
  /** How much the receivers' total balance had changed before the period. */
  opening: bigint;
  sales: Sum;
  byOperation: Map<string, Sum>;
  /** Refunds paid by the receivers. */
  refunds: Sum;
  /** Refunds paid by other wallets, which are not part of the balance. */
  refundsElsewhere: Sum;
  /** In lamports, by fee payer. */
  fees: Map<string, Sum>;
  closing: bigint;
};

/** A UTC month like 2026-11. @throws OperatorFault */
export function monthOf(text: string | undefined): Within {
  const [, year = '', month = ''] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text ?? '') ?? [];
  if (year === '') throw new OperatorFault(`Give a month such as 2026-11, not '${text ?? ''}'.`);
  return { from: Date.UTC(Number(year), Number(month) - 1, 1), to: Date.UTC(Number(year), Number(month), 1) };
}

type Summing = {
  rates?: FiatRates | undefined;
  /** Called with every movement of the period and of the margins before and after it. */
  seen?: (movement: Movement) => void;
  marginMs?: number;
};

/** Sums up the movements of a period. @throws OperatorFault if a rate is missing */
export async function statementOf(
  reader: BookSource,
  within: Within,
  { rates, seen = () => {}, marginMs = 0 }: Summing = {},
): Promise<Statement> {
  const { from, to } = within;
  const receivers = payToAddresses(await reader.identity());
  const sums = new Sums(receivers, rates);
  for await (const movement of movements(reader, { from: from - marginMs, to: to + marginMs })) {
    if (movement.at >= from && movement.at < to) sums.add(movement);
    seen(movement);
  }
  const opening = await balanceBefore(reader, receivers, from);
  const { sales, refunds } = sums;
  return { ...within, receivers, opening, ...sums.all, closing: opening + sales.amount - refunds.amount };
}

/** How much the receivers' total balance had changed before a time, according to the ledger. */
async function balanceBefore(
  reader: BookSource,
  receivers: readonly string[],
  before: number,
): Promise<bigint> {
  const sold = await reader.soldBefore(before);
  const earlier = { from: 0, to: before };
  const back = await reader.refundedBetween(earlier);
  const former = await reader.formerRefunds(earlier);
  const isOurs = (source: string | null): boolean => source === null || receivers.includes(source);
  const refunded = [...back, ...former].filter(({ source }) => isOurs(source));
  return refunded.reduce((rest, { amount }) => rest - amount, sold);
}

/** Whether a movement changes the balance of the receivers. */
export function changesBalance({ kind, account }: Movement, receivers: readonly string[]): boolean {
  return kind === 'sale' || (kind === 'refund' && receivers.includes(account));
}

class Sums {
  readonly sales: Sum = { count: 0, amount: 0n };
  readonly refunds: Sum = { count: 0, amount: 0n };
  readonly #elsewhere: Sum = { count: 0, amount: 0n };
  readonly #byOperation = new Map<string, Sum>();
  readonly #fees = new Map<string, Sum>();
  readonly #receivers: readonly string[];
  readonly #rates: FiatRates | undefined;

  constructor(receivers: readonly string[], rates: FiatRates | undefined) {
    this.#receivers = receivers;
    this.#rates = rates;
  }

  get all() {
    const { sales, refunds } = this;
    const [refundsElsewhere, byOperation, fees] = [this.#elsewhere, this.#byOperation, this.#fees];
    return { sales, refunds, refundsElsewhere, byOperation, fees };
  }

  add(movement: Movement): void {
    const { kind, operation, account } = movement;
    if (kind === 'network fee') return this.#count(sumIn(this.#fees, account), movement);
    if (kind === 'refund')
      return this.#count(
        changesBalance(movement, this.#receivers) ? this.refunds : this.#elsewhere,
        movement,
      );
    this.#count(this.sales, movement);
    this.#count(sumIn(this.#byOperation, operation), movement);
  }

  #count(sum: Sum, movement: Movement): void {
    const { amount } = movement;
    sum.count += 1;
    sum.amount += amount < 0n ? -amount : amount;
    if (this.#rates) sum.value = added(sum.value, this.#rates.valueOf(movement));
  }
}

function sumIn(sums: Map<string, Sum>, name: string): Sum {
  const sum = sums.get(name) ?? { count: 0, amount: 0n };
  sums.set(name, sum);
  return sum;
}

/** Adds decimal strings with six decimals, ignoring the sign of the second. */
function added(sum = '0.000000', value: string): string {
  const digits = String(BigInt(sum.replace('.', '')) + BigInt(value.replace(/[-.]/g, ''))).padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}
