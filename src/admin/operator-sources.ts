import type { FacilitatorState } from '../facilitators/facilitators.js';
import type { HeardVerdict } from '../facilitators/listing-verdicts.js';
import type { HealthReport } from '../http/health.js';
import type { Ledger, Payment, Repayment } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { CanaryRun } from '../operator/canary-runs.js';
import type { AskedAmount } from '../operator/reserve-refund.js';
import type { Explorer } from '../rails/solana/explorer.js';
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
  /** What the canary has bought, the newest first. Rejects if the ledger fails. */
  canary: () => Promise<CanaryRun[]>;
  /** The operator's own addresses. */
  ownWallets: ReadonlySet<string>;
  /** Of the backends that have one. */
  breakers: () => { name: string; open: boolean }[];
  /**
   * Records a refund as `npm run ledger -- refund` does.
   * @throws OperatorFault, UpstreamFailure, LedgerFault: nothing was changed
   */
  refund: (id: string, tx: string) => Promise<unknown>;
  /** Reserves a refund that a wallet pays. @throws OperatorFault, LedgerFault: nothing was changed */
  askRefund: (id: string, asked: AskedAmount) => Promise<unknown>;
  /** Cancels it. @throws OperatorFault, LedgerFault */
  cancelRefund: (id: string) => Promise<unknown>;
  /** What a wallet pays. */
  refundLink: (refund: Repayment) => Promise<string>;
  /** Where transactions and addresses are shown. */
  explorer?: Explorer | undefined;
  /** What operations show of their orders. */
  sections: Sections;
  /** Starts another attempt at an owed order. @returns false if one is in progress */
  retry: (payment: Payment) => Promise<boolean>;
  log: Log;
  /** Ends the live streams, so that the server can close. */
  signal: AbortSignal;
  now?: () => number;
};
