import type { Mutant } from './mutants.js';

const of = (changes: readonly Omit<Mutant, 'file' | 'test'>[]): Mutant[] =>
  changes.map(change => ({ ...change, file: 'src/http/paid-calls.js', test: 'http/limited-calls' }));

/** How a call counts towards the limit of its source, and when it is refused. */
export const limitMutants: readonly Mutant[] = [
  {
    name: 'limits: a blocked payer can buy',
    file: 'src/sale/seller.js',
    find: 'if (this.#deps.blocked.has(checked.payer))',
    replace: 'if (false)',
    test: 'sale/charge-unpaid-work',
    grep: 'is never done for a blocked payer',
  },
  {
    name: 'limits: a list of blocked payers with an error blocks nobody',
    file: 'src/admission/blocked-payers.js',
    find: 'const blocked = { payers: this.#payers.size };',
    replace: 'this.#payers = NOBODY; const blocked = { payers: this.#payers.size };',
    test: 'admission/blocked-payers',
    grep: 'keeps its last valid entries in force',
  },
  ...of([
    {
      name: 'limits: unpaid calls over MCP are not counted',
      find: 'throttledIf(limits.takeUnpaid(source))',
      replace: 'undefined',
      grep: 'unpaid call that no fast path answers',
    },
    {
      name: 'limits: refused payments are not counted',
      find: 'return throttled;',
      replace: 'return undefined;',
      grep: 'a payment that cannot be read counts as ten',
    },
    {
      name: 'limits: a facilitator that is down counts against the buyer',
      find: "return outcome.because === 'unfit' || outcome.because === 'used';",
      replace: 'return true;',
      grep: 'a facilitator that is down beside another does not count',
    },
    {
      name: 'limits: a known payment is refused',
      find: 'limits.wait(source) === 0 || (await charge.isKnown(payment))',
      replace: 'limits.wait(source) === 0',
      grep: 'a payment that the ledger knows is served',
    },
    {
      name: 'limits: new payments of a source over its limit are processed',
      find: 'limits.wait(source) === 0 || (await charge.isKnown(payment))',
      replace: 'true',
      grep: 'a new payment from a source that is over its limit',
    },
  ]),
];
