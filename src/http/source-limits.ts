import type { IncomingMessage, Server } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { NOT_CHARGED } from '../contract/not-charged.js';
import { LeakyBuckets } from '../net/leaky-buckets.js';
import type { Log } from '../net/log.js';
import { UNOBSERVED, type Observer } from '../observe/observer.js';
import { sourceOf } from './request-source.js';

const MAX_SOURCES = 20_000;
/** The units that a source may use in one burst. An unpaid call uses 1. */
const BURST = 1_000;
const PER_SECOND = 100;
/** A source that keeps being refused waits ten seconds at most. */
const HIGHEST = 2 * BURST - 1;
/**
 * A call whose payment or body is refused uses this many units, because it costs the server a signature
 * check, ledger reads, and perhaps a request to a facilitator.
 */
const FAILED_CALL = 10;
const MAX_CONNECTIONS = 1_000;
/** The reason given to a source over its limit. */
export const OVER_LIMIT = 'Too many calls from your address were not paid or were refused';
/** The error for unpaid calls of such a source. */
export const TOO_MANY_CALLS = `${OVER_LIMIT}. ${NOT_CHARGED}; try again later.`;
/** The error for a call whose buyer may have sent the transfer: the money may have moved. */
export const TOO_MANY_TRANSFERS = `${OVER_LIMIT}. Do not pay again: send the same credential again later.`;
/** Loopback sources, as `sourceOf` writes them: 127.0.0.0/8, and the /64 of ::1. */
const LOOPBACK = /^(127\.|0:0:0:0$)/;
const BEHIND_A_PROXY =
  'an address is over its limits, and its calls carry X-Forwarded-For: if it is your proxy, set TRUST_PROXY to the number of proxies ' +
  'in front of this server. Until then all buyers share the limits of its address';

type LimitsParts = {
  trustedProxies: number;
  log?: Pick<Log, 'warn'> | undefined;
  observer?: Pick<Observer, 'tell'> | undefined;
};

/**
 * Limits what one network address may use without paying: unpaid calls, refused calls, and connections. Loopback has no
 * limit, unless a proxy that runs there is trusted to name the callers.
 */
export class SourceLimits {
  readonly #proxies: number;
  readonly #used: LeakyBuckets;
  readonly #connections = new Map<string, number>();
  readonly #log: Pick<Log, 'warn'> | undefined;
  readonly #observer: Pick<Observer, 'tell'>;
  #warned = false;

  /**
   * @param trustedProxies the number of proxies in front of the server; each appends its caller's address to
   * `X-Forwarded-For`
   */
  constructor({ trustedProxies, log, observer = UNOBSERVED }: LimitsParts, now: () => number = Date.now) {
    this.#proxies = trustedProxies;
    this.#log = log;
    this.#observer = observer;
    this.#used = new LeakyBuckets({
      capacity: BURST,
      perSecond: PER_SECOND,
      highest: HIGHEST,
      maxKeys: MAX_SOURCES,
      now,
    });
  }

  /**
   * The source of a request (see `sourceOf`): behind proxies, the address of the outermost trusted proxy's
   * caller.
   */
  of(request: IncomingMessage): string {
    const { remoteAddress } = request.socket;
    if (this.#proxies === 0) {
      const source = sourceOf(remoteAddress);
      this.#warnOfProxy(source, request);
      return source;
    }
    const named = String(request.headers['x-forwarded-for'] ?? '').split(',');
    const address = bare((named[named.length - this.#proxies] ?? '').trim());
    return sourceOf(isIP(address) === 0 ? remoteAddress : address);
  }

  /** Whole seconds until a source may call again without paying; 0 if it may now. */
  wait(source: string): number {
    return this.isExempt(source) ? 0 : Math.ceil(this.#used.wait(source));
  }

  /** Reports a call as turned away if its source is over its limit. @returns the same as `wait` */
  turnAway(source: string): number {
    const wait = this.wait(source);
    if (wait === 0) return 0;
    this.#observer.tell({ kind: 'throttled' });
    // Logged with `error`, because the log merges repeated errors into one line with a count.
    this.#log?.warn({ source, error: OVER_LIMIT }, 'turned away a call: its address is over its limit');
    return wait;
  }

  /**
   * Counts a call without a payment, if it may be answered.
   * @returns 0, or the number of seconds until it may be answered
   */
  takeUnpaid(source: string): number {
    const wait = this.turnAway(source);
    if (wait === 0 && !this.isExempt(source)) this.#used.add(source);
    return wait;
  }

  /** Counts a free call, which causes as much work as a refused one. @returns the same as `takeUnpaid` */
  takeGift(source: string): number {
    const wait = this.turnAway(source);
    if (wait === 0) this.failed(source);
    return wait;
  }

  /** Reverses `takeUnpaid`, because the call is counted in a different way. */
  giveBack(source: string): void {
    if (!this.isExempt(source)) this.#used.add(source, -1);
  }

  /** Counts a call that was refused. */
  failed(source: string): void {
    if (!this.isExempt(source)) this.#used.add(source, FAILED_CALL);
  }

  /** Closes connections of a source that has too many. Behind proxies, the proxies have to do that. */
  watch(server: Server): void {
    if (this.#proxies > 0) return;
    server.on('connection', (socket: Socket) => {
      const source = sourceOf(socket.remoteAddress);
      if (this.isExempt(source)) return;
      const open = this.#connections.get(source) ?? 0;
      if (open >= MAX_CONNECTIONS) return void socket.destroy();
      this.#connections.set(source, open + 1);
      socket.once('close', () => this.#closed(source));
    });
  }

  #closed(source: string): void {
    const left = (this.#connections.get(source) ?? 1) - 1;
    if (left > 0) this.#connections.set(source, left);
    else this.#connections.delete(source);
  }

  /** Warns once if an address that looks like a proxy uses up the limits for all its callers. */
  #warnOfProxy(source: string, request: IncomingMessage): void {
    if (this.#warned || request.headers['x-forwarded-for'] === undefined || this.isExempt(source)) return;
    const isFull = (this.#connections.get(source) ?? 0) >= MAX_CONNECTIONS;
    if (!isFull && this.wait(source) === 0) return;
    this.#warned = true;
    this.#log?.warn({ source }, BEHIND_A_PROXY);
  }

  /** Whether a source has no limits. */
  isExempt(source: string): boolean {
    return this.#proxies === 0 && LOOPBACK.test(source);
  }
}

/** An address without the port that some proxies append. */
function bare(address: string): string {
  return /^\[([^\]]+)\]/.exec(address)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(address)?.[1] ?? address;
}
