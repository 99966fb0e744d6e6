import type { Mutant } from './mutants.js';

const TEST = 'cli/canary/canary.slow';
const BUY = 'src/cli/canary/buy-as-canary.js';

/** Checks that keep the canary from paying twice, and from accepting a wrong sale. */
export const canaryMutants: readonly Mutant[] = [
  {
    name: 'the canary signs another payment while one has no answer',
    file: BUY,
    find: 'unfinished(purse, shop) ??',
    replace: '',
    test: TEST,
    grep: 'says after a failure that its payment is kept',
  },
  {
    name: 'the canary pays any receiver that the shop names',
    file: BUY,
    find: 'payTo === undefined || other === payTo',
    replace: 'true',
    test: TEST,
    grep: 'signs nothing for a shop that asks to pay someone other than PAY_TO',
  },
  {
    name: 'any transfer is accepted as that of the receipt',
    file: 'src/cli/canary/compare.js',
    find: 'fate.signature === told',
    replace: 'true',
    test: TEST,
    grep: 'a receipt with the transaction of another sale',
  },
];
