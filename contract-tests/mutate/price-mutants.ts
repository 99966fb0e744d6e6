import type { Mutant } from './mutants.js';

const TEST = 'price/toy-price';

/** Prices that depend on the body. */
export const priceMutants: Mutant[] = [
  {
    name: 'a payment is checked against the most that a call costs',
    file: 'src/http/paid-calls.js',
    find: 'const check = await charge.checkPayment(carrier, operation);',
    replace: 'const check = read;',
    test: TEST,
    grep: 'is what is paid and written into the ledger',
  },
  {
    name: 'a call without a price is given away at its least',
    file: 'src/contract/read-operation.js',
    find: 'const { atomic } = pricing.most;',
    replace: 'const { atomic } = pricing.least;',
    test: TEST,
    grep: 'is the most that a call costs',
  },
  {
    name: 'an unpaid call gets its challenge before its body is read',
    file: 'src/http/server.js',
    find: 'if (operation.pricing.needsBody)\n        return false;',
    replace: '',
    test: TEST,
    grep: 'is in the challenge of the call that was asked',
  },
  {
    name: 'a kind of price sells beyond its bounds',
    file: 'src/contract/quoted.js',
    find: 'if (atomic < pricing.least.atomic || atomic > pricing.most.atomic)',
    replace: 'if (false)',
    test: TEST,
    grep: 'sells nothing for a price beyond its bounds',
  },
];
