import { setTimeout as sleep } from 'node:timers/promises';
import { callerKey } from '../ledger/store.js';
import type { Caller, Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { Sale } from './outcome.js';

/** Well below the time after which the ledger counts a caller as gone (`CALLER_LIVE_MS`). */
const RENEW_MS = 2_000;
/** Delays, in ms, between retries of a record about a caller. */
const RETRY_MS = [50, 200, 1_000, 4_000, 15_000];
/** The maximum number of records that are retried at a time. */
const MAX_RETRYING = 1_000;
/** The longest time, in ms, that a caller waits for the ledger to record its departure. */
const RECORDED_WITHIN_MS = 5_000;

/** How long an answer is kept from the time at which a caller was given a link to it. */
const LINKED_LIFE_MS = 24 * 60 * 60_000;

/** One request that is waiting for a payment's answer. */
export type WaitingCaller = Sale & {
  caller: Caller;
  /** A newer request came for the same payment, or this one was answered with 503. This request is no longer renewed in the ledger. */
  superseded: boolean;
  /** To be called before a 503 or after a hang-up. Resolves once the ledger has recorded it, or after 5 s. */
  leave(): Promise<void>;
  /** To be called after a final answer, when there is nothing to record. */
  close(): void;
};

/** The requests of this server for one payment: those that are waiting, and how many are about to. */
type Local = { waiting: Set<WaitingCaller>; arriving: number };

type Options = {
  ledger: Ledger;
  log: Log;
  now: () => number;
  /** Called when the last caller of a payment here has left; on a shared ledger, after the ledger has recorded it. */
  emptied: (id: string) => void;
};

/**
 * The requests of this server that are waiting for payments. The ledger records each of them, renewed while its connection is open, because
 * a payment is only settled while a caller is waiting for it at some server (see docs/explanation/design.md, "Who waits for a payment").
 */
export class WaitingCallers {
  readonly #options: Options;
  readonly #local = new Map<string, Local>();
  #timer: NodeJS.Timeout | undefined;
  #renewing = false;
  #retrying = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Registers a request that is recorded in the ledger as a caller. The caller is removed when its connection closes. */
  add(caller: Caller, gone: AbortSignal): WaitingCaller {
    const leave = (): Promise<void> => this.#leave(waiting);
    const waiting: WaitingCaller = {
      caller,
      superseded: false,
      leave,
      lost: leave,
      close: () => void this.#remove(waiting),
      written: () => {
        if (this.#remove(waiting)) this.#recordWritten('markWritten', waiting.caller);
      },
      linked: async () => {
        const until = await this.#keep(waiting.caller);
        await leave();
        return until;
      },
    };
    this.#insert(waiting);
    if (gone.aborted) void leave();
    else gone.addEventListener('abort', () => void leave(), { once: true });
    return waiting;
  }

  /** Registers a request that is about to become a caller. @returns a function to call once that has happened or will not happen */
  announce(id: string): () => void {
    this.#at(id).arriving += 1;
    let here = true;
    return () => {
      if (!here) return;
      here = false;
      this.#at(id).arriving -= 1;
      if (this.#forgetIfEmpty(id)) this.#options.emptied(id);
    };
  }

  /** How many requests at this server are waiting for a payment. */
  count(id: string): number {
    return this.#waiting(id).length;
  }

  /** Whether no request at this server is waiting for a payment, or is about to. */
  isEmpty(id: string): boolean {
    return !this.#local.has(id);
  }

  /** The highest caller number among the requests at this server that are waiting for a payment; 0 if there are none. */
  newest(id: string): number {
    return Math.max(0, ...this.#waiting(id).map(({ caller }) => caller.number));
  }

  /** Moves a caller from one payment to another, unless it has hung up meanwhile. */
  reassign({ id, number }: Caller, to: Caller): void {
    const moving = this.#waiting(id).find(({ caller }) => caller.number === number);
    if (!moving) return;
    this.#remove(moving);
    moving.caller = to;
    moving.superseded = false;
    this.#insert(moving);
  }

  /** Renews the callers of these payments in the ledger immediately. Never rejects. */
  async renew(ids: Iterable<string>): Promise<void> {
    const { ledger, log } = this.#options;
    // A request may move to another payment meanwhile (`reassign`).
    const present = [...ids]
      .flatMap(id => this.#renewable(id))
      .map(waiting => ({ waiting, caller: waiting.caller }));
    if (present.length === 0) return;
    try {
      const renewed = await ledger.renewCallers(present.map(({ caller }) => caller));
      const still = new Set(renewed.map(callerKey));
      for (const { waiting, caller } of present)
        if (waiting.caller === caller && !still.has(callerKey(caller))) waiting.superseded = true;
    } catch (error) {
      log.warn({ error, callers: present.length }, 'could not record that callers are still waiting');
    }
  }

  /** Records the 503 of a request that never waited, if the ledger knows its payment. */
  turnAway(id: string, payer: string): Promise<void> {
    const { ledger } = this.#options;
    return this.#recordSoon(id, async () => {
      const { row, target } = await ledger.lookUp(id, payer);
      if (!row) return;
      const watched = await ledger.addCaller(target?.id ?? id, { proven: target !== undefined });
      if (watched) await ledger.removeCaller(watched.caller);
    });
  }

  /** The sale for a request that fetches the answer with the key of `caller`. */
  fetching(caller: Caller): Sale {
    return {
      written: () => this.#recordWritten('markFetched', caller),
      linked: () => this.#keep(caller),
      lost: async () => {},
    };
  }

  /** Removes all callers of a deleted row, which leaves nothing to record. */
  removeAll(id: string): void {
    for (const waiting of this.#waiting(id)) this.#remove(waiting);
  }

  async #leave(waiting: WaitingCaller): Promise<void> {
    const { ledger, emptied } = this.#options;
    const { caller } = waiting;
    if (!this.#remove(waiting)) return;
    if (!ledger.shared && this.isEmpty(caller.id)) emptied(caller.id);
    if (caller.number > 0) await this.#recordSoon(caller.id, () => ledger.removeCaller(caller));
    if (ledger.shared && this.isEmpty(caller.id)) emptied(caller.id);
  }

  /** Keeps the answer of a payment for a day from now, if there is room for it. @returns until when it is kept, if that is known */
  async #keep({ id }: Caller): Promise<number | undefined> {
    const { ledger, now } = this.#options;
    let until: number | undefined;
    await this.#recordSoon(id, async () => {
      until = await ledger.keepAnswer(id, now() + LINKED_LIFE_MS);
    });
    return until;
  }

  #recordWritten(mark: 'markWritten' | 'markFetched', caller: Caller): void {
    const { ledger, now } = this.#options;
    const at = now();
    if (caller.number > 0) void this.#record(caller.id, () => ledger[mark](caller, Math.max(0, now() - at)));
  }

  #waiting(id: string): WaitingCaller[] {
    return [...(this.#local.get(id)?.waiting ?? [])];
  }

  /** The newest caller of a payment at this server, unless the ledger has a newer one. */
  #renewable(id: string): WaitingCaller[] {
    const newest = this.newest(id);
    return this.#waiting(id).filter(
      ({ caller, superseded }) => newest > 0 && caller.number === newest && !superseded,
    );
  }

  #at(id: string): Local {
    const local = this.#local.get(id) ?? { waiting: new Set(), arriving: 0 };
    this.#local.set(id, local);
    this.#timer ??= setInterval(() => void this.#renewAll(), RENEW_MS).unref();
    return local;
  }

  #insert(waiting: WaitingCaller): void {
    this.#at(waiting.caller.id).waiting.add(waiting);
  }

  /** @returns false if the caller had been removed before */
  #remove(waiting: WaitingCaller): boolean {
    const { id } = waiting.caller;
    if (!this.#local.get(id)?.waiting.delete(waiting)) return false;
    this.#forgetIfEmpty(id);
    return true;
  }

  /** Forgets a payment if no request is waiting for it or about to. @returns false if one is */
  #forgetIfEmpty(id: string): boolean {
    const { waiting, arriving } = this.#at(id);
    if (waiting.size > 0 || arriving > 0) return false;
    this.#local.delete(id);
    if (this.#local.size > 0) return true;
    clearInterval(this.#timer);
    this.#timer = undefined;
    return true;
  }

  async #renewAll(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    await this.renew(this.#local.keys());
    this.#renewing = false;
  }

  /** Resolves once `write` has succeeded, or after 5 s. Retries continue in the background. */
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
        this.#options.log.warn(
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
