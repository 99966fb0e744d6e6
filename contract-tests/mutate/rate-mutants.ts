import type { Mutant } from './mutants.js';

const of = (module: string, changes: readonly Omit<Mutant, 'file' | 'test'>[]): Mutant[] =>
  changes.map(change => ({
    ...change,
    file: `src/rails/solana/${module}.js`,
    test: 'rails/solana/chain-heights',
  }));

/** The limit for how fast the chain's height may rise. */
export const rateMutants: readonly Mutant[] = [
  ...of('chain-rate', [
    {
      name: 'rate: the fastest of two servers is believed',
      find: 'Math.floor((sorted.length - 1) / 2)',
      replace: 'Math.floor(sorted.length / 2)',
      grep: 'is not affected by one of two servers',
    },
    {
      name: 'rate: there is no limit',
      find: 'Math.min(MOST_BLOCKS_PER_SECOND, Math.round(rate * 10) / 10)',
      replace: 'Math.round(rate * 10) / 10',
      grep: 'never rises by more than ten blocks a second',
    },
    {
      name: 'rate: a server that does not answer has no vote',
      find: 'votes.length > 0 ? lowerMedian(votes) : allowed',
      replace:
        'lowerMedian(votes.filter(vote => vote !== allowed).concat(votes.every(vote => vote === allowed) ? allowed : []))',
      grep: 'is not taken from one server only because the other does not answer',
    },
    {
      name: 'rate: the first readings are believed',
      find: 'readings.rates.length < MIN_RATES',
      replace: 'readings.rates.length < 1',
      grep: 'does not follow a rate that was read only twice',
    },
    {
      name: 'rate: the last reading is believed',
      find: 'lowerMedian(readings.rates) * MARGIN',
      replace: 'Math.max(...readings.rates) * MARGIN',
      grep: 'is not affected by a single huge height',
    },
  ]),
  ...of('chain-heights', [
    {
      name: 'rate: it is not stored',
      find: 'await this.#ledger.setMeta(RATE_KEY, String(rate));',
      replace: '',
      grep: 'may rise by ten minutes of 200 ms slots while the server is stopped',
    },
    {
      name: 'rate: it is not used',
      find: 'Math.max(this.#least, this.#measured)',
      replace: 'this.#least',
      grep: 'on a chain whose rate is measured may rise',
    },
  ]),
  {
    name: 'rate: it is never measured',
    file: 'src/rails/solana/refresh-hints.js',
    find: 'this.#every(MEASURE_INTERVAL_MS, () => this.#measureChain());',
    replace: '',
    test: 'rails/solana/refresh-hints',
    grep: 'measures the chain once a minute',
  },
];
