import Database from 'libsql';
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Json } from '../contract/json.js';
import { toDecimal } from '../price/amount.js';
import { messageOf } from '../ledger/fault.js';
import type { ChainClock } from '../rails/solana/chain-clock.js';
import { appendLine, lastLines, type StatementEvent, type StatementLine } from './statement.js';

/** A payment that was signed for a call and whose answer is still missing. Amounts are atomic units of USDC as decimal strings. */
export type PendingPayment = {
  /** Hex sha256 of the transaction's message. */
  id: string;
  /** Identifies the call: the shop, the tool and its arguments. */
  call: string;
  shop: string;
  tool: string;
  amount: string;
  /** CAIP-2. */
  network: string;
  payTo: string;
  /** Base58. */
  blockhash: string;
  /** The transaction, base64, without the fee payer's signature. */
  transaction: string;
  signedAt: number;
  /** The chain's own clock at the time of signing; absent if no RPC server reported it. */
  signedOnChain?: ChainClock;
  /** The payment as sent: x402's PaymentPayload, or its base64 if the shop requires that. */
  payment: Json | string;
  /** The shop's key to the answer. */
  pickUp?: string;
  /** The signature of the transfer, once a receipt or the chain has shown it. */
  landed?: string;
  /** When the chain was last searched for the payment, in ms since 1970. */
  lookedAt?: number;
};

type State = {
  version: 1;
  /** The amount signed on a day (UTC), minus payments known not to have been settled. */
  spent: Record<string, string>;
  pending: PendingPayment[];
};

type Noted = Pick<StatementLine, 'transaction' | 'link' | 'note'>;

/** Why a payment was not added. `known`: another payment for the same call is pending; that one must be sent. */
export type Refusal =
  { kind: 'known'; pending: PendingPayment } | { kind: 'budget'; left: bigint } | { kind: 'full' };

/** The wallet's files can't be used. The message says why. */
export class PurseFault extends Error {}

const MAX_PENDING = 500;
/** The largest wallet.json. It is rewritten with every payment. */
const MAX_STATE_BYTES = 8 * 1024 * 1024;
/** How long to wait for other wallets that use the same folder; each holds the lock for a few milliseconds. */
const LOCK_MS = 10_000;
const DAYS_KEPT = 400;

/**
 * The spending of a key pair and its payments without an answer, in a folder shared by all wallets with this key. Everything is on disk
 * before a payment is sent: the state is written to a new file, flushed, and renamed, under a lock that the kernel releases however the
 * process ends.
 */
export class Purse {
  readonly folder: string;
  readonly #state: string;
  readonly #statement: string;
  readonly #lock: InstanceType<typeof Database>;
  readonly #now: () => number;

  /** @throws PurseFault */
  constructor(folder: string, now: () => number = Date.now) {
    this.folder = folder;
    this.#state = join(folder, 'wallet.json');
    this.#statement = join(folder, 'statement.jsonl');
    this.#now = now;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      chmodSync(folder, 0o700);
      this.#lock = new Database(join(folder, 'wallet.lock'));
      this.#lock.exec(`PRAGMA busy_timeout = ${LOCK_MS}`);
    } catch (error) {
      throw new PurseFault(`The wallet's folder ${folder} can't be used: ${messageOf(error)}`);
    }
    this.#locked(() => this.#read());
  }

  find(call: string): PendingPayment | undefined {
    return this.#locked(() => this.#read().pending.find(each => each.call === call));
  }

  /** All payments without an answer, oldest first. */
  pending(): PendingPayment[] {
    return this.#locked(() => this.#read().pending);
  }

  /** The rest of today's budget (UTC), in atomic units; 0 if another wallet with a higher budget has spent more. */
  left(budget: bigint): bigint {
    return this.#locked(() => this.#left(this.#read(), budget));
  }

  /**
   * Counts a signed payment against today's budget and stores it. @returns the reason if that is not possible; if undefined, the payment
   * may be sent
   */
  add(
    signed: Omit<PendingPayment, 'signedAt'>,
    budget: bigint,
    signedAt: number = this.#now(),
  ): Refusal | undefined {
    return this.#locked(() => {
      const payment = { ...signed, signedAt };
      const state = this.#read();
      const known = state.pending.find(each => each.call === payment.call);
      if (known) return { kind: 'known', pending: known };
      const left = this.#left(state, budget);
      if (BigInt(payment.amount) > left) return { kind: 'budget', left };
      if (state.pending.length >= MAX_PENDING) return { kind: 'full' };
      const day = dayOf(payment.signedAt);
      state.spent[day] = String(spentOn(state, day) + BigInt(payment.amount));
      state.pending.push(payment);
      if (JSON.stringify(state).length > MAX_STATE_BYTES) return { kind: 'full' };
      this.#write(state);
      this.#note('signed', payment);
      return undefined;
    });
  }

  /** Records what is now known about a payment. */
  update(id: string, known: Pick<PendingPayment, 'pickUp' | 'landed' | 'lookedAt'>): void {
    this.#locked(() => {
      const state = this.#read();
      const found = state.pending.find(each => each.id === id);
      if (!found) return;
      const landed = known.landed !== undefined && found.landed === undefined;
      Object.assign(found, known);
      this.#write(state);
      if (landed) this.#note('landed', found);
    });
  }

  /** Closes a payment whose call has its answer or a link to it. The statement keeps the link. The next call is a new purchase. */
  answered(id: string, transaction: string | undefined, link?: string): void {
    this.#remove(id, 'answered', {
      ...(transaction === undefined ? {} : { transaction }),
      ...(link === undefined ? {} : { link }),
    });
  }

  /** Removes a payment that was not settled and never will be. It no longer counts against the budget. */
  release(id: string): void {
    this.#remove(id, 'released');
  }

  /** Closes a payment that the shop no longer answers. It still counts as spent; the next call is a new purchase. */
  unanswered(id: string, note: string): void {
    this.#remove(id, 'unanswered', { note: note.slice(0, 200) });
  }

  /**
   * Closes a payment that the shop reports as refunded. The wallet does not verify this, so the payment still counts as spent. The next
   * call is a new purchase.
   */
  refunded(id: string, note: string): void {
    this.#remove(id, 'refunded', { note: note.slice(0, 200) });
  }

  /** Records in the statement that a shop refused a payment. It still counts as spent, because the shop could still settle it. */
  refused(payment: PendingPayment, note: string): void {
    this.#locked(() => this.#note('refused', payment, { note: note.slice(0, 200) }));
  }

  /** The last lines of the statement, oldest first. */
  lines(count: number): StatementLine[] {
    return lastLines(this.#statement, count);
  }

  close(): void {
    this.#lock.close();
  }

  #remove(id: string, event: 'answered' | 'released' | 'unanswered' | 'refunded', more: Noted = {}): void {
    this.#locked(() => {
      const state = this.#read();
      const found = state.pending.find(each => each.id === id);
      if (!found) return;
      this.#note(event, found, more);
      state.pending = state.pending.filter(each => each !== found);
      const day = dayOf(found.signedAt);
      if (event === 'released' && state.spent[day] !== undefined)
        state.spent[day] = String(spentOn(state, day) - BigInt(found.amount));
      this.#write(state);
    });
  }

  #left(state: State, budget: bigint): bigint {
    const spent = spentOn(state, dayOf(this.#now()));
    return spent < budget ? budget - spent : 0n;
  }

  #note(
    event: StatementEvent,
    { shop, tool, amount, network, payTo, id, landed }: PendingPayment,
    more: Noted = {},
  ): void {
    appendLine(this.#statement, {
      at: new Date(this.#now()).toISOString(),
      event,
      shop,
      tool,
      amount: toDecimal(BigInt(amount)),
      network,
      payTo,
      payment: id,
      ...(landed ? { transaction: landed } : {}),
      ...more,
    });
  }

  #locked<T>(work: () => T): T {
    try {
      this.#lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      throw new PurseFault(`The wallet's folder ${this.folder} can't be locked: ${messageOf(error)}`);
    }
    try {
      return work();
    } finally {
      this.#lock.exec('ROLLBACK');
    }
  }

  #read(): State {
    let text: string;
    try {
      text = readFileSync(this.#state, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { version: 1, spent: {}, pending: [] };
      throw new PurseFault(`${this.#state} can't be read: ${messageOf(error)}`);
    }
    const state = parse(text);
    // A damaged file must not count as an empty one, because the wallet would then spend its budget again.
    if (!state)
      throw new PurseFault(`${this.#state} is damaged. Nothing is paid until it is restored or removed.`);
    return state;
  }

  #write(state: State): void {
    const days = Object.entries(state.spent).sort(([a], [b]) => (a < b ? -1 : 1));
    state.spent = Object.fromEntries(days.slice(-DAYS_KEPT));
    const next = `${this.#state}.new`;
    writeFileSync(next, JSON.stringify(state), { mode: 0o600, flush: true });
    renameSync(next, this.#state);
    const folder = openSync(this.folder, 'r');
    fsyncSync(folder);
    closeSync(folder);
  }
}

/** The day on which a payment counts, in UTC. */
function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

function spentOn({ spent }: State, day: string): bigint {
  return BigInt(spent[day] ?? '0');
}

function parse(text: string): State | undefined {
  try {
    const state = JSON.parse(text) as State;
    const whole = state.version === 1 && Array.isArray(state.pending) && typeof state.spent === 'object';
    for (const amount of [...Object.values(state.spent), ...state.pending.map(each => each.amount)])
      if (BigInt(amount) < 0n) return undefined;
    return whole ? state : undefined;
  } catch {
    return undefined;
  }
}
