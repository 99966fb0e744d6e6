import type { Log } from '../net/log.js';
import { UNOBSERVED, type Observer, type OrderChanged } from '../observe/observer.js';
import { LRUCache } from 'lru-cache';
import type { Ledger, Order, Payment as Row } from '../ledger/store.js';
import type { Answer } from './outcome.js';

/** One attempt at a paid order. `request` as `requestText` has it, `deadline` in ms since 1970. */
export type Attempt = {
  id: string;
  operation: string;
  request: string;
  deadline: number;
  attempt: number;
  /** Starts another attempt in place of this one, once per order. @returns undefined if the order was extended before */
  extend: () => Promise<{ deadline: number; attempt: number } | undefined>;
};

/** The result of the work on an order: an answer or a final failure. `error` is a sentence; "The order stays owed" is appended. */
export type OrderResult = { kind: 'answer'; answer: Answer } | { kind: 'failed'; error: string };

export type OrderWork = {
  /** The number of people's replies that the order asks for; 0 if it asks nobody. */
  replies(order: Pick<Attempt, 'operation' | 'request'>): number;
  /** Works until there is an answer or the deadline has passed. Can be called again after a crash. Never rejects. */
  work(attempt: Attempt, signal: AbortSignal): Promise<OrderResult>;
};

const POLL_MS = 1_000;
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
const STOP_MS = 5_000;
const MAX_RUNNING = 256;
const ANSWER_LIFE_MS = 7 * 24 * 60 * 60_000;
const MAX_REMEMBERED = 1_000;
const STAYS_OWED = 'The order stays owed: send the same payment again to start a new attempt.';
const FAILED = 'The order could not be completed.';

/**
 * Works on orders that were paid up front until they are delivered, across crashes and restarts, on the server that holds the lease,
 * whether or not a caller is connected. It polls the ledger for orders; `take` only saves the delay of a poll.
 */
export class OrderWorker {
  readonly #ledger: Ledger;
  readonly #work: OrderWork;
  readonly #log: Log;
  readonly #observer: Observer;
  readonly #attemptMs: number;
  readonly #now: () => number;
  readonly #running = new Map<string, Promise<void>>();
  readonly #failures = new LRUCache<string, string>({ max: MAX_REMEMBERED });
  /** The last request for an order that this server saw. */
  readonly #requests = new LRUCache<string, string>({ max: MAX_REMEMBERED });
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #searching = false;
  /** Where the next poll continues. Failed orders stay owed and must not hide those behind them. */
  #after: { createdAt: number; id: string } | undefined;

  constructor(options: {
    ledger: Ledger;
    work: OrderWork;
    log: Log;
    observer?: Observer;
    attemptMs: number;
    now?: () => number;
  }) {
    this.#ledger = options.ledger;
    this.#work = options.work;
    this.#log = options.log;
    this.#observer = options.observer ?? UNOBSERVED;
    this.#attemptMs = options.attemptMs;
    this.#now = options.now ?? Date.now;
  }

  /** Starts polling for owed orders. */
  start(): void {
    void this.#findWork();
    this.#timer = setInterval(() => void this.#findWork(), POLL_MS);
    this.#timer.unref();
  }

  /** Stops the work. Unfinished orders continue at the next start, or on another server once the lease has ended. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort(new Error('the server is shutting down'));
    // Does not wait for work that ignores its signal; its lease will expire.
    await Promise.race([Promise.allSettled(this.#running.values()), pause(STOP_MS)]);
  }

  /** Starts an owed order at once, with a new attempt if the last one failed. `requestId`: of the request that asks for it. */
  async take(row: Row, requestId?: string): Promise<void> {
    if (requestId !== undefined) this.#requests.set(row.id, requestId);
    if (this.#running.has(row.id)) return;
    const order = await this.#ledger.order(row.id);
    if (order && order.finishedAt !== null) {
      this.#failures.delete(row.id);
      await this.#ledger.reopenOrder(row.id, this.#now() + this.#attemptMs);
    }
    this.#begin(row.id);
  }

  /**
   * Waits at most `ms` until the work on the order has ended.
   * @returns why the attempt failed, or undefined if the order was delivered or is still in progress
   */
  async wait(id: string, ms: number, gone: AbortSignal): Promise<string | undefined> {
    const until = this.#now() + ms;
    const ended = AbortSignal.any([gone, this.#stop.signal]);
    let leave = (): void => undefined;
    const leaving = new Promise<void>(resolve => (leave = resolve));
    ended.addEventListener('abort', leave, { once: true });
    try {
      while (!ended.aborted) {
        const left = until - this.#now();
        if (left <= 0) break;
        await Promise.race([
          this.#running.get(id) ?? pause(POLL_MS),
          pause(Math.min(left, POLL_MS)),
          leaving,
        ]);
        if (this.#running.has(id)) continue;
        const row = await this.#ledger.find(id);
        if (row?.state !== 'owed') return undefined;
        const failed = await this.failureOf(id);
        if (failed !== undefined) return failed;
      }
      return undefined;
    } finally {
      // Node never collects a composite signal that has a listener.
      ended.removeEventListener('abort', leave);
    }
  }

  /** Why the last attempt at an owed order failed; undefined while one is in progress. */
  async failureOf(id: string): Promise<string | undefined> {
    if (this.#running.has(id)) return undefined;
    const order = await this.#ledger.order(id);
    return order && order.finishedAt !== null
      ? `${this.#failures.get(id) ?? FAILED} ${STAYS_OWED}`
      : undefined;
  }

  async #findWork(): Promise<void> {
    if (this.#searching || this.#stop.signal.aborted) return;
    this.#searching = true;
    try {
      const after = this.#after ? { after: this.#after } : {};
      const owed = await this.#ledger.list({ state: 'owed', idle: true, limit: MAX_RUNNING, ...after });
      for (const { id } of owed.filter(row => row.flow === 'upfront')) {
        const order = this.#running.has(id) ? undefined : await this.#ledger.order(id);
        if (!this.#running.has(id) && (order === undefined || order.finishedAt === null)) this.#begin(id);
      }
      this.#after = owed.length < MAX_RUNNING ? undefined : owed.at(-1);
    } catch (error) {
      this.#log.warn({ error }, 'could not read owed orders from the ledger');
    } finally {
      this.#searching = false;
    }
  }

  #begin(id: string): void {
    if (this.#running.has(id) || this.#running.size >= MAX_RUNNING || this.#stop.signal.aborted) return;
    const run = this.#run(id)
      .catch((error: unknown) =>
        this.#log.error({ payment: id, error }, 'work on an order failed; it will be retried'),
      )
      .finally(() => this.#running.delete(id));
    this.#running.set(id, run);
  }

  async #run(id: string): Promise<void> {
    const row = await this.#ledger.adopt(id, LEASE_MS);
    if (!row) return;
    if (row.state !== 'owed' || row.request === null)
      return void (await this.#ledger.extendLease(id, row.claim, 0));
    const { request, operation } = row;
    const order = await this.#ledger.openOrder({
      payment: id,
      request,
      wanted: this.#work.replies({ operation, request }),
      deadline: this.#now() + this.#attemptMs,
    });
    const lost = new AbortController();
    const renewing = setInterval(() => void this.#hold(row, lost).catch(() => {}), RENEW_MS).unref();
    try {
      if (order.finishedAt !== null) return;
      const { deadline, attempts: attempt } = order;
      let current = attempt;
      let broken: { error: unknown } | undefined;
      const extend: Attempt['extend'] = async () => {
        try {
          const next = (await this.#hold(row, lost)) ? await this.#extend(id, current) : undefined;
          if (next) current = next.attempts;
          return next && { deadline: next.deadline, attempt: next.attempts };
        } catch (error) {
          broken = { error };
          throw error;
        }
      };
      const signal = AbortSignal.any([this.#stop.signal, lost.signal]);
      const result = await this.#work.work({ id, operation, request, deadline, attempt, extend }, signal);
      // What failed is the ledger, not the order.
      if (broken) throw broken.error;
      if (!signal.aborted && (await this.#hold(row, lost))) await this.#finish(row, current, result);
    } finally {
      clearInterval(renewing);
      // Ends only the lease; callers of the row are not affected.
      await this.#ledger.extendLease(id, row.claim, 0);
    }
  }

  /** Renews the lease. @returns false if another server has taken the order over; its work here is then aborted */
  async #hold({ id, claim }: Row, lost: AbortController): Promise<boolean> {
    const mine = await this.#ledger.extendLease(id, claim, LEASE_MS);
    if (!mine) lost.abort(new Error('another server has taken the order over'));
    return mine;
  }

  /** Starts another attempt, or finds the one that a server started which held the order before. */
  async #extend(id: string, attempt: number): Promise<Order | undefined> {
    const next = await this.#ledger.extendOrder(id, attempt, this.#now() + this.#attemptMs);
    if (next) return next;
    const order = await this.#ledger.order(id);
    return order && order.finishedAt === null && order.attempts > attempt ? order : undefined;
  }

  async #finish(row: Row, attempt: number, result: OrderResult): Promise<void> {
    if (result.kind === 'failed') {
      this.#tell(row, 'failed', result.error);
      this.#failures.set(row.id, result.error);
      await this.#ledger.finishOrder(row.id, attempt);
      return;
    }
    const saved = await this.#ledger.saveAnswer(row.id, row.claim, result.answer);
    const delivered =
      saved &&
      (await this.#ledger.deliver(row.id, row.claim, {
        settlement: row.settlement ?? '',
        answerExpiresAt: this.#now() + ANSWER_LIFE_MS,
      }));
    if (!delivered) return;
    this.#tell(row, 'delivered');
    await this.#ledger.finishOrder(row.id, attempt);
  }

  #tell({ id: payment, operation, payer, amount }: Row, change: OrderChanged['change'], why?: string): void {
    const requestId = this.#requests.get(payment);
    const order = { operation, payment, payer, amount, requestId, ...(why === undefined ? {} : { why }) };
    this.#observer.tell({ kind: 'order', change, ...order });
  }
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms).unref());
}
