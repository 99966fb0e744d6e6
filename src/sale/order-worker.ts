import { setTimeout as sleep } from 'node:timers/promises';
import { commandLine } from '../config/command-line.js';
import type { Log } from '../net/log.js';
import { UNOBSERVED, type Observer, type OrderChanged } from '../observe/observer.js';
import { LRUCache } from 'lru-cache';
import type { Ledger, Order, Payment as Row } from '../ledger/store.js';
import type { Answer, OrderPause } from './outcome.js';
import { OrderLease } from './order-lease.js';

/** One attempt at a paid order. `request`: canonical JSON of the call's body. `deadline`: in ms since 1970. */
export type Attempt = {
  id: string;
  payer: string;
  operation: string;
  request: string;
  deadline: number;
  attempt: number;
  /** Replaces this attempt with another one, once per order. @returns undefined if the order was extended before */
  extend: () => Promise<{ deadline: number; attempt: number } | undefined>;
};

/**
 * The result of the work on an order: an answer, or a failure of this attempt. `error` is a sentence. `final`: another attempt would fail
 * the same way. `retryAfterSeconds`: how long the backend asked to wait.
 */
export type OrderResult =
  | { kind: 'answer'; answer: Answer }
  | { kind: 'failed'; error: string; final?: boolean; retryAfterSeconds?: number };

export type OrderWork = {
  /** The number of parts that the order asks for; 0 if its work has none. */
  wanted(order: Pick<Attempt, 'operation' | 'request'>): number;
  /** Works until there is an answer or the deadline has passed. Can be called again after a crash. Never rejects. */
  work(attempt: Attempt, signal: AbortSignal): Promise<OrderResult>;
};

const POLL_MS = 1_000;
const STOP_MS = 5_000;
const MAX_RUNNING = 256;
/** How long the answer of an order is kept once it is delivered. */
export const ANSWER_LIFE_MS = 7 * 24 * 60 * 60_000;
const MAX_REMEMBERED = 1_000;
/** Lets the process end during a long wait. */
const UNREF = { ref: false };
/** The pause after the first attempt. Each further pause is nine times as long: 5 s, 45 s, 7 minutes, an hour. */
const PAUSE_GROWTH = 9;
const LONGEST_PAUSE_MS = 3_600_000;
const FAILED = 'The order could not be completed.';
const NO_USE = 'Another attempt would fail in the same way.';
const OWED_FOR_REFUND =
  'The order is paid and due for a refund: only the operator of this server can start another attempt or refund it. Send the same payment again to learn the outcome';

type Options = {
  ledger: Ledger;
  work: OrderWork;
  log: Log;
  observer?: Observer;
  attemptMs: number;
  /** How many times an order is attempted before only the operator can start another attempt. */
  maxAttempts?: number;
  /** The pause after the first failed attempt. */
  firstPauseMs?: number;
  leaseMs?: number;
  now?: () => number;
};

/**
 * Works on orders that were paid up front, until they are delivered, even after crashes. The server that holds an order's lease works on it, whether
 * or not a caller is connected. The worker polls the ledger for orders; `take` only saves the delay of a poll.
 */
export class OrderWorker {
  readonly #options: Required<Options>;
  readonly #running = new Map<string, Promise<void>>();
  /** For each order, the id of the last request for it at this server. */
  readonly #requests = new LRUCache<string, string>({ max: MAX_REMEMBERED });
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #searching = false;
  /** Where the next poll continues. Failed orders stay owed and must not hide the orders behind them. */
  #after: { createdAt: number; id: string } | undefined;

  constructor({
    observer = UNOBSERVED,
    now = Date.now,
    maxAttempts = 5,
    firstPauseMs = 5_000,
    leaseMs = 30_000,
    ...options
  }: Options) {
    this.#options = { ...options, observer, now, maxAttempts, firstPauseMs, leaseMs };
  }

  /** Starts polling for owed orders. */
  start(): void {
    void this.#findWork();
    this.#timer = setInterval(() => void this.#findWork(), POLL_MS);
    this.#timer.unref();
  }

  /** Stops the work. Unfinished orders continue when the server starts again, or on another server once the lease has ended. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort(new Error('the server is shutting down'));
    // Does not wait long for work that ignores its signal; the lease will expire.
    await Promise.race([Promise.allSettled(this.#running.values()), sleep(STOP_MS, undefined, UNREF)]);
  }

  /**
   * Starts an owed order immediately, with a new attempt if the last one failed and the next one is due. `requestId`: the id of the request
   * that asks for it.
   * @returns why nobody is working on it
   */
  async take({ id }: Row, requestId?: string): Promise<OrderPause | undefined> {
    if (requestId !== undefined) this.#requests.set(id, requestId);
    if (this.#running.has(id)) return undefined;
    const pause = await this.whyIdle(id);
    if (pause && (pause.seconds === undefined || pause.seconds > 0)) return pause;
    // When several calls or servers ask concurrently, the ledger lets one of them start the attempt.
    if (pause) await this.#options.ledger.reopenOrder(id, this.#newDeadline());
    this.#begin(id);
    return undefined;
  }

  /** Starts another attempt for the operator, whether or not it is due. @returns false if none was started, because one is in progress */
  async retry({ id }: Row): Promise<boolean> {
    const order = await this.#options.ledger.retryOrder(id, this.#newDeadline());
    this.#begin(id);
    return order !== undefined;
  }

  /**
   * Waits at most `ms` until the work on the order has ended.
   * @returns why nobody is working on it, or undefined if the order was delivered or is still in progress
   */
  async wait(id: string, ms: number, gone: AbortSignal): Promise<OrderPause | undefined> {
    const { ledger, now } = this.#options;
    const until = now() + ms;
    const signal = AbortSignal.any([gone, this.#stop.signal]);
    while (!signal.aborted && now() < until) {
      const pauseMs = Math.min(until - now(), POLL_MS);
      const pause = sleep(pauseMs, undefined, { ...UNREF, signal }).catch(() => {});
      await Promise.race([this.#running.get(id) ?? pause, pause]);
      if (this.#running.has(id)) continue;
      const row = await ledger.find(id);
      if (row?.state !== 'owed') return undefined;
      const idle = await this.whyIdle(id);
      if (idle) return idle;
    }
    return undefined;
  }

  /** Why nobody is currently working on an owed order; undefined while an attempt is in progress. `seconds` is 0 once the next attempt is due. */
  async whyIdle(id: string): Promise<OrderPause | undefined> {
    if (this.#running.has(id)) return undefined;
    const order = await this.#options.ledger.order(id);
    if (!order || order.finishedAt === null) return undefined;
    const { nextAttemptAt, failure } = order;
    const why = failure ?? FAILED;
    if (nextAttemptAt === null) return { error: `${why} ${OWED_FOR_REFUND}` };
    const seconds = Math.max(0, Math.ceil((nextAttemptAt - this.#options.now()) / 1_000));
    const when = seconds > 0 ? `in ${seconds} s, when the next attempt is due` : 'to start the next attempt';
    return { error: `${why} The order stays owed: send the same payment again ${when}`, seconds };
  }

  async #findWork(): Promise<void> {
    if (this.#searching || this.#stop.signal.aborted) return;
    this.#searching = true;
    try {
      const after = this.#after ? { after: this.#after } : {};
      const owed = await this.#options.ledger.list({
        state: 'owed',
        idle: true,
        limit: MAX_RUNNING,
        ...after,
      });
      for (const { id } of owed.filter(row => row.flow === 'upfront')) {
        const order = this.#running.has(id) ? undefined : await this.#options.ledger.order(id);
        if (order === undefined || this.#mayBegin(order)) this.#begin(id);
      }
      this.#after = owed.length < MAX_RUNNING ? undefined : owed.at(-1);
    } catch (error) {
      this.#options.log.warn({ error }, 'could not read owed orders from the ledger');
    } finally {
      this.#searching = false;
    }
  }

  #mayBegin({ finishedAt, nextAttemptAt }: Order): boolean {
    return finishedAt === null && (nextAttemptAt ?? 0) <= this.#options.now();
  }

  #begin(id: string): void {
    if (this.#running.has(id) || this.#running.size >= MAX_RUNNING || this.#stop.signal.aborted) return;
    const run = this.#run(id)
      .catch((error: unknown) =>
        this.#options.log.error({ payment: id, error }, 'work on an order failed; it will be retried'),
      )
      .finally(() => this.#running.delete(id));
    this.#running.set(id, run);
  }

  async #run(id: string): Promise<void> {
    const taken = await OrderLease.take(this.#options.ledger, id, this.#options.leaseMs);
    if (!taken) return;
    const { lease, row } = taken;
    try {
      const order = await this.#open(row);
      if (order) await this.#attempt(row, order, lease);
      // If this fails, the interrupted work still counts as started, which is harmless.
      if (order && this.#stop.signal.aborted) await this.#options.ledger.handOverOrder(id, row.claim);
    } finally {
      await lease.end();
    }
  }

  /** The attempt to work on; undefined if there is none now. */
  async #open({ id, state, request, operation }: Row): Promise<Order | undefined> {
    if (state !== 'owed' || request === null) return undefined;
    const { ledger, work, attemptMs } = this.#options;
    const deadline = this.#newDeadline();
    const wanted = work.wanted({ operation, request });
    const order = await ledger.openOrder({ payment: id, request, wanted, deadline });
    return order.finishedAt === null ? ledger.beginOrder(id, { deadline, attemptMs }) : undefined;
  }

  async #attempt(row: Row, order: Order, lease: OrderLease): Promise<void> {
    const { id, payer, operation } = row;
    const { request, deadline, attempts: attempt } = order;
    let current = attempt;
    let broken: { error: unknown } | undefined;
    const extend: Attempt['extend'] = async () => {
      try {
        const next = (await lease.renew()) ? await this.#extend(id, current) : undefined;
        if (next) current = next.attempts;
        return next && { deadline: next.deadline, attempt: next.attempts };
      } catch (error) {
        broken = { error };
        throw error;
      }
    };
    const signal = AbortSignal.any([this.#stop.signal, lease.lost]);
    const result = await this.#options.work.work(
      { id, payer, operation, request, deadline, attempt, extend },
      signal,
    );
    // If the ledger failed, that is not a failure of the order.
    if (broken) throw broken.error;
    if (signal.aborted || !(await lease.renew())) return;
    if (result.kind === 'failed') await this.#fail(row, { ...order, attempts: current }, result);
    else await this.#deliver(row, current, result.answer);
  }

  #newDeadline(): number {
    return this.#options.now() + this.#options.attemptMs;
  }

  /** Starts another attempt, or finds the one started by the server that held the order before. */
  async #extend(id: string, attempt: number): Promise<Order | undefined> {
    const { ledger } = this.#options;
    const next = await ledger.extendOrder(id, attempt, this.#newDeadline());
    if (next) return next;
    const order = await ledger.order(id);
    return order && order.finishedAt === null && order.attempts > attempt ? order : undefined;
  }

  async #fail(
    row: Row,
    { attempts: attempt, tries }: Order,
    { error, final, retryAfterSeconds = 0 }: OrderResult & { kind: 'failed' },
  ): Promise<void> {
    const usedUp = tries >= this.#options.maxAttempts;
    const over = final ? ` ${NO_USE}` : usedUp ? ` All ${tries} attempts are used up.` : '';
    const failure = `${error}${over}`;
    const pauseMs = Math.min(this.#options.firstPauseMs * PAUSE_GROWTH ** (tries - 1), LONGEST_PAUSE_MS);
    const againMs = over ? null : Math.max(pauseMs, retryAfterSeconds * 1_000);
    if (await this.#options.ledger.failOrder(row.id, row.claim, { attempt, failure, againMs }))
      this.#tell(row, over ? 'given up' : 'failed', over ? `${failure} ${whatNow(row.id)}` : failure);
  }

  async #deliver(row: Row, attempt: number, answer: Answer): Promise<void> {
    const { ledger, now } = this.#options;
    const how = { settlement: row.settlement ?? '', answerExpiresAt: now() + ANSWER_LIFE_MS };
    const saved = await ledger.saveAnswer(row.id, row.claim, answer);
    if (!saved || !(await ledger.deliver(row.id, row.claim, how))) return;
    this.#tell(row, 'delivered');
    await ledger.finishOrder(row.id, attempt);
  }

  #tell({ id: payment, operation, payer, amount }: Row, change: OrderChanged['change'], why?: string): void {
    const requestId = this.#requests.get(payment);
    const order = { operation, payment, payer, amount, requestId, ...(why === undefined ? {} : { why }) };
    this.#options.observer.tell({ kind: 'order', change, ...order });
  }
}

/** What the operator can do about an order that has no attempts left. */
function whatNow(id: string): string {
  return `Retry or refund it, on the operator page or with: ${commandLine('ledger')} retry ${id}`;
}
