import type { FacilitatorState } from '../facilitators/facilitators.js';
import type { HeardVerdict } from '../facilitators/listing-verdicts.js';
import type { HealthReport } from '../http/health.js';
import type { ReplicaState, Reports } from '../ledger/replica.js';
import type { Ledger, Payment, Repayment } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { CanaryRun } from '../operator/canary-runs.js';
import type { AskedAmount } from '../operator/reserve-refund.js';
import type { Explorer } from '../rails/solana/explorer.js';
import type { CountedHere } from './operations-part.js';
import type { Sections } from './order-tasks.js';

/** The data sources of the operator page. */
export type OperatorParts = {
  ledger: Ledger;
  /** The source for listing and counting sales; by default the ledger. */
  reports?: Reports | undefined;
  /** The state of the source `reports`, if it is a replica. */
  replica?: (() => ReplicaState | undefined) | undefined;
  /** The name of the shop. */
  shop: string;
  network: string;
  payTo: string;
  publicUrl: string;
  health: () => HealthReport;
  facilitators: () => FacilitatorState[];
  /** What the facilitators' directories last answered about each operation. Rejects if the ledger fails. */
  listings: () => Promise<HeardVerdict[]>;
  /** This server's counters of the operations. */
  counted: () => CountedHere;
  /** The canary's purchases, newest first. Rejects if the ledger fails. */
  canary: () => Promise<CanaryRun[]>;
  /** The operator's own addresses. */
  ownWallets: ReadonlySet<string>;
  /** The circuit breakers of backends that have one. */
  breakers: () => { name: string; open: boolean }[];
  /**
   * Records a refund as `npm run ledger -- refund` does.
   * @throws OperatorFault, UpstreamFailure, LedgerFault: nothing was changed
   */
  refund: (id: string, tx: string) => Promise<unknown>;
  /** Reserves a refund for a wallet to pay. @throws OperatorFault, LedgerFault: nothing was changed */
  askRefund: (id: string, asked: AskedAmount) => Promise<unknown>;
  /** Cancels a reserved refund. @throws OperatorFault, LedgerFault */
  cancelRefund: (id: string) => Promise<unknown>;
  /** The Solana Pay link of a refund. */
  refundLink: (refund: Repayment) => Promise<string>;
  /** The explorer that transactions and addresses link to. */
  explorer?: Explorer | undefined;
  /** The operations' own sections about their orders. */
  sections: Sections;
  /** Starts another attempt at an owed order. @returns false if one is in progress */
  retry: (payment: Payment) => Promise<boolean>;
  log: Log;
  /** Ends the live streams, so that the server can close. */
  signal: AbortSignal;
  now?: () => number;
};
