import type { FacilitatorState } from '../facilitators/facilitators.js';
import type { HeardVerdict } from '../facilitators/listing-verdicts.js';
import type { HealthReport } from '../http/health.js';
import type { Ledger, Payment } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { CountedHere } from './operations-part.js';
import type { Sections } from './order-tasks.js';

/** What the operator page is made of. */
export type OperatorParts = {
  ledger: Ledger;
  /** The name of the shop. */
  shop: string;
  network: string;
  payTo: string;
  publicUrl: string;
  health: () => HealthReport;
  facilitators: () => FacilitatorState[];
  /** What their directories make of the operations. Rejects if the ledger fails. */
  listings: () => Promise<HeardVerdict[]>;
  /** What this server has counted of the operations. */
  counted: () => CountedHere;
  /** The operator's own addresses. */
  ownWallets: ReadonlySet<string>;
  /** Of the backends that have one. */
  breakers: () => { name: string; open: boolean }[];
  /**
   * Records a refund as `npm run ledger -- refund` does.
   * @throws OperatorFault, UpstreamFailure, LedgerFault: nothing was changed
   */
  refund: (id: string, tx: string) => Promise<unknown>;
  /** What operations show of their orders. */
  sections: Sections;
  /** Starts another attempt at an owed order. @returns false if one is in progress */
  retry: (payment: Payment) => Promise<boolean>;
  log: Log;
  /** Ends the live streams, so that the server can close. */
  signal: AbortSignal;
  now?: () => number;
};
