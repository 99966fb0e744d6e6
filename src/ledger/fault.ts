/**
 * - `open`: the ledger can't be opened (wrong owner, locked, newer schema, unreadable folder, bad URL).
 * - `busy`: too many operations are waiting; nothing was written.
 * - `full`: the answer store is full; nothing was written.
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

/** The fault to report for an engine's error on a read. A LedgerFault thrown by the operation itself is returned unchanged. */
export function readFault(error: unknown): LedgerFault {
  return failed(error, `The ledger can't be read (${messageOf(error)}).`);
}

/** The fault to report for an engine's error on a write. @param check what the operator can do about it */
export function writeFault(error: unknown, check: string): LedgerFault {
  return failed(error, `The ledger can't be written (${messageOf(error)}). ${check}`);
}

function failed(error: unknown, message: string): LedgerFault {
  return error instanceof LedgerFault ? error : new LedgerFault('failed', message, { cause: error });
}

/** The fault to report for a commit that may or may not have happened. */
export function unconfirmed(cause: unknown): LedgerFault {
  return new LedgerFault('unknown', `The ledger could not confirm a commit (${messageOf(cause)}).`, {
    cause,
  });
}

/** @returns the message of a thrown value, whatever its type */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
