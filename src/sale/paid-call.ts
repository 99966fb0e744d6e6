import type { Spent } from '../observe/observer.js';
import type { Called } from '../rails/rail.js';
import type { Payment } from './check-payment.js';
import type { Answer, Failure } from './outcome.js';
import type { Party } from '../admission/unsold-work.js';

/** A paid call whose body is valid. */
export type PaidCall = Called & {
  payment: Payment;
  /** Hex sha256 over operation id and canonical body. Equal hashes mean the same call. */
  requestHash: string;
  /** Does the work; resolves to any declared answer except 402, never rejects. Not called for `upfront` operations. */
  work: (signal: AbortSignal) => Promise<Answer>;
  /** Aborts when this caller's connection has closed. */
  gone: AbortSignal;
  /** Aborts when the server shuts down: it accepts no new payments and holds no callers. */
  closing?: AbortSignal;
  /** How long this caller waits for an answer that another worker is making, in ms. */
  holdMs: number;
  /** The source of the request. The budget for new payers is shared fairly between sources. */
  source?: string;
  /** The source whose unsold work is limited; undefined if it has no limits of its own. */
  limitedSource?: string | undefined;
  /** The backend that does the work. Calls of one backend share an allowance of unsold work. Default: the operation. */
  backend?: string;
  /** Identifies the request in the log. */
  requestId?: string;
  /** How long its steps took; filled in while they run. */
  spent?: Spent;
  /**
   * Called before a delivered answer is sent again to a later request. Counts the answer against a limit.
   * @returns 0, or the seconds until it is allowed
   */
  again?: (id: string, bytes: number) => number;
  /** Only for `upfront` operations. */
  upfront?: {
    /** Canonical JSON of the body, stored with the order. */
    request: string;
    /** Called before settlement. Resolves to undefined, or to the answer to send instead. */
    ready: () => Promise<Failure | undefined>;
  };
};

/** The party whose allowance of unsold work a call uses if the call is not sold. */
export function partyOf({ payment, operation, limitedSource, backend }: PaidCall, known: boolean): Party {
  const { payer } = payment.checked;
  return { payer, source: limitedSource, backend: backend ?? operation.id, known };
}
