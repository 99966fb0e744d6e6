import type { Log } from '../net/log.js';
import { UNOBSERVED, type Observer } from '../observe/observer.js';
import { LRUCache } from 'lru-cache';
import type { Ledger, Payment as Row } from '../ledger/store.js';
import { withAbortAfter } from '../net/deadline.js';
import { recordLanded } from './record-landed.js';
import type { Fate, Rail } from '../rails/rail.js';

/** In ms. */
type Timing = {
  /** Between two rounds. */
  interval: number;
  /** How long one server holds a payment; longer than two checks. */
  lease: number;
  /** How long one check of a payment may take. */
  look: number;
  /** Between two checks of a payment; grows with its age. */
  rest: number;
  longestRest: number;
  /** A settlement is final some 13 s after it landed. */
  auditAfter: number;
};

const TIMING: Timing = {
  interval: 2_000,
  lease: 90_000,
  look: 20_000,
  rest: 4_000,
  longestRest: 60_000,
  auditAfter: 20_000,
};
const PARALLEL = 8;
const PAGE = 500;
/** Pages of payments read in one round. The next round continues where this one ended. */
const MAX_PAGES = 4;
/** A payment that is released without proof is released within minutes of its claim. */
const RELEASED_WITHIN_MS = 60 * 60_000;
const MAX_WATCHED = 10_000;
const MAX_RESTING = 10_000;
const STOP_DEADLINE_MS = 5_000;

type Place = { createdAt: number; id: string };
const BEGINNING: Place = { createdAt: 0, id: '' };

/**
 * Resolves `settling` payments by what their rail proves, watches `released` ones until they can't be paid any more, and audits reported
 * settlements. A lease in the ledger lets one server at a time check a payment, and expires after a crash.
 */
export class Reconciler {
  readonly #ledger: Ledger;
  readonly #rail: Rail;
  readonly #log: Log;
  readonly #observer: Observer;
  readonly #now: () => number;
  readonly #timing: Timing;
  readonly #restUntil = new LRUCache<string, number>({ max: MAX_RESTING });
  readonly #watched = new Map<string, Row>();
  readonly #stop = new AbortController();
  /** Where the next page of each list begins. */
  readonly #places = { settling: BEGINNING, released: BEGINNING };
  #auditPlace = { settledAt: 0, id: '' };
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;

  constructor(options: {
    ledger: Ledger;
    rail: Rail;
    log: Log;
    observer?: Observer;
    timing?: Partial<Timing>;
    now?: () => number;
  }) {
    this.#ledger = options.ledger;
    this.#rail = options.rail;
    this.#log = options.log;
    this.#observer = options.observer ?? UNOBSERVED;
    this.#timing = { ...TIMING, ...options.timing };
    this.#now = options.now ?? Date.now;
  }

  /** Starts the first round and schedules the next ones. Resolves after the first round or after `waitMs`, whichever comes first. */
  async start(waitMs: number): Promise<void> {
    this.#timer = setInterval(() => void this.reconcile(), this.#timing.interval);
    this.#timer.unref();
    await within(waitMs, this.reconcile());
  }

  /** Stops the current round. Checks that have not ended after 5 s are left to their leases. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort(new Error('the server is shutting down'));
    await within(STOP_DEADLINE_MS, Promise.allSettled([this.#round]));
  }

  /** Runs one round over all unresolved payments. Rounds never overlap. Never rejects. */
  reconcile(): Promise<void> {
    this.#round ??= this.#rounds().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #rounds(): Promise<void> {
    try {
      await this.#rail.beginRound();
      await this.#each(await this.#undecided(), row => this.#resolve(row));
      await this.#each(await this.#unwatched(), row => this.#watch(row));
      await this.#each(await this.#unaudited(), row => this.#bounded(signal => this.#audit(row, signal)));
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#log.warn({ error }, 'could not check unresolved payments');
    }
  }

  /** Goes through the list page by page and then starts again, so that payments which stay unresolved do not block the others. */
  async #undecided(): Promise<Row[]> {
    const rows: Row[] = [];
    for (let page = 0; page < MAX_PAGES; page++) {
      const after = this.#places.settling;
      const listed = await this.#ledger.list({ state: 'settling', idle: true, after, limit: PAGE });
      rows.push(...listed);
      this.#places.settling = listed.length < PAGE ? BEGINNING : placeOf(listed.at(-1));
      if (this.#places.settling === BEGINNING) break;
    }
    return rows;
  }

  /** Released payments that may still land. The whole list is read once, then only what is new. */
  async #unwatched(): Promise<Row[]> {
    for (let page = 0; page < MAX_PAGES && this.#watched.size < MAX_WATCHED; page++) {
      const after = this.#places.released;
      const listed = await this.#ledger.list({ state: 'released', after, limit: PAGE });
      for (const row of listed) if (row.auditedAt === null) this.#watched.set(row.id, row);
      const ended = listed.length < PAGE;
      this.#places.released = ended
        ? { createdAt: this.#now() - RELEASED_WITHIN_MS, id: '' }
        : placeOf(listed.at(-1));
      if (ended) break;
    }
    return [...this.#watched.values()];
  }

  /** One page per round, so that settlements which can't be looked up do not hide those behind them. */
  async #unaudited(): Promise<Row[]> {
    const settledBefore = this.#now() - this.#timing.auditAfter;
    const listed = await this.#ledger.unaudited(PAGE, settledBefore, this.#auditPlace);
    const last = listed.length < PAGE ? undefined : listed.at(-1);
    this.#auditPlace = { settledAt: last?.settledAt ?? 0, id: last?.id ?? '' };
    return listed;
  }

  async #each(rows: Row[], look: (row: Row) => Promise<void>): Promise<void> {
    const queue = rows
      .filter(row => (this.#restUntil.get(row.id) ?? 0) <= this.#now())
      // Payments of one payer share their reads.
      .sort((a, b) => a.payer.localeCompare(b.payer));
    const failures: { payment: string; error: unknown }[] = [];
    const worker = async (): Promise<void> => {
      for (let row = queue.shift(); row && !this.#stop.signal.aborted; row = queue.shift()) {
        const { id } = row;
        await look(row).catch((error: unknown) => failures.push({ payment: id, error }));
        this.#rest(row);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    if (failures.length === 0 || this.#stop.signal.aborted) return;
    this.#log.warn(
      { ...failures[0], failures: failures.length },
      'could not resolve payments from the chain yet',
    );
  }

  /** The older a payment, the less often it is checked, so that payments which stay unresolved do not hold up the others. */
  #rest({ id, settledAt, settlingAt, createdAt }: Row): void {
    const { rest, longestRest } = this.#timing;
    const age = this.#now() - (settledAt ?? settlingAt ?? createdAt);
    this.#restUntil.set(id, this.#now() + Math.min(Math.max(rest, age / 20), longestRest));
  }

  async #resolve(listed: Row): Promise<void> {
    const row = await this.#ledger.adopt(listed.id, this.#timing.lease);
    if (!row) return;
    try {
      if (row.state === 'settling') await this.#bounded(signal => this.#decide(row, signal));
    } finally {
      await this.#ledger.extendLease(row.id, row.claim, 0);
    }
  }

  async #decide(row: Row, signal: AbortSignal): Promise<void> {
    const fate = await this.#rail.fate(row, signal);
    if (fate.kind === 'paid') return this.#landed(row, fate.settlement);
    if (fate.kind === 'absent') await this.#release(row, fate);
  }

  async #release(row: Row, { why, final }: Fate & { kind: 'absent' }): Promise<void> {
    if (!(await this.#ledger.release(row.id, row.claim, why))) return;
    if (final) await this.#ledger.audited(row.id);
    const { id: payment, operation, payer, amount } = row;
    this.#observer.tell({ kind: 'released', operation, payment, payer, amount, why });
    await this.#ledger.recordRefusal(row.payer);
  }

  async #landed(row: Row, settlement: string): Promise<void> {
    await recordLanded(this.#ledger, row, settlement, this.#now(), this.#observer);
  }

  async #watch(listed: Row): Promise<void> {
    const row = await this.#ledger.adopt(listed.id, this.#timing.lease);
    if (!row) return;
    try {
      if (row.state !== 'released' || row.auditedAt !== null) return void this.#watched.delete(row.id);
      await this.#bounded(signal => this.#lookAgain(row, signal));
    } finally {
      await this.#ledger.extendLease(row.id, row.claim, 0);
    }
  }

  async #lookAgain(row: Row, signal: AbortSignal): Promise<void> {
    const fate = await this.#rail.fate(row, signal);
    if (fate.kind === 'paid') await this.#landed(row, fate.settlement);
    else if (fate.kind === 'absent') await this.#ledger.audited(row.id);
  }

  async #audit(row: Row, signal: AbortSignal): Promise<void> {
    const fate = await this.#rail.fate(row, signal);
    if (fate.kind === 'unknown') return;
    if (fate.kind === 'absent') {
      const { id: payment, operation, payer, amount, settlement } = row;
      const told = { operation, payment, payer, amount, settlement: settlement ?? '' };
      this.#observer.tell({ kind: 'false settlement', ...told });
      // Before the row is marked as audited: if this can't be stored, the audit is repeated.
      await this.#rail.distrust(row);
    }
    await this.#ledger.audited(row.id);
  }

  /** Runs one check of a payment, which ends at its deadline and when the server stops. */
  #bounded<T>(look: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withAbortAfter(this.#timing.look, this.#stop.signal, look);
  }
}

function placeOf(row: Row | undefined): Place {
  return row ? { createdAt: row.createdAt, id: row.id } : BEGINNING;
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>(resolve => (timer = setTimeout(resolve, ms)));
  await Promise.race([work, late]);
  clearTimeout(timer);
}
