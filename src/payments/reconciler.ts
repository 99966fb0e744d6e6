import type { PricedOperation } from '../contract.js';
import type { Ledger, Payment as Row } from '../ledger/store.js';
import type { Log } from './outcome.js';
import type { Facilitator } from './facilitator.js';
import { requirementsOf, type Terms } from './offer.js';
import { findPayment, isDead, isTransfer, type ChainHistory } from './proof.js';
import { feePayerOf } from './transaction.js';
import type { Trust } from './trust.js';

const INTERVAL_MS = 2_000;
const BATCH = 100;
const PARALLEL = 8;
const LEASE_MS = 60_000;
const LOOK_DEADLINE_MS = 20_000;
/** Time for the first ask to be answered or to show on chain before the payment is asked for once more. */
const REASK_AFTER_MS = 5_000;
/** How long between two looks at the same payment. */
const REST_MS = 4_000;
/** Released payments are watched until they are dead; older ones were. */
const WATCH_MS = 60 * 60_000;
const ANSWER_LIFE_MS = 10 * 60_000;
const AUDIT_AFTER_MS = 20_000;
const MAX_RESTING = 10_000;

/**
 * Lets the chain decide what nobody knows: resolves `settling` payments, watches `released` ones until their blockhash is dead, and
 * audits settlements at `finalized`. One server at a time looks at a payment (a lease in the ledger); a crash costs nothing.
 */
export class Reconciler {
  readonly #ledger: Ledger;
  readonly #chain: ChainHistory;
  readonly #facilitator: Facilitator;
  readonly #terms: Terms;
  readonly #operations: Map<string, PricedOperation>;
  readonly #trust: Trust;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #restUntil = new Map<string, number>();
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;

  constructor(options: {
    ledger: Ledger;
    chain: ChainHistory;
    facilitator: Facilitator;
    terms: Terms;
    operations: PricedOperation[];
    /** Told when the facilitator reported a settlement that is not on chain. */
    trust: Trust;
    log: Log;
    now?: () => number;
  }) {
    this.#ledger = options.ledger;
    this.#chain = options.chain;
    this.#facilitator = options.facilitator;
    this.#terms = options.terms;
    this.#operations = new Map(options.operations.map(operation => [operation.id, operation]));
    this.#trust = options.trust;
    this.#log = options.log;
    this.#now = options.now ?? Date.now;
  }

  /** Begins with one round at once and goes on by itself. Resolves after that round or after `waitMs`, whichever is first. */
  async start(waitMs: number): Promise<void> {
    this.#timer = setInterval(() => void this.reconcile(), INTERVAL_MS);
    this.#timer.unref();
    const late = new Promise<void>(resolve => setTimeout(resolve, waitMs).unref());
    await Promise.race([this.reconcile(), late]);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort(new Error('the server is shutting down'));
    await this.#round;
  }

  /** One round over everything undecided. Rounds never overlap. Never rejects. */
  reconcile(): Promise<void> {
    this.#round ??= this.#rounds().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #rounds(): Promise<void> {
    try {
      const settling = await this.#ledger.list({ state: 'settling', idle: true, limit: BATCH });
      await this.#each(settling, row => this.#resolve(row));
      const recent = this.#now() - WATCH_MS;
      const released = await this.#ledger.list({
        state: 'released',
        idle: true,
        after: { createdAt: recent, id: '' },
        limit: BATCH,
      });
      await this.#each(
        released.filter(row => row.auditedAt === null),
        row => this.#watch(row),
      );
      await this.#each(await this.#ledger.unaudited(BATCH, this.#now() - AUDIT_AFTER_MS), row =>
        this.#audit(row),
      );
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#log.warn({ error }, 'undecided payments could not be looked at');
    }
  }

  async #each(rows: Row[], look: (row: Row) => Promise<void>): Promise<void> {
    const queue = rows.filter(row => (this.#restUntil.get(row.id) ?? 0) <= this.#now());
    const worker = async (): Promise<void> => {
      for (let row = queue.shift(); row && !this.#stop.signal.aborted; row = queue.shift()) {
        await look(row).catch((error: unknown) => {
          this.#log.warn({ payment: row?.id, error }, 'the chain could not decide a payment yet');
        });
        this.#rest(row.id);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
  }

  #rest(id: string): void {
    if (this.#restUntil.size >= MAX_RESTING) this.#restUntil.clear();
    this.#restUntil.set(id, this.#now() + REST_MS);
  }

  async #resolve(listed: Row): Promise<void> {
    const row = await this.#ledger.adopt(listed.id, LEASE_MS);
    if (!row) return;
    try {
      if (row.state === 'settling') await this.#decide(row);
    } finally {
      await this.#ledger.leave(row.id, row.claim);
    }
  }

  async #decide(row: Row): Promise<void> {
    const signal = this.#signal();
    const finding = await findPayment(this.#chain, row, 'confirmed', signal);
    if (finding.kind === 'found' && !finding.failed) return this.#landed(row, finding.signature);
    const dead = await isDead(this.#chain, row, signal);
    if (!dead) {
      const waited = this.#now() - (row.settlingAt ?? 0) >= REASK_AFTER_MS;
      if (finding.kind === 'absent' && row.asks < 2 && waited) await this.#askAgain(row);
      return;
    }
    const proof = await findPayment(this.#chain, row, 'finalized', signal);
    if (proof.kind === 'found' && !proof.failed) return this.#landed(row, proof.signature);
    if (proof.kind === 'unclear') return;
    const reason =
      proof.kind === 'found' ? 'the transaction failed on chain' : 'the transaction never landed';
    if (await this.#ledger.release(row.id, row.claim, reason)) {
      await this.#ledger.audited(row.id);
      this.#log.info({ payment: row.id, reason }, 'a payment in doubt was not charged');
    }
  }

  /** Of a second ask only a success counts: anything else may be about the first one. */
  async #askAgain(row: Row): Promise<void> {
    const operation = this.#operations.get(row.operation);
    if (!operation || !(await this.#ledger.askAgain(row.id, row.claim))) return;
    const requirements = requirementsOf(operation, this.#terms, feePayerOf(row.transaction));
    const settlement = await this.#facilitator.settle({ transaction: row.transaction, requirements });
    if (settlement.kind !== 'settled') return;
    const shown = await isTransfer(this.#chain, row.id, settlement.signature, 'confirmed', this.#signal());
    if (shown) await this.#landed(row, settlement.signature);
  }

  async #landed(row: Row, settlement: string): Promise<void> {
    const answered = row.flow === 'authorization' && (await this.#ledger.answer(row.id)) !== undefined;
    const how = { settlement, foundOnChain: true };
    const moved = answered
      ? await this.#ledger.deliver(row.id, row.claim, {
          ...how,
          answerExpiresAt: this.#now() + ANSWER_LIFE_MS,
        })
      : await this.#ledger.owe(row.id, row.claim, how);
    if (moved) this.#log.info({ payment: row.id, settlement }, 'a payment in doubt was found on chain');
  }

  async #watch(listed: Row): Promise<void> {
    const row = await this.#ledger.adopt(listed.id, LEASE_MS);
    if (!row) return;
    try {
      const signal = this.#signal();
      const dead = await isDead(this.#chain, row, signal);
      const finding = await findPayment(this.#chain, row, dead ? 'finalized' : 'confirmed', signal);
      if (finding.kind === 'found' && !finding.failed) await this.#landed(row, finding.signature);
      else if (dead && finding.kind !== 'unclear') await this.#ledger.audited(row.id);
    } finally {
      await this.#ledger.leave(row.id, row.claim);
    }
  }

  async #audit(row: Row): Promise<void> {
    const signal = this.#signal();
    const real = await isTransfer(this.#chain, row.id, row.settlement ?? '', 'finalized', signal).catch(
      () => undefined,
    );
    if (real === true) return void (await this.#ledger.audited(row.id));
    const finding = await findPayment(this.#chain, row, 'finalized', signal);
    if (finding.kind === 'found' && !finding.failed) return void (await this.#ledger.audited(row.id));
    if (finding.kind === 'unclear' || !(await isDead(this.#chain, row, signal))) return;
    this.#trust.facilitatorLied = true;
    this.#log.error(
      { payment: row.id, settlement: row.settlement },
      'THE FACILITATOR REPORTED A SETTLEMENT THAT IS NOT ON CHAIN: its successes are now checked before every answer',
    );
    await this.#ledger.audited(row.id);
  }

  #signal(): AbortSignal {
    return AbortSignal.any([this.#stop.signal, AbortSignal.timeout(LOOK_DEADLINE_MS)]);
  }
}
