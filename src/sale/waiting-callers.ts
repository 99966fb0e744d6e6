import type { Log } from '../net/log.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller, Ledger } from '../ledger/store.js';
import type { Sale } from './outcome.js';

/** Well below the time after which the ledger counts a caller as gone (`CALLER_LIVE_MS`). */
const RENEW_MS = 2_000;
/** Delays, in ms, between retries of a record about a caller. */
const RETRY_MS = [50, 200, 1_000, 4_000, 15_000];
/** The most records that are retried at a time. */
const MAX_RETRYING = 1_000;
/** The longest, in ms, that a caller waits until the ledger has recorded its departure. */
const RECORDED_WITHIN_MS = 5_000;

/** How long an answer is kept from the time at which a caller was given a link to it. */
const LINKED_LIFE_MS = 24 * 60 * 60_000;

/** One request that waits for a payment's answer. */
export class WaitingCaller implements Sale {
  caller: Caller;
  /** A newer request came for the same payment, or this one was answered with 503: it is no longer renewed. */
  superseded = false;
  readonly #callers: WaitingCallers;

  constructor(callers: WaitingCallers, caller: Caller) {
    this.#callers = callers;
    this.caller = caller;
  }

  /** To be called before a 503 or after a hang-up. Resolves once the ledger has recorded it, or after 5 s. */
  leave(): Promise<void> {
    return this.#callers.leave(this);
  }

  /** To be called after a final answer. There is nothing to record. */
  close(): void {
    this.#callers.remove(this);
  }

  written(): void {
    void this.#callers.written(this);
  }

  async linked(): Promise<number | undefined> {
    const until = await this.#callers.keep(this.caller);
    await this.leave();
    return until;
  }

  lost(): Promise<void> {
    return this.leave();
  }
}

type CallersLedger = Pick<
  Ledger,
  | 'shared'
  | 'lookUp'
  | 'addCaller'
  | 'renewCallers'
  | 'removeCaller'
  | 'markWritten'
  | 'markFetched'
  | 'keepAnswer'
>;

/**
 * The requests of this server that wait for payments. The ledger records each of them, renewed while its connection is open, because a
 * payment is only settled while a caller waits for it at some server (see docs/explanation/design.md, "Who waits for a payment").
 */
export class WaitingCallers {
  readonly #ledger: CallersLedger;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #emptied: (id: string) => void;
  readonly #waiting = new Map<string, Set<WaitingCaller>>();
  readonly #arriving = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #renewing = false;
  #retrying = 0;

  constructor(parts: {
    ledger: CallersLedger;
    log: Log;
    now: () => number;
    /** Called when the last caller of a payment here has left; on a shared ledger, after the ledger has recorded it. */
    emptied: (id: string) => void;
  }) {
    this.#ledger = parts.ledger;
    this.#log = parts.log;
    this.#now = parts.now;
    this.#emptied = parts.emptied;
  }

  /** Registers a request that the ledger has as a caller. It is removed when its connection closes. */
  add(caller: Caller, gone: AbortSignal): WaitingCaller {
    const waiting = new WaitingCaller(this, caller);
    this.#insert(waiting);
    if (gone.aborted) void waiting.leave();
    else gone.addEventListener('abort', () => void waiting.leave(), { once: true });
    return waiting;
  }

  /** Registers a request that is about to become a caller. @returns a function to call once it is one, or will not be */
  announce(id: string): () => void {
    this.#arriving.set(id, (this.#arriving.get(id) ?? 0) + 1);
    let here = true;
    return () => {
      if (!here) return;
      here = false;
      const others = (this.#arriving.get(id) ?? 1) - 1;
      if (others > 0) this.#arriving.set(id, others);
      else this.#arriving.delete(id);
      if (others === 0 && this.count(id) === 0) this.#emptied(id);
    };
  }

  /** How many requests of this server wait for a payment. */
  count(id: string): number {
    return this.#waiting.get(id)?.size ?? 0;
  }

  /** Whether no request of this server waits for a payment or is about to. */
  isEmpty(id: string): boolean {
    return this.count(id) === 0 && !this.#arriving.has(id);
  }

  /** The greatest number among the requests of this server that wait for a payment; 0 if there are none. */
  newest(id: string): number {
    let newest = 0;
    for (const { caller } of this.#waiting.get(id) ?? []) newest = Math.max(newest, caller.number);
    return newest;
  }

  /** Moves a caller from one payment to another, unless it has hung up meanwhile. */
  reassign({ id, number }: Caller, to: Caller): void {
    const moving = [...(this.#waiting.get(id) ?? [])].find(({ caller }) => caller.number === number);
    if (!moving) return;
    this.remove(moving);
    moving.caller = to;
    moving.superseded = false;
    this.#insert(moving);
  }

  /** Renews the callers of these payments in the ledger at once. Never rejects. */
  async renew(ids: Iterable<string>): Promise<void> {
    const present = [...ids].flatMap(id => this.#renewable(id));
    if (present.length === 0) return;
    try {
      const renewed = await this.#ledger.renewCallers(present.map(({ caller }) => caller));
      const still = new Set(renewed.map(keyOf));
      for (const waiting of present) if (!still.has(keyOf(waiting.caller))) waiting.superseded = true;
    } catch (error) {
      this.#log.warn({ error, callers: present.length }, 'could not record that callers still wait');
    }
  }

  async leave(waiting: WaitingCaller): Promise<void> {
    if (!this.#unregister(waiting)) return;
    const { caller } = waiting;
    if (!this.#ledger.shared && this.isEmpty(caller.id)) this.#emptied(caller.id);
    if (caller.number > 0) await this.#recordSoon(caller.id, () => this.#ledger.removeCaller(caller));
    if (this.#ledger.shared && this.isEmpty(caller.id)) this.#emptied(caller.id);
  }

  /** Records the 503 of a request that never waited, if the ledger knows its payment. */
  turnAway(id: string, payer: string): Promise<void> {
    return this.#recordSoon(id, async () => {
      const { row, target } = await this.#ledger.lookUp(id, payer);
      if (!row) return;
      const watched = await this.#ledger.addCaller(target?.id ?? id, { proven: target !== undefined });
      if (watched) await this.#ledger.removeCaller(watched.caller);
    });
  }

  async written(waiting: WaitingCaller): Promise<void> {
    const { caller } = waiting;
    const at = this.#now();
    if (!this.#unregister(waiting) || caller.number === 0) return;
    await this.#record(caller.id, () => this.#ledger.markWritten(caller, Math.max(0, this.#now() - at)));
  }

  /** A sale to somebody who fetches an answer with the key that `caller` was given. */
  fetching(caller: Caller): Sale {
    return {
      written: () => {
        const at = this.#now();
        const write = (): Promise<boolean> => this.#ledger.markFetched(caller, Math.max(0, this.#now() - at));
        if (caller.number > 0) void this.#record(caller.id, write);
      },
      linked: () => this.keep(caller),
      lost: async () => {},
    };
  }

  /** Keeps the answer of a payment for a day from now, if there is room for it. @returns until when it is kept, if that is known */
  async keep({ id }: Caller): Promise<number | undefined> {
    let until: number | undefined;
    await this.#recordSoon(id, async () => {
      until = await this.#ledger.keepAnswer(id, this.#now() + LINKED_LIFE_MS);
    });
    return until;
  }

  remove(waiting: WaitingCaller): void {
    this.#unregister(waiting);
  }

  /** Removes all callers of a deleted row. There is nothing to record. */
  removeAll(id: string): void {
    for (const waiting of this.#waiting.get(id) ?? []) this.#unregister(waiting);
  }

  /** The newest caller of a payment at this server, unless the ledger has a newer one. */
  #renewable(id: string): WaitingCaller[] {
    const newest = this.newest(id);
    return [...(this.#waiting.get(id) ?? [])].filter(
      ({ caller, superseded }) => newest > 0 && caller.number === newest && !superseded,
    );
  }

  #insert(waiting: WaitingCaller): void {
    const { id } = waiting.caller;
    const others = this.#waiting.get(id);
    if (others) others.add(waiting);
    else this.#waiting.set(id, new Set([waiting]));
    this.#timer ??= setInterval(() => void this.#renewAll(), RENEW_MS).unref();
  }

  /** @returns false if it was removed before */
  #unregister(waiting: WaitingCaller): boolean {
    const { id } = waiting.caller;
    const others = this.#waiting.get(id);
    if (!others?.delete(waiting)) return false;
    if (others.size === 0) this.#waiting.delete(id);
    if (this.#waiting.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    return true;
  }

  async #renewAll(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    await this.renew(this.#waiting.keys());
    this.#renewing = false;
  }

  /** Resolves once the ledger has recorded it, or after 5 s. Retries continue in the background. */
  async #recordSoon(id: string, write: () => Promise<unknown>): Promise<void> {
    const limit = new AbortController();
    const late = sleep(RECORDED_WITHIN_MS, undefined, { signal: limit.signal, ref: false }).catch(() => {});
    await Promise.race([this.#record(id, write), late]);
    limit.abort();
  }

  async #record(id: string, write: () => Promise<unknown>): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        return void (await write());
      } catch (error) {
        this.#log.warn(
          { payment: id, error, attempt },
          'could not record that a caller left or was answered',
        );
      }
      const ms = RETRY_MS[attempt];
      if (ms === undefined || this.#retrying >= MAX_RETRYING) return;
      this.#retrying += 1;
      await sleep(ms, undefined, { ref: false });
      this.#retrying -= 1;
    }
  }
}

function keyOf({ id, number }: Caller): string {
  return `${id} ${number}`;
}
