import { ledgerMutants } from './ledger-mutants.js';
import { paymentMutants } from './payment-mutants.js';
import { settleMutants } from './settle-mutants.js';
import { transactionMutants } from './transaction-mutants.js';

/** A change of one built file, and the test that must notice it. */
export type Mutant = {
  /** What the change does. */
  name: string;
  /** Below dist/. */
  file: string;
  /** Exact text of the built file, which must occur in it once. */
  find: string;
  replace: string;
  /** The files of the tests without .test.ts, in whatever folder (`charge-*`), and a part of the names of those that are run. */
  test: string;
  grep: string;
};

export const mutants: readonly Mutant[] = [
  ...settleMutants,
  ...ledgerMutants,
  ...paymentMutants,
  ...transactionMutants,
];
