import type { Mutant } from './mutants.js';

const TEST = 'price/toy-price';
const TIERED = 'price/tiered';
const OFFERED = 'price/offered-prices';
const BY_HANDLER = 'price/handler-price';

/** Prices that depend on the body. */
export const priceMutants: Mutant[] = [
  {
    name: 'a price that was offered long ago is honoured',
    file: 'src/ledger/offered-prices.js',
    find: 'const HONOURED_MS = 5 * 60_000;',
    replace: 'const HONOURED_MS = 50 * 60_000;',
    test: OFFERED,
    grep: 'is no longer accepted after five minutes',
  },
  {
    name: 'the refusal of a payment asks for an earlier price',
    file: 'src/http/paid-calls.js',
    find: 'return refused ? { ...result, operation: call.operation } : result;',
    replace: 'return result;',
    test: OFFERED,
    grep: 'leads to a 402 with the current price if its payment is refused',
  },
  {
    name: 'a payment is checked against the greatest price of a call',
    file: 'src/http/paid-calls.js',
    find: 'const check = await charge.checkPayment(carrier, operation, source);',
    replace: 'const check = read;',
    test: TEST,
    grep: 'is paid and written to the ledger over HTTP',
  },
  {
    name: 'a call without a price costs the least',
    file: 'src/contract/read-operation.js',
    find: 'const { atomic } = pricing.most;',
    replace: 'const { atomic } = pricing.least;',
    test: TEST,
    grep: 'is the highest one in the challenge of a call without a body',
  },
  {
    name: 'an unpaid call gets its challenge before its body is read',
    file: 'src/http/server.js',
    find: 'operation.pricing.needsBody || operation.free',
    replace: 'operation.free',
    test: TEST,
    grep: 'is in the challenge, in body and header',
  },
  {
    name: 'a kind of price sells beyond its bounds',
    file: 'src/contract/quoted.js',
    find: 'if (atomic < pricing.least.atomic || atomic > pricing.most.atomic)',
    replace: 'if (false)',
    test: TEST,
    grep: 'sells nothing if it is beyond the bounds',
  },
  {
    name: 'prices are rounded down',
    file: 'src/price/tiered.js',
    find: 'cost.atomic + divisor - 1n) / divisor',
    replace: 'cost.atomic) / divisor',
    test: TIERED,
    grep: 'is rounded up to a millionth',
  },
  {
    name: 'a price per unit exceeds its maximum',
    file: 'src/price/tiered.js',
    find: 'atomic > most.atomic ? most.atomic : atomic',
    replace: 'atomic',
    test: TIERED,
    grep: 'is rounded up to a millionth',
  },
  {
    name: 'a call without the value costs the least',
    file: 'src/price/tiered.js',
    find: 'return size ? costs(size) : most;',
    replace: 'return size ? costs(size) : least;',
    test: TIERED,
    grep: 'is the highest one for a call without the value',
  },
  {
    name: 'the function of a handler changes what is sold',
    file: 'src/price/of-handler.js',
    find: 'own(structuredClone(asked))',
    replace: 'own(asked)',
    test: BY_HANDLER,
    grep: "can't be used to change the body of the call",
  },
  {
    name: 'a paid answer is withheld while its price is unknown',
    file: 'src/http/paid-calls.js',
    find: "if (!(await parts.charge.isKnown(payment)))\n        return { kind: 'unpriced', answer: unsold.answer };",
    replace: "return { kind: 'unpriced', answer: unsold.answer };",
    test: BY_HANDLER,
    grep: 'delivers what was paid for',
  },
];
