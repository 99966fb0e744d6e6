import { LRUCache } from 'lru-cache';
import { Circuit, Resting, type CircuitOptions } from '../../net/circuit.js';

/** `quietMs`: the host is paused only if no call has succeeded for this long. Default 10 s. */
export type HostCircuitOptions = CircuitOptions & { quietMs?: number | undefined };

const FAILURES = 5;
const PAYERS = 3;
const QUIET_MS = 10_000;
const REST_MS = 5_000;
const MAX_REST_MS = 60_000;
/** How many calls may probe the host concurrently, so that a hanging call does not block the others. */
const MAX_PROBES = 3;
/** How many payers' failures are remembered, and for how long after a payer's last failure. */
const FAILED = { max: 2_000, ttl: 120_000 };

/**
 * The circuit of a host that many payers share. One payer's calls may fail because of their input, so its failures pause only that payer,
 * in its own circuit. The host is paused for all payers when calls of several payers failed and none succeeded for some time, or when the
 * host itself asks for a wait. After the pause, the host is used again once a call by a payer without failures succeeds, or once `reached`
 * is called.
 */
export class HostCircuit {
  readonly #options: HostCircuitOptions;
  /** The circuits of payers that failed since they were last served. */
  readonly #failed = new LRUCache<string, Circuit>(FAILED);
  /** The failures since the last success: their number, the time of the first, and as many of their payers as it takes to pause the host. */
  #streak = { failures: 0, payers: new Set<string>(), since: 0 };
  /** Undefined while requests are sent to the host. `asked`: whether the host itself asked for this pause. */
  #rest: { until: number; asked: boolean } | undefined;
  #rests = 0;
  #probes = 0;

  constructor(options: HostCircuitOptions = {}) {
    this.#options = options;
  }

  /**
   * Runs `work` unless the payer or the host is resting. Any error that it throws counts as a failure, unless `signal` has aborted. `pause`
   * makes this failure pause the payer for as long as the host asks.
   * @throws Resting, what `work` throws, or the signal's reason
   */
  async run<T>(
    payer: string,
    signal: AbortSignal,
    work: (pause: (seconds: number) => void) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const own = this.#failed.get(payer) ?? new Circuit(this.#options);
    const probing = this.#enter(payer);
    try {
      const result = await own.run(signal, () => work(seconds => own.trip(seconds)));
      this.#succeeded(payer);
      return result;
    } catch (error) {
      if (!(error instanceof Resting) && !signal.aborted) this.#countFailure(payer, own, probing);
      throw error;
    } finally {
      if (probing) this.#probes -= 1;
    }
  }

  /** Called when the host asks all callers to wait. Pauses it for the requested time; if none is given, for as long as a first pause. */
  trip(seconds?: number): void {
    const { restMs = REST_MS } = this.#options;
    const ms = seconds === undefined ? Math.max(restMs, 1_000) : seconds * 1_000;
    this.#rest = { until: Date.now() + ms, asked: true };
  }

  /** Called when a probe that is not a buyer's call has reached the host. Ends a pause whose time is over. */
  reached(): void {
    if (this.restSeconds === 0) this.#close();
  }

  /** Whether the host is paused, or is waiting to be probed. */
  get open(): boolean {
    return this.#rest !== undefined;
  }

  /** Whole seconds until the host may be called; 0 if it may be called now. */
  get restSeconds(): number {
    return this.#rest ? Math.max(0, Math.ceil((this.#rest.until - Date.now()) / 1_000)) : 0;
  }

  /** Like `restSeconds`, but for this payer. */
  restSecondsOf(payer: string): number {
    return Math.max(this.restSeconds, this.#failed.get(payer)?.restSeconds ?? 0);
  }

  /** @returns whether the call probes a host that has rested. @throws Resting */
  #enter(payer: string): boolean {
    if (!this.#rest) return false;
    const seconds = this.restSeconds;
    const suspect = !this.#rest.asked && this.#failed.has(payer);
    if (seconds > 0 || suspect || this.#probes >= MAX_PROBES) throw new Resting(Math.max(1, seconds));
    this.#probes += 1;
    return true;
  }

  #succeeded(payer: string): void {
    this.#failed.delete(payer);
    this.#streak = { failures: 0, payers: new Set(), since: 0 };
    // A success does not end a pause that the host asked for, because the answer may be to an earlier request.
    if (!this.#rest?.asked || this.restSeconds === 0) this.#close();
  }

  #countFailure(payer: string, own: Circuit, probing: boolean): void {
    const { failures = FAILURES, quietMs = QUIET_MS } = this.#options;
    this.#failed.set(payer, own);
    const streak = this.#streak;
    if (streak.failures === 0) streak.since = Date.now();
    streak.failures += 1;
    if (streak.payers.size < PAYERS) streak.payers.add(payer);
    const everybody = streak.failures >= failures && streak.payers.size >= PAYERS;
    if (probing || (!this.#rest && everybody && Date.now() - streak.since >= quietMs)) this.#restLonger();
  }

  /** Each pause is twice as long as the one before, until a call succeeds. */
  #restLonger(): void {
    const { restMs = REST_MS, maxRestMs = MAX_REST_MS } = this.#options;
    if (this.restSeconds > 0) return;
    const ms = Math.min(restMs * 2 ** Math.min(this.#rests, 16), maxRestMs);
    this.#rests += 1;
    this.#rest = { until: Date.now() + ms, asked: false };
  }

  #close(): void {
    this.#rest = undefined;
    this.#rests = 0;
  }
}
