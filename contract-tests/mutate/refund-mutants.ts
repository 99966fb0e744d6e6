import type { Mutant } from './mutants.js';

const TEST = 'operator/send-refund';
const SEND = 'src/operator/send-refund.js';
const FATE = 'src/operator/refund-fate.js';
const SIGN = 'src/operator/refund-transaction.js';

/** Refunds that are sent with a key: `src/operator/`. The mutants of the ledger's rows are in `ledger-mutants.ts`. */
export const refundMutants: readonly Mutant[] = [
  {
    name: 'a second signer’s transaction is also sent',
    file: SEND,
    find: 'signed => ledger.writeDownRepayment(id, signed)',
    replace: 'async signed => ({ ...(await ledger.writeDownRepayment(id, signed)), ...signed })',
    test: TEST,
    grep: 'is sent once if several operators send it at the same time from',
  },
  {
    name: 'a refund is sent before it is stored',
    file: SEND,
    find: 'signed => ledger.writeDownRepayment(id, signed)',
    replace:
      '(signed) => chain.send(signed.evidence, signal).then(() => ledger.writeDownRepayment(id, signed))',
    test: TEST,
    grep: 'is sent once if several operators send it at the same time from',
  },
  {
    name: 'abandoned refunds are not searched for again',
    file: SEND,
    find: "state === 'failed' || state === 'cancelled'",
    replace: 'false && state',
    test: TEST,
    grep: 'that counted as lost because an RPC server lied is found again',
  },
  {
    name: 'the stored transaction is sent without a check',
    file: SEND,
    find: 'if (!pays(refund.evidence, payment, refund, sending.mint))',
    replace: 'if (false)',
    test: TEST,
    grep: 'is not sent with a transaction from the ledger that pays something else',
  },
  {
    name: 'one RPC server is enough to prove that a refund never lands',
    file: FATE,
    find: 'fates.length === servers.length && fates.every(',
    replace: 'fates.some(',
    test: TEST,
    grep: 'counts as lost only if every RPC server shows that it can never land',
  },
  {
    name: 'a refund is given up while its blockhash may live',
    file: FATE,
    find: 'if (heightOf(latest) <= position + MARGIN_BLOCKS)',
    replace: 'if (false)',
    test: TEST,
    grep: 'is sent with a new signature once the old one can never land',
  },
  {
    name: 'a refund that failed counts as landed',
    file: FATE,
    find: 'if (landed.failed)',
    replace: 'if (false)',
    test: TEST,
    grep: 'that failed on chain moves nothing',
  },
  {
    name: 'a refund goes to an account that is no longer the payer’s',
    file: SIGN,
    find: 'toAddress(data.subarray(32, 64)) !== payer',
    replace: 'payer === undefined',
    test: TEST,
    grep: 'belongs to somebody else now',
  },
  {
    name: 'a refund goes to an account of another token',
    file: SIGN,
    find: 'toAddress(data.subarray(0, 32)) !== mint',
    replace: 'mint === undefined',
    test: TEST,
    grep: 'holds another token',
  },
  {
    name: 'a refund is sent beside a link that a wallet may pay',
    file: 'src/operator/reserve-refund.js',
    find: 'if (repayment.way !== way)',
    replace: 'if (false)',
    test: TEST,
    grep: "can't be sent while a wallet may pay the same refund by a link",
  },
  {
    name: 'the policy refunds an order that is worked on again',
    file: 'src/ledger/repayments.js',
    find: 'if (!order)',
    replace: 'if (false)',
    test: 'operator/refund-owed',
    grep: 'are not refunded automatically if the operator retries them or',
  },
  {
    name: 'the policy refunds before its time',
    file: 'src/ledger/queries/orders.js',
    find: 'and finished_at <= ${p.now} - ${p.afterMs}`',
    replace: 'and finished_at <= ${p.now} + 0 * ${p.afterMs}`',
    test: 'operator/refund-owed',
    grep: 'are refunded once, after the configured time and not before',
  },
  {
    name: 'the policy refunds more than its cap of a day',
    file: 'src/ledger/repayments.js',
    find: "+ amount > dailyCap ? 'over the cap' : undefined",
    replace: "> dailyCap ? 'over the cap' : undefined",
    test: 'operator/refund-owed',
    grep: 'are refunded up to the daily cap',
  },
  {
    name: 'the policy spends what its wallet must keep',
    file: 'src/operator/refund-owed.js',
    find: '.usdc < floor + amount',
    replace: '.usdc < amount',
    test: 'operator/refund-owed',
    grep: 'wait while the refund would take the wallet below its floor',
  },
  {
    name: 'the policy repeats a refund without end',
    file: 'src/operator/refund-owed.js',
    find: 'if (failed.length >= MAX_TRIES)',
    replace: 'if (false)',
    test: 'operator/refund-owed',
    grep: 'are tried again at growing intervals',
  },
];
