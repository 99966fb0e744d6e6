import type { SharedBucket } from '../admission/admission.js';
import type { BlockedPayers } from '../admission/blocked-payers.js';
import type { UnsoldWork } from '../admission/unsold-work.js';
import type { Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { Observer } from '../observe/observer.js';
import type { Rail } from '../rails/rail.js';
import type { KeptAnswers } from './kept-answers.js';
import type { OrderWorker } from './order-worker.js';
import type { WaitingCallers } from './waiting-callers.js';

/** What every step of a sale works with. Times in ms. */
export type Deps = {
  ledger: Ledger;
  rail: Rail;
  log: Log;
  observer: Observer;
  now: () => number;
  callers: WaitingCallers;
  answers: KeptAnswers;
  unsoldWork: UnsoldWork;
  /** Wallets to which nothing is sold. */
  blocked: Pick<BlockedPayers, 'has'>;
  /** These budgets limit the verify requests and the work for all payers that have never paid, because their wallets may be empty. */
  newPayers: SharedBucket;
  newPayersWork: SharedBucket;
  /** If undefined, `upfront` operations answer 503. */
  orders: OrderWorker | undefined;
  maxUnsettledPerPayer: number;
  /** How long the work may take. */
  workDeadlineMs: number;
  /** Longer than verify, work and settle together, so that a live claim never looks abandoned. */
  leaseMs: number;
  /** How long after the first settle request the second one may be sent. */
  askAgainAfterMs: number;
};
