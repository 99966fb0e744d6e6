import { LedgerFault } from '../ledger/fault.js';

export const NOT_READ = 'The ledger cannot be read at the moment';

/** The value, or a sentence that explains why the ledger can't be read, so that the rest of the page can be shown anyway. */
export async function orWhy<T>(value: Promise<T>): Promise<T | string> {
  try {
    return await value;
  } catch (error) {
    return `${NOT_READ}: ${error instanceof LedgerFault ? error.message : 'unexpected error, see the log'}`;
  }
}
