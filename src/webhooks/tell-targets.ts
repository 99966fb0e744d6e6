import type { Attempted, Ledger, OutboxEvent } from '../ledger/store.js';
import { pause } from '../net/deadline.js';
import type { Log } from '../net/log.js';
import { messageOf, type Sender } from './event-message.js';
import { NotTold, type Target } from './target.js';

/** The maximum number of events sent to one target at a time. */
const BATCH = 8;
/** How often the ledger is polled even without a notification, because other servers also write events. */
const ASK_MS = 2_000;
/** How long to wait after an event was written, so that its transaction has been committed by then. */
const COMMIT_MS = 50;
/** The wait before the next attempt for an event: five seconds at first, then four times as long each time, at most three hours. */
const AGAIN_MS = { first: 5_000, factor: 4, most: 3 * 3_600_000 };
/** A target that accepted none of a batch is paused, so that an outage costs few attempts. */
const REST_MS = { first: 1_000, most: 60_000 };
const REFRESH_MS = 5_000;
const SWEEP_MS = 10 * 60_000;

type Outbox = Pick<
  Ledger,
  | 'takeEvents'
  | 'attempted'
  | 'setTargets'
  | 'refreshTargets'
  | 'sweepEvents'
  | 'onTold'
  | 'holdTarget'
  | 'dropTarget'
>;

/** The wait in ms before an event is tried again after this many attempts. */
export function againMsAfter(attempts: number, random = Math.random()): number {
  const ms = Math.min(AGAIN_MS.first * AGAIN_MS.factor ** (attempts - 1), AGAIN_MS.most);
  // A random factor keeps events that failed together from being retried together.
  return ms * (0.8 + 0.4 * random);
}

/**
 * Sends the events in the outbox to each target until the target has accepted them or 3 days have passed. A target may get an event more
 * than once. It gets the events of one payment in order.
 */
export class TargetTeller {
  readonly #ledger: Outbox;
  readonly #sender: Sender;
  readonly #log: Log;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #wakers = new Set<() => void>();
  readonly #timers: NodeJS.Timeout[] = [];

  constructor({ ledger, sender, log }: { ledger: Outbox; sender: Sender; log: Log }) {
    this.#ledger = ledger;
    this.#sender = sender;
    this.#log = log;
  }

  /** Registers the targets in the ledger, and starts sending. */
  async start(targets: readonly { target: Target; kinds: readonly string[] }[]): Promise<void> {
    await this.#ledger.setTargets(targets.map(({ target: { name }, kinds }) => ({ name, kinds })));
    await this.#ledger.refreshTargets();
    this.#ledger.onTold(() => setTimeout(() => this.#wake(), COMMIT_MS).unref());
    for (const { target } of targets) this.serve(target, this.#closing.signal);
    this.#every(REFRESH_MS, () => this.#ledger.refreshTargets());
    this.#every(SWEEP_MS, () => this.#sweep());
  }

  /** Sends events to a target until the signal aborts, then closes it. */
  serve(target: Target, signal: AbortSignal): void {
    const run = this.#run(target, signal).finally(() => {
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Resolves when nothing is being sent any more. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#closing.abort(new Error('the server is shutting down'));
    await Promise.all(this.#running);
  }

  #wake(): void {
    for (const wake of this.#wakers) wake();
  }

  #every(ms: number, work: () => Promise<unknown>): void {
    const timer = setInterval(() => {
      // Failures of the ledger are reported elsewhere.
      work().catch(() => {});
    }, ms);
    this.#timers.push(timer.unref());
  }

  async #sweep(): Promise<void> {
    const { givenUp, dropped } = await this.#ledger.sweepEvents();
    if (givenUp > 0)
      this.#log.warn(
        { events: givenUp },
        'events could not be delivered to targets within 3 days and were given up',
      );
    if (dropped > 0)
      this.#log.warn({ events: dropped }, 'too many events are waiting for targets: the oldest were dropped');
  }

  async #run(target: Target, signal: AbortSignal): Promise<void> {
    let restMs = 0;
    while (!signal.aborted) {
      try {
        const { sent, taken } = await this.#tell(target, signal);
        restMs = taken > 0 && sent === 0 ? Math.min(Math.max(restMs * 2, REST_MS.first), REST_MS.most) : 0;
        if (restMs > 0) await pause(restMs, signal);
        else if (taken < BATCH) await this.#word(signal);
      } catch (error) {
        if (signal.aborted) break;
        this.#log.warn({ error, target: target.name }, 'the outbox could not be read');
        await pause(ASK_MS, signal).catch(() => {});
      }
    }
    await target.close();
  }

  /** Waits until an event is written, or until the next regular poll. */
  async #word(signal: AbortSignal): Promise<void> {
    const word = new AbortController();
    const wake = (): void => word.abort();
    this.#wakers.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    await pause(ASK_MS, word.signal).catch(() => {});
    signal.removeEventListener('abort', wake);
    this.#wakers.delete(wake);
  }

  async #tell(target: Target, signal: AbortSignal): Promise<{ taken: number; sent: number }> {
    const events = await this.#ledger.takeEvents(target.name, BATCH);
    if (events.length === 0) return { taken: 0, sent: 0 };
    const attempts = await Promise.all(events.map(event => this.#send(target, event, signal)));
    await this.#ledger.attempted(attempts);
    return { taken: events.length, sent: attempts.filter(({ againMs }) => againMs === undefined).length };
  }

  async #send(target: Target, event: OutboxEvent, signal: AbortSignal): Promise<Attempted> {
    const { seq, attempts: attempt } = event;
    try {
      return { seq, attempt, answer: await target.send(messageOf(event, this.#sender), signal) };
    } catch (error) {
      if (!(error instanceof NotTold) && !signal.aborted)
        this.#log.error({ error, target: target.name }, 'an event could not be delivered to a target');
      const answer = error instanceof NotTold ? error.message : 'unexpected error, see the log';
      return { seq, attempt, answer, againMs: signal.aborted ? 0 : againMsAfter(attempt) };
    }
  }
}
