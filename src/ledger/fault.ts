/**
 * - `open`: the ledger can't be opened (wrong owner, locked, newer schema, unreadable folder, bad URL).
 * - `busy`: too many operations wait; nothing was written.
 * - `full`: the store of answers is full; nothing was written.
 * - `failed`: the operation was not carried out; nothing was written.
 * - `unknown`: the commit may or may not have happened; act as if it had not; the reconciler will resolve it.
 */
export type FaultCode = 'open' | 'busy' | 'full' | 'failed' | 'unknown';

/** A fault of the ledger. Its message tells the operator what to do next. */
export class LedgerFault extends Error {
  readonly code: FaultCode;

  constructor(code: FaultCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'LedgerFault';
    this.code = code;
  }
}

/** @returns the message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
