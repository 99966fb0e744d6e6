import type { Log } from '../net/log.js';
import { UNOBSERVED, type Observer } from '../observe/observer.js';
import { LRUCache } from 'lru-cache';
import type { Ledger, Payment as Row } from '../ledger/store.js';
import { withAbortAfter } from '../net/deadline.js';
import { recordLanded } from './record-landed.js';
import type { Fate, Rail } from '../rails/rail.js';

/** In ms. */
type Timing = {
  /** The time between two rounds. */
  interval: number;
  /** How long one server holds a payment; longer than two checks. */
  lease: number;
  /** How long one check of a payment may take. */
  look: number;
  /** The time between two checks of a payment. It grows with the payment's age. */
  rest: number;
  longestRest: number;
  /** A settlement is final about 13 s after it lands. */
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
const PAGE = 1_000;
const MAX_RESTING = 10_000;
const STOP_DEADLINE_MS = 5_000;

type Options = { ledger: Ledger; rail: Rail; log: Log; observer?: Observer; now?: () => number };

type Place = { since: number; id: string };
const KINDS = ['settling', 'released', 'settled'];
const BEGINNING: Place = { since: 0, id: '' };

/**
 * Resolves `settling` payments by what their rail proves, watches `released` ones until they can't be paid any more, and checks
 * settlements that facilitators reported. A lease in the ledger lets one server at a time resolve or watch a payment, and expires after a
 * crash.
 */
export class Reconciler {
  readonly #options: Required<Options>;
  readonly #timing: Timing;
  readonly #restUntil = new LRUCache<string, number>({ max: MAX_RESTING });
  readonly #stop = new AbortController();
  /** Where the next page begins. */
  #place = BEGINNING;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;

  constructor({
    timing,
    observer = UNOBSERVED,
    now = Date.now,
    ...options
  }: Options & { timing?: Partial<Timing> }) {
    this.#options = { ...options, observer, now };
    this.#timing = { ...TIMING, ...timing };
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

  /** Runs one round over the payments whose outcome is still open. Rounds never overlap. Never rejects. */
  reconcile(): Promise<void> {
    this.#round ??= this.#runRound().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #runRound(): Promise<void> {
    try {
      await this.#options.rail.beginRound();
      await this.#lookAtAll(await this.#nextPage());
    } catch (error) {
      if (!this.#stop.signal.aborted)
        this.#options.log.warn({ error }, 'could not check unresolved payments');
    }
  }

  /**
   * Goes through the payments page by page and then starts again, so that those that stay unresolved do not block the others. A page has
   * payments of each kind. If there are more of a kind, the next page continues from there.
   */
  async #nextPage(): Promise<Row[]> {
    const settledBefore = this.#options.now() - this.#timing.auditAfter;
    const rows = await this.#options.ledger.openFates(this.#place, { settledBefore, limit: PAGE });
    const [place = BEGINNING] = KINDS.map(kind => rows.filter(row => kindOf(row) === kind))
      .flatMap(kind => (kind.length === PAGE ? kind.slice(-1) : []))
      .map(placeOf)
      .sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1));
    this.#place = place;
    return rows;
  }

  async #lookAtAll(rows: Row[]): Promise<void> {
    const queue = rows
      .filter(row => (this.#restUntil.get(row.id) ?? 0) <= this.#options.now())
      // Unresolved payments come first, because buyers wait for them. Payments of one payer follow each other, so that they share reads of the chain.
      .sort((a, b) => rankOf(a) - rankOf(b) || a.payer.localeCompare(b.payer));
    const failures: { payment: string; error: unknown }[] = [];
    const worker = async (): Promise<void> => {
      for (let row = queue.shift(); row && !this.#stop.signal.aborted; row = queue.shift()) {
        const { id } = row;
        await this.#look(row).catch((error: unknown) => failures.push({ payment: id, error }));
        this.#rest(row);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    if (failures.length === 0 || this.#stop.signal.aborted) return;
    this.#options.log.warn(
      { ...failures[0], failures: failures.length },
      'could not resolve payments from the chain yet',
    );
  }

  /** Older payments are checked less often, so that payments that stay unresolved do not delay the others. */
  #rest(row: Row): void {
    const { rest, longestRest } = this.#timing;
    const age = this.#options.now() - placeOf(row).since;
    this.#restUntil.set(row.id, this.#options.now() + Math.min(Math.max(rest, age / 20), longestRest));
  }

  /**
   * Checks one payment, until the check's deadline or until the server stops. A settled payment is checked without a lease, because an order worker
   * may hold it.
   */
  async #look(listed: Row): Promise<void> {
    const { ledger } = this.#options;
    const { lease, look } = this.#timing;
    const isSettled = listed.settledAt !== null;
    const row = isSettled ? listed : await ledger.adopt(listed.id, lease);
    if (!row) return;
    try {
      if (row.state === listed.state)
        await withAbortAfter(look, this.#stop.signal, signal => this.#decide(row, signal));
    } finally {
      if (!isSettled) await ledger.extendLease(row.id, row.claim, 0);
    }
  }

  /** Looks up the outcome of a payment on chain and records it. The effect depends on the payment's state. */
  async #decide(row: Row, signal: AbortSignal): Promise<void> {
    const fate = await this.#options.rail.fate(row, signal);
    if (fate.kind === 'unknown') return;
    const isSettled = row.settledAt !== null;
    if (fate.kind === 'paid' && !isSettled)
      return void (await recordLanded(this.#options, row, fate.settlement));
    if (fate.kind === 'absent' && row.state === 'settling') return this.#release(row, fate);
    // Stored before the row is marked as audited, so that the audit is repeated if the false report can't be stored.
    const isFalse = fate.kind === 'absent' && isSettled;
    if (isFalse) await this.#distrust(row);
    const { ledger, rail } = this.#options;
    await ledger.audited(row.id, isFalse ? row.evidence : rail.condense(row));
  }

  async #release(row: Row, { why, final }: Fate & { kind: 'absent' }): Promise<void> {
    const { ledger, observer, rail } = this.#options;
    const { id: payment, operation, payer, amount } = row;
    if (!(await ledger.release(payment, row.claim, why))) return;
    if (final) await ledger.audited(payment, rail.condense(row));
    observer.tell({ kind: 'released', operation, payment, payer, amount, why });
    await ledger.recordRefusal(payer);
  }

  async #distrust(row: Row): Promise<void> {
    const { rail, observer } = this.#options;
    const { id: payment, operation, payer, amount, settlement } = row;
    const told = { operation, payment, payer, amount, settlement: settlement ?? '' };
    observer.tell({ kind: 'false settlement', ...told });
    await rail.distrust(row);
  }
}

function kindOf({ state, settledAt }: Row): string {
  return settledAt === null ? state : 'settled';
}

function rankOf({ state }: Row): number {
  return state === 'settling' ? 0 : 1;
}

function placeOf({ settledAt, settlingAt, createdAt, id }: Row): Place {
  return { since: settledAt ?? settlingAt ?? createdAt, id };
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>(resolve => (timer = setTimeout(resolve, ms)));
  await Promise.race([work, late]);
  clearTimeout(timer);
}
