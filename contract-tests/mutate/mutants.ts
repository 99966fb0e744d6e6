import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { canaryMutants } from './canary-mutants.js';
import { embeddedMutants } from './embedded-mutants.js';
import { evidenceMutants } from './evidence-mutants.js';
import { foundMutants } from './found-mutants.js';
import { freeMutants } from './free-mutants.js';
import { ledgerMutants } from './ledger-mutants.js';
import { outboxMutants } from './outbox-mutants.js';
import { limitMutants } from './limit-mutants.js';
import { mcpMutants } from './mcp-mutants.js';
import { mppMutants } from './mpp-mutants.js';
import { orderMutants } from './order-mutants.js';
import { paymentMutants } from './payment-mutants.js';
import { priceMutants } from './price-mutants.js';
import { rateMutants } from './rate-mutants.js';
import { refundMutants } from './refund-mutants.js';
import { routingMutants } from './routing-mutants.js';
import { settleMutants } from './settle-mutants.js';
import { transactionMutants } from './transaction-mutants.js';
import { upstreamMutants } from './upstream-mutants.js';

const DIST = fileURLToPath(new URL('../../', import.meta.url));

/** A change of one built file, and the test that must notice it. */
export type Mutant = {
  /** What the change does. */
  name: string;
  /** Below dist/. */
  file: string;
  /** Exact text of the built file, which must occur in it once. */
  find: string;
  replace: string;
  /** The test files, as a glob below contract-tests/ without `.test.ts` (`sale/charge-*`). `grep`: part of the names of the tests. */
  test: string;
  grep: string;
};

export const mutants: readonly Mutant[] = [
  ...canaryMutants,
  ...settleMutants,
  ...ledgerMutants,
  ...outboxMutants,
  ...foundMutants,
  ...freeMutants,
  ...paymentMutants,
  ...transactionMutants,
  ...upstreamMutants,
  ...embeddedMutants,
  ...evidenceMutants,
  ...mcpMutants,
  ...mppMutants,
  ...limitMutants,
  ...orderMutants,
  ...priceMutants,
  ...rateMutants,
  ...refundMutants,
  ...routingMutants,
];

/** @returns the error if the text that a mutant looks for does not occur exactly once, or if the mutant changes nothing */
export function faultOf({ file, find, replace }: Mutant): string | undefined {
  const text = readFileSync(join(DIST, file), 'utf8');
  const found = text.split(find).length - 1;
  if (found !== 1) return `its text occurs ${found} times in dist/${file}, must occur once: ${find}`;
  return find === replace ? 'it changes nothing' : undefined;
}
