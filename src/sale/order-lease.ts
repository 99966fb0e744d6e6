import { setTimeout as sleep } from 'node:timers/promises';
import type { Ledger, Payment as Row } from '../ledger/store.js';

/** How many times a lease is renewed before it would end. */
const RENEWALS = 3;
/** How long ending a lease waits for a renewal under way. */
const LAST_RENEWAL_MS = 2_000;

/**
 * This server's lease on an order, renewed until it is ended. `lost` aborts once another server has taken the order over, or could have
 * because the lease was not renewed in time.
 */
export class OrderLease {
  readonly #ledger: Pick<Ledger, 'extendLease'>;
  readonly #row: Row;
  readonly #ms: number;
  readonly #lost = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #expiry: NodeJS.Timeout | undefined;
  #until = 0;
  #renewing: Promise<void> | undefined;

  private constructor(
    ledger: Pick<Ledger, 'extendLease'>,
    row: Row,
    { ms, asked }: { ms: number; asked: number },
  ) {
    this.#ledger = ledger;
    this.#row = row;
    this.#ms = ms;
    this.#lasts(asked);
    this.#timer = setInterval(() => this.#renewSoon(), ms / RENEWALS).unref();
  }

  /** @returns undefined if another server holds the order, or the order no longer exists */
  static async take(
    ledger: Pick<Ledger, 'adopt' | 'extendLease'>,
    id: string,
    ms: number,
  ): Promise<{ lease: OrderLease; row: Row } | undefined> {
    const asked = performance.now();
    const row = await ledger.adopt(id, ms);
    return row && { lease: new OrderLease(ledger, row, { ms, asked }), row };
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** @returns false if the order is lost; the work on it is aborted then, and its result must not be written */
  async renew(): Promise<boolean> {
    const asked = performance.now();
    const mine = await this.#ledger.extendLease(this.#row.id, this.#row.claim, this.#ms);
    if (!mine) this.#lose('another server has taken the order over');
    // A lease that has ended is not renewed, because another server may have worked on the order meanwhile.
    else if (performance.now() >= this.#until) this.#expire();
    if (this.#lost.signal.aborted) return false;
    this.#lasts(asked);
    return true;
  }

  /** Gives the order back. Callers of its row are not affected. */
  async end(): Promise<void> {
    clearInterval(this.#timer);
    // A renewal that commits after the end would keep other servers from the order for a whole lease.
    if (this.#renewing)
      await Promise.race([this.#renewing, sleep(LAST_RENEWAL_MS, undefined, { ref: false })]);
    clearTimeout(this.#expiry);
    await this.#ledger.extendLease(this.#row.id, this.#row.claim, 0);
  }

  #renewSoon(): void {
    if (this.#renewing || this.#lost.signal.aborted) return;
    this.#renewing = this.renew()
      // If this fails because the ledger can't be reached, a later renewal may succeed; otherwise the lease expires.
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => (this.#renewing = undefined));
  }

  /** The ledger starts counting after `asked`, so the lease never ends in the ledger before it ends here. */
  #lasts(asked: number): void {
    this.#until = asked + this.#ms;
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => this.#expire(), this.#until - performance.now()).unref();
  }

  #expire(): void {
    this.#lose('the ledger could not be reached for longer than the lease lasts');
  }

  #lose(why: string): void {
    this.#lost.abort(new Error(why));
  }
}
