import { Resting } from '../../net/circuit.js';
import { DeadlineExceeded, withAbortAfter } from '../../net/deadline.js';
import { backoffSeconds, UpstreamFailure } from '../../net/failure.js';
import {
  HttpClient,
  NoAnswer,
  type HttpAnswer,
  type HttpRequest,
  type NoAnswerKind,
} from '../../net/http-client.js';
import { FairQueue } from '../fair-queue.js';
import { HostCircuit, type HostCircuitOptions } from './host-circuit.js';

/** One request. `ms` includes the time in the queue. */
export type HostRequest = Omit<HttpRequest, 'ms'> & { ms: number; signal: AbortSignal; caller: string };

const CONNECTIONS = 32;
const MAX_WAITING = 128;
const CONNECT_MS = 5_000;
/** Larger than any answer may be; every request has its own limit. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** After an answer this recent, a probe need not connect. */
const RECENT_MS = 60_000;
/** A probe for one operation also counts for the host's other operations. */
const PROBE_MS = 10_000;
const BUSY = 'Too many calls are waiting for the service behind this operation; try again.';
/** Statuses of an outage. A 500 is not one, because it may be due to one call, which must not stop the calls of others. */
const OUTAGES = new Set([429, 502, 503, 504]);
const OF_ONE_REQUEST = new Set<NoAnswerKind>(['private', 'too large']);

/** An answer that shows that the whole service has a problem, not just this request. It counts in the circuit. */
class Outage extends Error {
  readonly answer: HttpAnswer;
  constructor(answer: HttpAnswer) {
    super(`status ${answer.status}`);
    this.answer = answer;
  }
}

/** The connections, the queue and the circuit that all operations of one upstream host share. */
export class UpstreamHost {
  readonly #client: HttpClient;
  readonly #circuit: HostCircuit;
  readonly #queue = new FairQueue({ slots: CONNECTIONS, maxWaiting: MAX_WAITING, fullMessage: BUSY });
  #answeredAt = -Infinity;
  #probe: { at: number; result: Promise<void> } | undefined;

  constructor(
    origin: string,
    { publicOnly, breaker }: { publicOnly: boolean; breaker?: HostCircuitOptions },
  ) {
    this.#circuit = new HostCircuit(breaker);
    this.#client = new HttpClient(origin, {
      connections: CONNECTIONS,
      maxAnswerBytes: MAX_ANSWER_BYTES,
      connectMs: CONNECT_MS,
      publicOnly,
    });
  }

  /**
   * Sends a request when it is its turn. Callers take turns.
   * @returns the answer, whatever its status
   * @throws NoAnswer; UpstreamFailure (`unavailable`) while the host rests or too many calls are waiting; the signal's reason
   */
  async request({ caller, ...request }: HostRequest): Promise<HttpAnswer> {
    const until = performance.now() + request.ms;
    let begun = false;
    try {
      return await withAbortAfter(request.ms, request.signal, waiting =>
        this.#queue.run(
          () => {
            begun = true;
            return this.#guarded({ ...request, caller, ms: until - performance.now() });
          },
          waiting,
          caller,
        ),
      );
    } catch (error) {
      if (error instanceof DeadlineExceeded && !begun && !request.signal.aborted)
        throw new UpstreamFailure('unavailable', BUSY, { retryAfterSeconds: 5, fault: 'none' });
      throw error;
    }
  }

  /** Seconds until the host may be called again after failures; 0 if it may be called now. */
  get restSeconds(): number {
    return this.#circuit.restSeconds;
  }

  /** Like `restSeconds`, but for the calls of this caller. */
  restSecondsOf(caller: string): number {
    return this.#circuit.restSecondsOf(caller);
  }

  /**
   * Finds out whether the host can be reached: from a recent answer, or by a connection without a request, which costs nothing. A probe
   * that reaches the host also ends a pause whose time is over.
   */
  async check(): Promise<void> {
    if (this.restSeconds > 0) throw new Error('paused after failures');
    const now = performance.now();
    if (!this.#circuit.open && now - this.#answeredAt < RECENT_MS) return;
    if (!this.#probe || now - this.#probe.at >= PROBE_MS)
      this.#probe = { at: now, result: this.#client.reach() };
    await this.#probe.result;
    this.#circuit.reached();
  }

  close(): Promise<void> {
    this.#queue.close(new Error('the server is shutting down'));
    return this.#client.close();
  }

  async #guarded({ caller, ...request }: HostRequest): Promise<HttpAnswer> {
    try {
      const result = await this.#circuit.run(caller, request.signal, pause => this.#exchange(request, pause));
      if (result instanceof NoAnswer) throw result;
      return result;
    } catch (error) {
      if (error instanceof Outage) return error.answer;
      if (error instanceof Resting) throw resting(error.seconds);
      throw error;
    }
  }

  /** The next `check` opens a connection. */
  #forgetReached(): void {
    this.#answeredAt = -Infinity;
    this.#probe = undefined;
  }

  /** Failures that do not concern the host as a whole are returned, not thrown, so that they do not count in the circuit. */
  async #exchange(
    request: Omit<HostRequest, 'caller'>,
    pause: (seconds: number) => void,
  ): Promise<HttpAnswer | NoAnswer> {
    const answer = await this.#client.request(request).catch((error: unknown) => {
      if (!(error instanceof NoAnswer)) throw error;
      if (OF_ONE_REQUEST.has(error.kind)) return error;
      if (error.kind === 'unreachable') this.#forgetReached();
      throw error;
    });
    if (answer instanceof NoAnswer) return answer;
    this.#answeredAt = performance.now();
    if (!OUTAGES.has(answer.status)) return answer;
    const seconds = backoffOf(answer);
    // A rate limit (429) affects all calls of the shop. With another status, the wait may concern only this caller's request.
    if (answer.status === 429) this.#circuit.trip(seconds);
    else if (seconds !== undefined) pause(seconds);
    throw new Outage(answer);
  }
}

/** The failure that refuses an order before it is paid. */
export function unreachable(): UpstreamFailure {
  const message = 'The service behind this operation cannot be reached; try again later.';
  return new UpstreamFailure('unavailable', message, { retryAfterSeconds: PROBE_MS / 1_000, fault: 'none' });
}

export function resting(retryAfterSeconds: number): UpstreamFailure {
  const message = 'The service behind this operation keeps failing; try again later.';
  return new UpstreamFailure('unavailable', message, { retryAfterSeconds, fault: 'none' });
}

/** How many seconds an answer asks the caller to wait, from 1 to 120. */
export function backoffOf(answer: HttpAnswer): number | undefined {
  return backoffSeconds({
    'retry-after': answer.header('retry-after'),
    'x-ratelimit-reset': answer.header('x-ratelimit-reset'),
  });
}
