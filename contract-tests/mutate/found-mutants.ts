import type { Mutant } from './mutants.js';

const FOUND = { test: 'ledger/found-payments' };
const SALE = { test: 'sale/found-payments', file: 'src/sale/paid-request.js' };

/** Payments that the ledger lost and that were found on chain. */
export const foundMutants: readonly Mutant[] = [
  {
    ...FOUND,
    name: 'a restored ledger opens for servers',
    file: 'src/ledger/store.js',
    find: 'refuseRestored(meta);',
    replace: '',
    grep: 'be opened by a server until somebody has looked',
  },
  {
    ...FOUND,
    name: 'a found payment is taken from the server that works on it',
    file: 'src/ledger/queries/found-payments.js',
    find: 'and ${MAY_OWE} and lease_until <= ${p.now} and',
    replace: 'and ${MAY_OWE} and',
    grep: 'stays with the server that is working on it',
  },
  {
    ...FOUND,
    name: 'the worker of a found payment is not fenced off',
    file: 'src/ledger/queries/found-payments.js',
    find: 'claim = claim + 1,',
    replace: '',
    grep: 'stays with the server that is working on it',
  },
  {
    ...FOUND,
    name: 'a found payment gets two calls',
    file: 'src/ledger/queries/found-payments.js',
    find: "state = 'owed' and operation = ${FOUND_ON_CHAIN} returning id",
    replace: "state = 'owed' returning id",
    grep: 'is given to only one call',
  },
  {
    ...FOUND,
    name: 'a found payment that a server can resolve loses its answer',
    file: 'src/ledger/found-payments.js',
    find: "row.state === 'settling' && row.claim_slot < slot",
    replace: 'false',
    grep: 'is left to the server that is settling it',
  },
  {
    ...FOUND,
    name: 'a found payment takes the identifier of another one',
    file: 'src/ledger/found-payments.js',
    find: 'other.length > 0 ? null : identifier',
    replace: 'identifier',
    grep: 'takes no payment-identifier',
  },
  {
    ...SALE,
    name: 'a found payment buys what costs more',
    find: 'if (amount < operation.price.atomic)',
    replace: 'if (amount < 0n)',
    grep: 'buys nothing that costs more',
  },
];
