import type { PricedOperation } from '../contract/contract.js';
import type { Payment } from './check-payment.js';
import type { Answer, Failure } from './outcome.js';

/** A paid call whose body is valid. */
export type PaidCall = {
  operation: PricedOperation;
  payment: Payment;
  /** Hex sha256 over operation id and canonical body: what "the same call" means. */
  requestHash: string;
  /** Does the work; resolves to any declared answer but 402, never rejects. Not called for `upfront` operations. */
  work: (signal: AbortSignal) => Promise<Answer>;
  /** Aborts when this caller's connection is gone. */
  gone: AbortSignal;
  /** Aborts when the server shuts down: nothing new is sold, and nobody is held any more. */
  closing?: AbortSignal;
  /** How long this caller wants to wait for an answer that somebody else is working on, in ms. Default 55 s. */
  holdMs?: number;
  /** Where the request comes from: requests of one source share what new payers may use. */
  source?: string;
  /** What an `upfront` operation needs besides. */
  upfront?: {
    /** Canonical JSON of the body, kept with the order. */
    request: string;
    /** Asked before money is taken: undefined, or the answer to give instead. */
    ready: () => Promise<Failure | undefined>;
  };
};
