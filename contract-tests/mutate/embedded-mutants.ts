import type { Mutant } from './mutants.js';

type Change = Omit<Mutant, 'file' | 'test'>;

const of = (file: string, test: string, changes: readonly Change[]): readonly Mutant[] =>
  changes.map(change => ({ ...change, file: `src/${file}.js`, test }));

/** What the embedded facilitator refuses, and the order of signing and sending. */
const facilitator = of('facilitators/embedded-facilitator', 'facilitators/embedded-facilitator', [
  {
    name: 'more is signed than a wallet can pay',
    find: 'if (!covered)',
    replace: 'if (false)',
    grep: 'if the wallet has the money for 1,',
  },
  {
    name: 'a payment is signed without verification',
    find: "if (verdict.kind !== 'valid')",
    replace: 'if (false)',
    grep: 'verifies again when it signs',
  },
  {
    name: 'a failure on the chain counts as a settlement',
    find: 'if (!landing.failed)',
    replace: 'if (true)',
    grep: 'treats a failure on the chain as unknown',
  },
  {
    name: 'a payer may cause any number of lost fees',
    find: 'guard.lostBy(payerOf(transaction));',
    replace: '',
    grep: 'signs nothing more for a payer',
  },
  {
    name: 'the lost fees of a payer are ignored',
    find: 'guard.allows(payerOf(request.transaction))',
    replace: "guard.allows('anybody')",
    grep: 'signs nothing more for a payer',
  },
  {
    name: 'a fee payer without SOL is offered',
    find: 'if (refusal !== undefined)\n                throw new',
    replace: 'if (false)\n                throw new',
    grep: 'with too little SOL in its fee payer',
  },
  {
    name: 'an unsigned transaction is sent',
    find: 'if (signature === undefined)',
    replace: 'if (false)',
    grep: 'never sends what it has not signed',
  },
]);

const sending = of('facilitators/send-until-landed', 'facilitators/embedded-facilitator', [
  {
    name: 'a transaction is sent once',
    find: 'if (!lives)',
    replace: 'if (lives)',
    grep: 'sends a transaction again if an RPC server lost it',
  },
]);

const limits = of('facilitators/embedded-facilitator', 'facilitators/embedded-limits.slow', [
  {
    name: 'there is no limit for fees',
    find: 'if (fees)',
    replace: 'if (false)',
    grep: 'at most 20 000 lamports of priority',
  },
  {
    name: 'the fee payer may stand in an instruction',
    find: 'if (usesFeePayer(transaction))',
    replace: 'if (false)',
    grep: 'never includes an instruction that names the fee payer',
  },
]);

const guard = of('facilitators/fee-payer-guard', 'facilitators/fee-payer-guard', [
  {
    name: 'there is no minimum balance',
    find: 'if (left - fee < limits.floor) {',
    replace: 'if (false) {',
    grep: 'never lets the balance fall below the floor',
  },
  {
    name: 'the minimum balance is checked before the fee is subtracted',
    find: 'if (left - fee < limits.floor) {',
    replace: 'if (left < limits.floor) {',
    grep: 'never lets the balance fall below the floor',
  },
  {
    name: 'there is no hourly cap',
    find: '+ fee > limits.hourlyCap',
    replace: '+ fee > limits.hourlyCap * 1000n',
    grep: 'never lets the balance fall below the floor',
  },
  {
    name: 'signed transactions do not count against the cap',
    find: 'this.#spentWithinHour() + this.#reserved() + fee',
    replace: 'this.#spentWithinHour() + fee',
    grep: 'counts what was sent against the hourly cap',
  },
  {
    name: 'the hourly cap counts only the last minute',
    find: 'if (minute < oldest)',
    replace: 'if (minute < oldest + 59)',
    grep: 'never lets the balance fall below the floor',
  },
  {
    name: 'transactions that had not landed count as part of the last balance',
    find: 'landedAt !== undefined && landedAt < readAt',
    replace: 'true',
    grep: 'counts a fee only until',
  },
]);

const funds = of('facilitators/funds-in-flight', 'facilitators/funds-in-flight', [
  {
    name: 'a transfer that lands between two reads counts twice',
    find: 'if (now >= ahead)',
    replace: 'if (true)',
    grep: 'even if earlier ones land',
  },
]);

const directory = of('facilitators/facilitators', 'sale/charge-directory', [
  {
    name: 'work begins before the payment to a directory’s facilitator is verified',
    find: '!member.forDirectory && member.health.healthy',
    replace: 'member.health.healthy',
    grep: 'is verified before its work begins',
  },
  {
    name: 'the directory’s facilitator gets all settlements',
    find: 'filter(({ forDirectory }) => !forDirectory)',
    replace: 'filter(() => true)',
    grep: 'down together with the usual one',
  },
  {
    name: 'a directory’s facilitator that is down keeps its buyer waiting',
    find: "verdict.kind === 'refused' || this.choice === undefined",
    replace: 'true',
    grep: 'if it is down, one buyer gets an error',
  },
]);

const catalogue = of('facilitators/directory-offers', 'sale/charge-directory', [
  {
    name: 'a directory is offered to every caller',
    find: 'if (count >= MAX_OFFERS)',
    replace: 'if (false)',
    grep: 'after three calls that nobody paid for',
  },
  {
    name: 'a directory is offered while a payment for it is under way',
    find: 'directory.rests.set(',
    replace: 'new Map().set(',
    grep: 'while it is working on a payment',
  },
  {
    name: 'a directory that failed is offered for other operations',
    find: 'now < restsUntil || ',
    replace: '',
    grep: 'if it is down, one buyer gets an error',
  },
  {
    name: 'a fee payer is offered that is not in the ledger',
    find: 'feePayer === undefined || feePayer !== recorded?.feePayer',
    replace: 'false',
    grep: 'its fee payer is not offered unless the ledger has recorded it',
  },
]);

export const embeddedMutants: readonly Mutant[] = [
  ...facilitator,
  ...sending,
  ...limits,
  ...guard,
  ...funds,
  ...directory,
  ...catalogue,
];
