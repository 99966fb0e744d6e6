import type { Mutant } from './mutants.js';

type Change = Omit<Mutant, 'file' | 'test'>;

/** `src/ledger/settle.ts`: whether a payment is settled, redeems an earlier one, or waits. */
const CHANGES: readonly Change[] = [
  {
    name: 'the move to settling does not check for a waiting caller',
    find: '!own || !awaited || !isOurs(own, fence)',
    replace: '!own || !isOurs(own, fence)',
    grep: 'is closed to a caller that left or lost its claim',
  },
  {
    name: 'the move to settling does not check the claim',
    find: '!own || !awaited || !isOurs(own, fence)',
    replace: '!own || !awaited',
    grep: 'is closed to a caller that left or lost its claim',
  },
  {
    name: 'a refused move to settling keeps the lease',
    find: 'yield* execute(endLease(fence));',
    replace: '',
    grep: 'requests no money once its caller',
  },
  {
    name: 'an identifier that was paid for is paid for again',
    find: '(yield* execute(identifierPaid({ id }))).length > 0',
    replace: 'false',
    grep: 'is closed to a payment if another one with the same identifier',
  },
  {
    name: 'a call that had two callers also counts as another sale',
    find: 'return row.callers === 1 && row.caller_until > moment;',
    replace: 'return row.caller_until > moment;',
    grep: 'also gets the answer of an equal payment that was sent twice',
  },
  {
    name: 'a call whose caller is gone also counts as another sale',
    find: 'return row.callers === 1 && row.caller_until > moment;',
    replace: 'return row.callers === 1;',
    grep: 'redeems an equal one that is',
  },
  {
    name: 'no call counts as another sale',
    find: 'return row.callers === 1 && row.caller_until > moment;',
    replace: 'return false;',
    grep: 'is a sale of its own once its caller was seen again after the other payment came',
  },
  {
    name: 'an equal payment’s caller is not waited for',
    find: 'if (unseen.length > 0)',
    replace: 'if (false)',
    grep: 'counts as gone if it has not been seen for too long',
  },
  {
    name: 'an earlier renewal counts as a present caller',
    find: 'own.created_at + CALLER_LIVE_MS + HANG_UP_MARGIN_MS',
    replace: 'own.created_at',
    grep: 'counts as gone if it has not been seen for too long',
  },
  {
    name: 'an answer written to an older caller counts as written',
    find: 'row.written_to !== row.callers || ',
    replace: '',
    grep: 'redeems one that a stranger marked as unwritten',
  },
  {
    name: 'an answer written after a payment arrived counts as its sale',
    find: 'return row.callers === 1 || row.written_at <= own.created_at;',
    replace: 'return true;',
    grep: 'an answer went to the last of several callers',
  },
  {
    name: 'the newest equal payment is redeemed, not the oldest',
    find: 'return a.created_at - b.created_at ||',
    replace: 'return b.created_at - a.created_at ||',
    grep: 'redeems the oldest of several',
  },
  {
    name: 'an equal payment that may have been paid is not redeemed',
    find: 'if (target)',
    replace: 'if (false)',
    grep: 'redeems an equal one that is',
  },
  {
    name: 'the check before the work settles',
    find: 'if (all.sent.attachOnly)',
    replace: 'if (false)',
    grep: 'checks before its work whether it can redeem another',
  },
  {
    name: 'a payment that is not settled because the store is full binds equal ones',
    find: "if (settled.kind !== 'settling')",
    replace: 'if (false)',
    grep: 'is left as it was if the answer store is too full',
  },
  {
    name: 'settling binds no equal claim',
    find: 'yield* execute(bind({ id: other.id, alias_of: own.id }));',
    replace: 'void id;',
    grep: 'binds every equal claim that is not a sale of its own',
  },
  {
    name: 'a payment that redeems another binds only itself',
    find: 'for (const { id } of [own, ...claimed])',
    replace: 'for (const { id } of [own])',
    grep: 'binds equal claims to the payment that it redeems itself',
  },
  {
    name: 'one sale has any number of aliases',
    find: 'if ((count?.aliases ?? 0) + claimed.length + 1 > MAX_ALIASES)',
    replace: 'if (false)',
    grep: 'changes nothing if the earlier sale has 32 aliases',
  },
  {
    name: 'the claims that are bound with a payment do not count as aliases',
    find: '(count?.aliases ?? 0) + claimed.length + 1 > MAX_ALIASES',
    replace: '(count?.aliases ?? 0) + 1 > MAX_ALIASES',
    grep: 'also counts the claims that it would bind',
  },
  {
    name: 'one of the equal payments is overlooked',
    find: 'const limit = MAX_EQUAL + 1;',
    replace: 'const limit = MAX_EQUAL;',
    grep: 'does not settle if there are 512 equal payments',
  },
  {
    name: 'settling binds any number of claims',
    find: 'if (claimed.length > MAX_ALIASES)',
    replace: 'if (false)',
    grep: 'does not settle if it would bind 33 claims',
  },
  {
    name: 'equal payments beyond the read limit are ignored',
    find: 'if (rows.length > MAX_EQUAL)',
    replace: 'if (false)',
    grep: 'does not settle if there are 512 equal payments',
  },
  {
    name: 'an older caller moves to the redeemed payment',
    find: 'const goesOver = sent.newestLocal === own.callers;',
    replace: 'const goesOver = true;',
    grep: "leaves its caller behind if the caller's newest request waits elsewhere",
  },
  {
    name: 'the answer is not kept with the move',
    find: 'yield* (binds ? execute : finish)(saveAnswer({ ...answerRow(fence.id, answer), now: context.now() }));',
    replace: '',
    grep: 'stores the answer together with the move',
  },
];

export const settleMutants: readonly Mutant[] = [
  ...CHANGES.map(change => ({
    ...change,
    file: 'src/ledger/settle.js',
    test: 'ledger/{callers,equal-payments}',
  })),
  {
    name: 'a claim may be made for a sale that has 32 aliases',
    file: 'src/ledger/claim.js',
    find: 'count.aliases >= MAX_ALIASES',
    replace: 'count.aliases > MAX_ALIASES',
    test: 'ledger/equal-payments',
    grep: 'changes nothing if the earlier sale has 32 aliases',
  },
];
