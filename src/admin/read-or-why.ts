import { LedgerFault } from '../ledger/fault.js';

export const NOT_READ = 'The ledger cannot be read at the moment';

/** The value, or a sentence that says why the ledger cannot be read: the rest of the page is shown anyway. */
export async function orWhy<T>(value: Promise<T>): Promise<T | string> {
  try {
    return await value;
  } catch (error) {
    return `${NOT_READ}: ${error instanceof LedgerFault ? error.message : 'unexpected error, see the log'}`;
  }
}
