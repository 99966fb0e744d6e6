import type { Log } from '../net/log.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller, Ledger } from '../ledger/store.js';
import type { Sale } from './outcome.js';

/** A caller is renewed well before the ledger takes it for gone (`CALLER_LIVE_MS`). */
const RENEW_MS = 2_000;
/** What could not be recorded about a caller is tried again after these many ms. */
const RETRY_MS = [50, 200, 1_000, 4_000, 15_000];
/** A ledger that is away long enough for more than these has worse to report. */
const MAX_RETRYING = 1_000;
/** A caller waits this many ms at most for the ledger to record that it is sent away. */
const RECORDED_WITHIN_MS = 5_000;

/** One request that waits for a payment's answer. */
export class WaitingCaller implements Sale {
  caller: Caller;
  /** A newer request came for the same payment, or this one was sent away: it is renewed no more. */
  superseded = false;
  readonly #callers: WaitingCallers;

  constructor(callers: WaitingCallers, caller: Caller) {
    this.#callers = callers;
    this.caller = caller;
  }

  /** It is sent away, or hung up: resolves once the ledger knows, or after 5 s. */
  leave(): Promise<void> {
    return this.#callers.leave(this);
  }

  /** It was given a final answer: nothing to record. */
  close(): void {
    this.#callers.remove(this);
  }

  written(): void {
    void this.#callers.written(this);
  }

  lost(): Promise<void> {
    return this.leave();
  }
}

/**
 * The requests of this server that wait for payments. That they wait is a fact in the ledger, renewed while their connections live:
 * money is asked for only while somebody waits, on whichever server (see docs/design.md, "Who waits for a payment").
 */
export class WaitingCallers {
  readonly #ledger: Pick<
    Ledger,
    'shared' | 'lookUp' | 'addCaller' | 'renewCallers' | 'removeCaller' | 'markWritten'
  >;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #emptied: (id: string) => void;
  readonly #waiting = new Map<string, Set<WaitingCaller>>();
  readonly #arriving = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #renewing = false;
  #retrying = 0;

  constructor(parts: {
    ledger: Pick<Ledger, 'shared' | 'lookUp' | 'addCaller' | 'renewCallers' | 'removeCaller' | 'markWritten'>;
    log: Log;
    now: () => number;
    /** The last caller of a payment here has left; where other servers share the ledger, it knows that by then. */
    emptied: (id: string) => void;
  }) {
    this.#ledger = parts.ledger;
    this.#log = parts.log;
    this.#now = parts.now;
    this.#emptied = parts.emptied;
  }

  /** Takes a request in that the ledger knows as a caller; it leaves by itself when its connection is gone. */
  add(caller: Caller, gone: AbortSignal): WaitingCaller {
    const waiting = new WaitingCaller(this, caller);
    this.#insert(waiting);
    if (gone.aborted) void waiting.leave();
    else gone.addEventListener('abort', () => void waiting.leave(), { once: true });
    return waiting;
  }

  /** A request comes with this payment and is on its way to become a caller. @returns what to call once it is one, or will not be */
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

  /** Whether nobody at this server waits for a payment, nor is about to. */
  isEmpty(id: string): boolean {
    return this.count(id) === 0 && !this.#arriving.has(id);
  }

  /** The greatest number among the requests of this server that wait for a payment; 0 where none does. */
  newest(id: string): number {
    let newest = 0;
    for (const { caller } of this.#waiting.get(id) ?? []) newest = Math.max(newest, caller.number);
    return newest;
  }

  /** A caller of a payment waits for another one's answer from now on. Where it has hung up meanwhile, none takes its place. */
  reassign({ id, number }: Caller, to: Caller): void {
    const moving = [...(this.#waiting.get(id) ?? [])].find(({ caller }) => caller.number === number);
    if (!moving) return;
    this.remove(moving);
    moving.caller = to;
    moving.superseded = false;
    this.#insert(moving);
  }

  /** Tells the ledger now, not at the next turn, that the callers of these payments are here. Never rejects. */
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

  /** A request is sent away that never waited: its payment counts as sent away all the same, where the ledger knows it. */
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

  remove(waiting: WaitingCaller): void {
    this.#unregister(waiting);
  }

  /** The row was deleted: there is nothing to record of whoever waited for it. */
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

  /** @returns false if it was forgotten before */
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

  /** Resolves once the ledger knows, or after 5 s; a ledger that is away longer is tried on in the background. */
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
        this.#log.warn({ payment: id, error, attempt }, 'could not record what became of a caller');
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
