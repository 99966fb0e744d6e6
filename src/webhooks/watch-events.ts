import type { Ledger, LedgerEvent } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { Event, Listener } from '../observe/observer.js';

const LOOK_MS = 20_000;
/** A shorter outage of a facilitator is not reported. */
const DOWN_MS = 60_000;
const UNRESOLVED_MS = 10 * 60_000;
const MAX_LISTED = 1_000;
const NEARLY_FULL = 0.8;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const LAMPORTS_PER_SOL = 1e9;

export type WatchParts = {
  ledger: Pick<Ledger, 'tell' | 'openOrders' | 'list'>;
  facilitators: () => readonly { name: string; status: string; detail: string }[];
  /** The embedded facilitator's fee payer, if its balance is known. In lamports; below `low`, the operator should send SOL. */
  feePayer: () => { address: string; lamports: bigint; low: bigint } | undefined;
  /** The balance of the wallet that refunds owed orders, if the operator should top it up. */
  refundWallet: () => { address: string; left: string } | undefined;
  /** The size of the answer store in bytes. */
  answers: () => { bytes: number; budget: number };
  log: Log;
  now?: () => number;
};

/**
 * Creates the events that are not part of a sale's transaction: overdue payments and orders, and events other than sales. Every server
 * checks; the ledger writes each event once, and a lasting state is reported once an hour or a day.
 */
export class EventWatch implements Listener {
  readonly #parts: WatchParts;
  readonly #now: () => number;
  readonly #downSince = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  hear(event: Event): void {
    const told = this.#toldBy(event);
    if (told) void this.#tell([told]);
  }

  async look(): Promise<void> {
    try {
      await this.#tell([
        ...(await this.#late()),
        ...(await this.#unresolved()),
        ...this.#low(),
        ...this.#down(),
      ]);
    } catch (error) {
      this.#parts.log.warn({ error }, 'the ledger could not be searched for events');
    }
  }

  async #tell(events: readonly LedgerEvent[]): Promise<void> {
    for (const event of events)
      await this.#parts.ledger.tell(event).catch((error: unknown) => {
        this.#parts.log.warn({ error, event: event.kind }, 'an event could not be written to the outbox');
      });
  }

  #toldBy(event: Event): LedgerEvent | undefined {
    if (event.kind === 'false settlement') {
      const { operation, payment, payer, amount, settlement } = event;
      const facts = { payment, operation, payer, amount: String(amount), settlement };
      return { kind: 'facilitator.lied', subject: payment, once: settlement, facts };
    }
    if (event.kind !== 'listing' || (event.status !== 'rejected' && event.status !== 'refused'))
      return undefined;
    const { facilitator, operation, transport, status, why = null } = event;
    const once = `${facilitator} ${operation} ${transport} ${this.#each(DAY_MS)}`;
    return { kind: 'listing.rejected', once, facts: { facilitator, operation, transport, status, why } };
  }

  async #late(): Promise<LedgerEvent[]> {
    const late = (await this.#parts.ledger.openOrders()).filter(({ deadline }) => deadline < this.#now());
    return late.map(({ payment, wanted, done, attempts, deadline }) => ({
      kind: 'order.late',
      subject: payment,
      once: `attempt ${attempts}`,
      facts: { payment, wanted, done, deadline },
    }));
  }

  async #unresolved(): Promise<LedgerEvent[]> {
    const open = await this.#parts.ledger.list({ state: 'settling', limit: MAX_LISTED });
    const old = open.filter(({ settlingAt }) => (settlingAt ?? Infinity) < this.#now() - UNRESOLVED_MS);
    return old.map(({ id: payment, operation, payer, amount, settlingAt }) => ({
      kind: 'payment.unresolved',
      subject: payment,
      once: '',
      facts: { payment, operation, payer, amount: String(amount), since: settlingAt },
    }));
  }

  #low(): LedgerEvent[] {
    const told: LedgerEvent[] = [];
    const feePayer = this.#parts.feePayer();
    if (feePayer && feePayer.lamports < feePayer.low) {
      const { address, lamports } = feePayer;
      const left = `${Number(lamports) / LAMPORTS_PER_SOL} SOL`;
      told.push({
        kind: 'fee_payer.low',
        once: `${address} ${this.#each(DAY_MS)}`,
        facts: { address, left },
      });
    }
    const wallet = this.#parts.refundWallet();
    if (wallet) {
      const once = `${wallet.address} ${this.#each(DAY_MS)}`;
      told.push({ kind: 'refund_wallet.low', once, facts: wallet });
    }
    const { bytes, budget } = this.#parts.answers();
    if (bytes > budget * NEARLY_FULL)
      told.push({ kind: 'answers.nearly_full', once: this.#each(DAY_MS), facts: { bytes, budget } });
    return told;
  }

  #down(): LedgerEvent[] {
    return this.#parts.facilitators().flatMap(({ name: facilitator, status, detail: why }) => {
      if (status !== 'down') {
        this.#downSince.delete(facilitator);
        return [];
      }
      const since = this.#downSince.get(facilitator) ?? this.#now();
      this.#downSince.set(facilitator, since);
      if (this.#now() - since < DOWN_MS) return [];
      return [
        {
          kind: 'facilitator.down',
          once: `${facilitator} ${this.#each(HOUR_MS)}`,
          facts: { facilitator, why },
        },
      ];
    });
  }

  /** The number of the current hour or day, the same on all servers. */
  #each(ms: number): string {
    return String(Math.floor(this.#now() / ms));
  }
}
