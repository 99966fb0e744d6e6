import type { OperatorParts } from './operator-sources.js';
import type { Overview } from './overview.js';
import { oldestOwed, paymentsInProgress, withOrders } from './owed-payments.js';
import type { Reports } from '../ledger/replica.js';
import { orWhy } from './read-or-why.js';
import { unitsOf, type Period } from './periods.js';
import { SalesHistory } from './sales-history.js';

const MAX_LISTED = 50;
const MAX_NEWEST = 10;

type Parts = Pick<
  OperatorParts,
  | 'ledger'
  | 'reports'
  | 'network'
  | 'payTo'
  | 'publicUrl'
  | 'health'
  | 'facilitators'
  | 'listings'
  | 'breakers'
  | 'counted'
  | 'ownWallets'
  | 'canary'
>;

/** The data of the first page. If a part of the ledger cannot be read, a sentence that says why takes its place. */
export class OverviewReader {
  readonly #parts: Parts;
  readonly #now: () => number;
  readonly #reports: Reports;
  readonly #history: SalesHistory;

  constructor(parts: Parts, now: () => number) {
    this.#parts = parts;
    this.#now = now;
    this.#reports = parts.reports ?? parts.ledger;
    this.#history = new SalesHistory(this.#reports, now, parts.ownWallets);
  }

  async read(period: Period): Promise<Overview> {
    const { ledger, network, payTo, publicUrl, health, facilitators, listings, breakers } = this.#parts;
    const now = this.#now();
    const orders = await orWhy(ledger.openOrders());
    const inProgress = paymentsInProgress(orders, now);
    const [history, newest, undecided, unresolved, owed, directories, untold, refunded, repayments, canary] =
      await Promise.all([
        orWhy(this.#history.read(period)),
        orWhy(this.#reports.newestSales(MAX_NEWEST)),
        orWhy(ledger.undecided()),
        orWhy(ledger.list({ state: 'settling', limit: MAX_LISTED })),
        orWhy(oldestOwed(ledger, inProgress, MAX_LISTED).then(rows => withOrders(ledger, rows, now))),
        orWhy(listings()),
        orWhy(ledger.eventsWaiting()),
        orWhy(this.#refunded(period, now)),
        orWhy(ledger.openRepayments(undefined, MAX_LISTED)),
        orWhy(this.#parts.canary()),
      ]);
    const shown = {
      network,
      payTo,
      publicUrl,
      health: health(),
      facilitators: facilitators(),
      breakers: breakers(),
      counted: this.#parts.counted(),
      ownWallets: this.#parts.ownWallets,
    };
    const listed = {
      history,
      newest,
      undecided,
      unresolved,
      owed,
      orders,
      directories,
      untold,
      refunded,
      repayments,
      canary,
    };
    return { now, ...shown, ...listed, inProgress };
  }

  /** Refunds within the period, in atomic units. */
  async #refunded(period: Period, now: number): Promise<bigint> {
    const within = { from: unitsOf(period, now).first * period.unitMs, to: Number.MAX_SAFE_INTEGER };
    const all = [
      ...(await this.#reports.refundedBetween(within)),
      ...(await this.#reports.formerRefunds(within)),
    ];
    return all.reduce((sum, { amount }) => sum + amount, 0n);
  }

  /**
   * A value that changes whenever the page would look different: with a sale, an unresolved payment, the progress of an order or its
   * deadline, or the state of a backend.
   */
  async state(): Promise<string> {
    const { ledger, health, facilitators } = this.#parts;
    const now = this.#now();
    const [newest, { settling, owed }, orders, [canary]] = await Promise.all([
      this.#reports.newestSales(1),
      ledger.undecided(),
      ledger.openOrders(),
      this.#parts.canary(),
    ]);
    const states = Object.values(health().upstreams).map(({ status }) => status);
    return JSON.stringify([
      [newest[0]?.id, newest[0]?.state, settling.payments, owed.payments, canary?.id],
      orders.map(({ payment, done, attempts, deadline }) => [payment, done, attempts, deadline > now]),
      [...states, ...facilitators().map(({ status }) => status)],
    ]);
  }
}
