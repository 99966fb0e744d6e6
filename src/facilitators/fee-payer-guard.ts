import type { Log } from '../net/log.js';
import { withAbortAfter } from '../net/deadline.js';
import { LeakyBuckets } from '../net/leaky-buckets.js';
import { LAMPORTS_PER_SIGNATURE, MAX_PRIORITY_FEE_LAMPORTS, SIGNATURES } from '../rails/solana/fee-limits.js';

/** In lamports. */
export type FeePayerLimits = {
  /** The balance below which nothing is signed. */
  floor: bigint;
  /** The maximum that this server spends within an hour. */
  hourlyCap: bigint;
};

export type FeePayerGuardParts = {
  address: string;
  limits: FeePayerLimits;
  /** Reads the fee payer's lamports from the chain. */
  readBalance: (signal: AbortSignal) => Promise<bigint>;
  log: Log;
  /** Milliseconds since 1970. */
  now?: () => number;
};

/** The highest possible fees of one payment. */
const MOST_FEE = BigInt(SIGNATURES) * LAMPORTS_PER_SIGNATURE + MAX_PRIORITY_FEE_LAMPORTS;
/** A warning is logged below this multiple of the floor. */
const LOW = 4n;
const READ_EVERY_MS = 30_000;
/** The balance is read within this time after the fee payer has paid a fee or has had too little left to sign. */
const READ_SOON_MS = 3_000;
const READ_DEADLINE_MS = 10_000;
/**
 * How long a signed transaction may remain unsent. Before it is sent, the ledger commits once, and that commit may wait for a copy of the
 * same payment.
 */
export const UNSENT_MS = 15_000;
/** The time within which a sent transaction lands, or never does: 150 blocks. */
export const UNSEEN_MS = 120_000;
/** How many fees a payer's failed transfers may cost: the burst, and the rate per hour. Far more than that blocks the payer for hours. */
const LOST_FEES = { capacity: 10, perSecond: 10 / 3_600, highest: 60, maxKeys: 10_000 };
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** A signed transaction whose fee is not in the last balance yet. */
type Use = { fee: bigint; at: number; sent: boolean; landedAt: number | undefined };

type State = 'ok' | 'low' | 'refused';

/**
 * Decides whether the fee payer may sign. Counts the fees of what it signed but has not seen on the chain, so that neither the floor nor the cap is
 * passed between two reads of the balance. What other servers spend from the same fee payer is seen at the next read.
 */
export class FeePayerGuard {
  readonly #parts: FeePayerGuardParts;
  readonly #now: () => number;
  readonly #uses = new Map<string, Use>();
  /** Lamports that were sent out, by minute since 1970. */
  readonly #spent = new Map<number, bigint>();
  readonly #lost: LeakyBuckets;
  readonly #closing = new AbortController();
  #balance: { lamports: bigint; readAt: number } | undefined;
  #reading: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;
  #state: State = 'ok';

  constructor(parts: FeePayerGuardParts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
    this.#lost = new LeakyBuckets({ ...LOST_FEES, now: this.#now });
  }

  /** Reads the balance immediately, and from then on at regular intervals. Resolves after the first read, even if it failed. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.read(), READ_EVERY_MS).unref();
    await this.read();
  }

  stop(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    this.#closing.abort(new Error('the server is shutting down'));
  }

  get address(): string {
    return this.#parts.address;
  }

  /** The lamports below which the operator should send SOL. */
  get low(): bigint {
    return this.#parts.limits.floor * LOW;
  }

  /** Why no payment may be signed now, as a message for the operator; undefined if it may. @param fee in lamports */
  refusal(fee = MOST_FEE): string | undefined {
    const { address, limits } = this.#parts;
    const left = this.lamports;
    // Reads the balance soon, so that sales continue once somebody has sent SOL.
    if (left === undefined || left - fee < limits.floor) this.#readSoon();
    if (left === undefined) return `the balance of the fee payer ${address} could not be read yet`;
    if (left - fee < limits.floor) {
      return `the fee payer ${address} has ${inSol(left)} SOL left and stops at ${inSol(limits.floor)} (FEE_PAYER_FLOOR): send SOL to it`;
    }
    if (this.#spentWithinHour() + this.#reserved() + fee > limits.hourlyCap) {
      return `the fee payer ${address} has reached its hourly limit, ${inSol(limits.hourlyCap)} SOL (FEE_PAYER_HOURLY_CAP)`;
    }
    return undefined;
  }

  /** The lamports that are certainly left: the last balance minus the fees that it may not include yet. */
  get lamports(): bigint | undefined {
    if (this.#balance === undefined) return undefined;
    this.#forget();
    let left = this.#balance.lamports;
    for (const { fee } of this.#uses.values()) left -= fee;
    return left;
  }

  /**
   * Reserves the fee of a transaction before it is signed. The reservation ends if the transaction is not sent within seconds.
   * @returns why it may not be signed
   */
  reserve(signature: string, fee: bigint): string | undefined {
    const before = this.#uses.get(signature);
    if (before?.sent) return undefined;
    if (before) this.#uses.delete(signature);
    const refusal = this.refusal(fee);
    this.#observe(refusal);
    if (refusal === undefined)
      this.#uses.set(signature, { fee, at: this.#now(), sent: false, landedAt: undefined });
    return refusal;
  }

  /** Records that the transaction is not sent after all. */
  withdraw(signature: string): void {
    if (this.#uses.get(signature)?.sent === false) this.#uses.delete(signature);
  }

  /** Records that the transaction is about to be sent; its fee then counts as spent. */
  sent(signature: string, fee: bigint): void {
    if (this.#uses.get(signature)?.sent) return;
    const now = this.#now();
    this.#uses.set(signature, { fee, at: now, sent: true, landedAt: undefined });
    const minute = Math.floor(now / MINUTE_MS);
    this.#spent.set(minute, (this.#spent.get(minute) ?? 0n) + fee);
  }

  /** Records that a transfer by this payer passed the simulation but failed on the chain: it cost a fee and earned nothing. */
  lostBy(payer: string): void {
    this.#lost.add(payer);
  }

  /** False for a payer that has lost too many fees, for instance with transfers that can only succeed in a simulation. */
  allows(payer: string): boolean {
    return this.#lost.wait(payer) === 0;
  }

  /** Records that the chain has charged the fee, so that the next balance already reflects it. */
  landed(signature: string): void {
    const use = this.#uses.get(signature);
    if (use) use.landedAt ??= this.#now();
    this.#readSoon();
  }

  /** Reads the balance. Reads never overlap. Never rejects. */
  read(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  #readSoon(): void {
    if (!this.#closing.signal.aborted)
      this.#soon ??= setTimeout(() => void this.read(), READ_SOON_MS).unref();
  }

  async #read(): Promise<void> {
    const { readBalance, address, log } = this.#parts;
    const readAt = this.#now();
    try {
      const lamports = await withAbortAfter(READ_DEADLINE_MS, this.#closing.signal, readBalance);
      this.#balance = { lamports, readAt };
      this.#observe(this.refusal());
    } catch (error) {
      if (!this.#closing.signal.aborted)
        log.warn({ error, feePayer: address }, 'could not read the balance of the fee payer');
    }
  }

  /** Logs each change for the better or worse once. */
  #observe(refusal: string | undefined): void {
    const { address, limits, log } = this.#parts;
    const left = this.lamports ?? 0n;
    const low = left < limits.floor * LOW;
    const state = refusal === undefined ? (low ? 'low' : 'ok') : 'refused';
    if (state === this.#state) return;
    this.#state = state;
    const fields = { feePayer: address, lamports: String(left) };
    if (state === 'refused')
      log.error(fields, `the embedded facilitator is not settling payments: ${refusal}`);
    else if (state === 'low')
      log.warn(
        fields,
        `the fee payer has ${inSol(left)} SOL left and stops at ${inSol(limits.floor)}: send SOL to it`,
      );
    else log.info(fields, `the fee payer has ${inSol(left)} SOL`);
  }

  /** Drops fees that the last balance includes, and those of transactions that were never sent or can no longer land. */
  #forget(): void {
    const now = this.#now();
    const readAt = this.#balance?.readAt ?? -Infinity;
    for (const [signature, { at, sent, landedAt }] of this.#uses) {
      const counted = landedAt !== undefined && landedAt < readAt;
      const over = at + (sent ? UNSEEN_MS : UNSENT_MS) <= Math.min(now, sent ? readAt : now);
      if (counted || over) this.#uses.delete(signature);
    }
  }

  /** The fees of signed but unsent transactions. */
  #reserved(): bigint {
    let sum = 0n;
    for (const { fee, sent } of this.#uses.values()) if (!sent) sum += fee;
    return sum;
  }

  /** Counts whole minutes, so that no sixty minutes can contain more than the cap. */
  #spentWithinHour(): bigint {
    const oldest = Math.floor((this.#now() - HOUR_MS) / MINUTE_MS);
    let sum = 0n;
    for (const [minute, lamports] of this.#spent) {
      if (minute < oldest) this.#spent.delete(minute);
      else sum += lamports;
    }
    return sum;
  }
}

const LAMPORTS_PER_SOL = 1_000_000_000n;

/** Lamports as a decimal number of SOL, cut to millionths. */
export function inSol(lamports: bigint): string {
  const digits = lamports < 0n ? -lamports : lamports;
  const fraction = String(digits % LAMPORTS_PER_SOL)
    .padStart(9, '0')
    .slice(0, 6);
  return `${lamports < 0n ? '-' : ''}${digits / LAMPORTS_PER_SOL}.${fraction}`;
}
