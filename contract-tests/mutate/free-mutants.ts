import type { Mutant } from './mutants.js';

const FREE = 'http/free-calls';
const CALLS = 'src/http/free-calls.js';
const SIGN_INS = 'src/sign-in/sign-ins.js';

/** Calls that are free for a while. */
export const freeMutants: readonly Mutant[] = [
  {
    name: 'free: calls are not counted',
    file: 'src/ledger/queries/uses.js',
    find: 'or uses.used < ${atMost}',
    replace: 'or uses.used < ${atMost} + 1',
    test: 'ledger/uses',
    grep: 'are counted once each, even if many are taken concurrently',
  },
  {
    name: 'free: a refused call is counted',
    file: 'src/ledger/uses.js',
    find: 'yield* giveBack([...left.keys()]);',
    replace: '',
    test: 'ledger/uses',
    grep: 'are counted once each, even if many are taken concurrently',
  },
  {
    name: 'free: old counts are never deleted',
    file: 'src/ledger/queries/uses.js',
    find: 'where ends_at < ${now}',
    replace: 'where ends_at < ${now} - 10000000',
    test: 'ledger/uses',
    grep: 'are deleted after their period',
  },
  {
    name: 'free: a statement is accepted twice',
    file: CALLS,
    find: 'all: [statement, address, together]',
    replace: 'all: [address, together]',
    test: FREE,
    grep: 'are not given twice for one statement',
  },
  {
    name: 'free: the number of wallets of one address is not limited',
    file: CALLS,
    find: 'all: [statement, address, together]',
    replace: 'all: [statement, together]',
    test: FREE,
    grep: 'of made-up wallets are limited',
  },
  {
    name: 'free: all callers together are not limited',
    file: CALLS,
    find: "use('all', all)",
    replace: "use('all', 1e6)",
    test: FREE,
    grep: 'are limited for all callers together',
  },
  {
    name: 'free: a caller that hangs up is not counted',
    file: CALLS,
    find: "&& fault !== 'caller' && !gone.aborted;",
    replace: ';',
    test: FREE,
    grep: 'are used up even if the caller hangs up',
  },
  {
    name: 'free: a failed call is counted',
    file: CALLS,
    find: 'if (isFaultOfOurs(answer, call.gone))',
    replace: 'if (false)',
    test: FREE,
    grep: 'are not used up if the API behind the shop fails',
  },
  {
    name: 'free: a statement for another shop is accepted',
    file: SIGN_INS,
    find: 'if (domain !== host)',
    replace: 'if (false)',
    test: 'sign-in/sign-ins',
    grep: 'of another shop',
  },
  {
    name: 'free: an old statement is accepted',
    file: SIGN_INS,
    find: 'if (issued <= now - LIFE_MS)',
    replace: 'if (false)',
    test: 'sign-in/sign-ins',
    grep: 'older than five minutes',
  },
  {
    name: 'free: a key that anybody can sign with is accepted as a wallet',
    file: SIGN_INS,
    find: '{ zip215: false }',
    replace: '{ zip215: true }',
    test: 'sign-in/sign-ins',
    grep: 'is refused with the signature of another wallet',
  },
  {
    name: 'free: a blocked wallet gets free calls',
    file: CALLS,
    find: 'if (this.#parts.blocked.has(wallet))',
    replace: 'if (false)',
    test: FREE,
    grep: 'that the operator has blocked',
  },
  {
    name: 'free: opening the page of a paid URL is counted as a call',
    file: 'src/http/app.js',
    find: 'isForPage ? selling',
    replace: 'false ? selling',
    test: FREE,
    grep: 'opening the URL in a browser',
  },
];
