import { callerMutants } from './caller-mutants.js';
import type { Mutant } from './mutants.js';

type Change = Omit<Mutant, 'test' | 'file'>;

function of(module: string, test: string, changes: readonly Change[]): Mutant[] {
  return changes.map(change => ({ ...change, file: `src/${module}.js`, test }));
}

const judged = of('sale/next-step', 'sale/next-step', [
  {
    name: 'an alias is sold',
    find: "if (!row || (row.state === 'claimed' && row.aliasOf === null && !row.leased))",
    replace: "if (!row || (row.state === 'claimed' && !row.leased))",
    grep: 'an alias never buys the call itself',
  },
  {
    name: 'a claim that another run works on is sold',
    find: "row.state === 'claimed' && row.aliasOf === null && !row.leased)",
    replace: "row.state === 'claimed' && row.aliasOf === null)",
    grep: 'claimed and worked on: for the same call',
  },
  {
    name: 'a payment may buy a second call',
    find: 'if (!isSameCall(row, asked))\n        return over(otherCall(',
    replace: 'if (false)\n        return over(otherCall(',
    grep: 'delivered: for another body or operation',
  },
  {
    name: 'a payment with an identifier is redeemed without it',
    find: 'if (row.identifier !== null && ![asked.identifier, asked.challenge].includes(row.identifier))',
    replace:
      'if (row.identifier !== null && asked.identifier !== null && ![asked.identifier, asked.challenge].includes(row.identifier))',
    grep: 'delivered: a payment that was sent with a payment-identifier',
  },
  {
    name: 'anyone may redeem through an alias',
    find: 'next(sold, sold !== row, now)',
    replace: 'next(sold, false, now)',
    grep: 'delivered: an alias of the payment',
  },
  {
    name: 'a pending settlement is requested again',
    find: "kind: row.leased ? 'wait' : 'ask'",
    replace: "kind: 'ask'",
    grep: 'settling and worked on: for the same call',
  },
  {
    name: 'an order is worked on as a call',
    find: "row.flow === 'upfront' ? 'order' : ",
    replace: '',
    grep: 'owed as an order: for the same call',
  },
  {
    name: 'an expired answer counts as available',
    find: "isExpired(row, now) ? over(noLongerKept()) : { kind: 'answer', row, proven }",
    replace: "{ kind: 'answer', row, proven }",
    grep: 'delivered, answer expired: for the same call',
  },
  {
    name: 'an identifier that was used for another call is accepted',
    find: 'if (!isSameCall(row, asked)) {',
    replace: 'if (false) {',
    grep: 'for another call, or once the answer is gone',
  },
  {
    name: 'an alias is reported as not charged',
    find: "if (!row || (row.state === 'claimed' && row.aliasOf === null)) {",
    replace: "if (!row || row.state === 'claimed') {",
    grep: 'what the answer to an invalid body says about the money',
  },
]);

const worked = of('sale/work', 'sale/{callers,charge-*}', [
  {
    name: 'new payers share no budget of work',
    find: 'if (!deps.newPayersWork.take(source))',
    replace: 'if (false)',
    grep: 'new payers who waited for a slow verify share one burst of work',
  },
  {
    name: 'work that takes too long is not counted against the payer',
    find: 'if (stop.signal.reason instanceof TooLate)',
    replace: 'if (false)',
    grep: 'work that takes too long costs a payer its standing',
  },
  {
    name: 'abandoned work is not counted',
    find: "run.working?.unsold('caller');",
    replace: '',
    grep: 'a payer who hangs up after work was done is verified first from then on',
  },
  {
    name: 'unsold work is not counted',
    find: "run.working?.unsold(answer.fault ?? (answer.status === 400 ? 'caller' : 'backend'));",
    replace: '',
    grep: 'a wallet whose calls all end as 400',
  },
]);

const tooOld = of('rails/solana/solana-rail', 'sale/charge-*', [
  {
    name: 'work begins on a blockhash that dies before it is done',
    find: 'left !== undefined && left < WORK_BLOCKS',
    replace: 'left !== undefined && left < WORK_BLOCKS - 1',
    grep: 'a new payer whose blockhash expires before the work would be done gets a 402 without work',
  },
]);

const verified = of('sale/work', 'sale/charge-*', [
  {
    name: 'failed work is settled',
    find: 'return isSuccess(answer) && !abandoned.aborted',
    replace: 'return !abandoned.aborted',
    grep: 'work that ends with',
  },
]);

const asked = of('sale/verification', 'sale/charge-*', [
  {
    name: 'work for unknown payers begins before verify',
    find: 'if (!payerKnown || number !== 1',
    replace: 'if (number !== 1',
    grep: 'an unknown payer is verified first',
  },
  {
    name: 'a payment that verify refused continues',
    find: "if (verdict.kind !== 'valid')",
    replace: "if (verdict.kind === 'unavailable')",
    grep: 'a payment that verify refuses gets a 402',
  },
  {
    name: 'an unavailable verify counts as a success',
    find: "if (verdict.kind !== 'valid')",
    replace: "if (verdict.kind === 'refused')",
    grep: 'at verify, the payment gets a 503 and stays untouched however often it is sent',
  },
  {
    name: 'a refused payment keeps its row',
    find: 'await deleteClaim(deps, run)',
    replace: '(await endRun(deps, run, undefined, false), true)',
    grep: 'a wallet that was refused a call forty times can buy it as soon',
  },
  {
    name: 'a refused payment is answered before its row is deleted',
    find: 'await deleteClaim(deps, run)',
    replace: 'deleteClaim(deps, run)',
    grep: 'and leave nothing behind',
  },
  {
    name: 'a payer that verify refused stays known',
    find: 'if (run.payerKnown)\n            await distrust(deps, run);',
    replace: '',
    grep: 'a payer that was refused counts as unknown again',
  },
]);

const outrun = of('sale/verification', 'sale/callers', [
  {
    name: 'a payment that meanwhile redeems another one is refused by verify',
    find: 'deleted === false',
    replace: 'false',
    grep: 'verify refuses after another one has bought its call',
  },
]);

const settled = [
  ...of('sale/settlement', 'sale/charge-*', [
    {
      name: 'the answer is not saved before the settlement is requested',
      find: '...(answer ? { answer } : {}), ',
      replace: '',
      grep: 'the answer is saved before the facilitator is asked to settle',
    },
    {
      name: 'what the facilitator signed is not stored before it is sent',
      find: ', ...signed?.stored }',
      replace: ' }',
      grep: 'signature and bytes are in the ledger before anything is sent',
    },
    {
      name: 'the buyer’s transaction is sent in place of the signed one',
      find: 'ask(deps, run, signed?.stored)',
      replace: 'ask(deps, run)',
      grep: 'signature and bytes are in the ledger before anything is sent',
    },
    {
      name: 'an unknown settlement is released',
      find: "if (settled.kind === 'unknown') {",
      replace: 'if (false) {',
      grep: 'every resend gets a 503 with a receipt',
    },
    {
      name: 'a refusal that could not be recorded counts',
      find: 'released ? refusedSettlement(paid, rail.explain(reason), reason) : pending(paid)',
      replace: 'refusedSettlement(paid, rail.explain(reason), reason)',
      grep: 'a payment that is refused after somebody else took it over',
    },
  ]),
  ...of('facilitators/facilitators', 'sale/charge-*', [
    {
      name: 'a facilitator that throws while it settles has refused',
      find: "return { kind: 'unknown', reason, signature: '', ...(trouble && { trouble }) };",
      replace: "return { kind: 'refused', reason };",
      grep: 'after a facilitator that throws, every resend gets a 503',
    },
  ]),
  ...of('sale/settlement', 'sale/{callers,charge-*}', [
    {
      name: 'a refusal of the second settle request counts',
      find: "if (settled.kind !== 'settled')\n            return pending(row);",
      replace:
        "if (settled.kind === 'refused')\n            await ledger.release(id, row.claim, settled.reason);",
      grep: 'a refusal of the second request proves nothing',
    },
    {
      name: 'an unknown settlement counts as the fault of the payer',
      find: "settled.kind === 'unknown' ? 'backend' : 'caller'",
      replace: "'caller'",
      grep: 'settlements of unknown outcome each count as only a quarter',
    },
    {
      name: 'the amount of a signed transaction that is not sent stays reserved',
      find: 'signed?.withdraw();',
      replace: '',
      grep: 'a signed transaction is withdrawn if the buyer hung up before it was stored',
    },
    {
      name: 'a payer stays known after an unknown settlement',
      find: 'run.working?.unsold(fault);\n    await distrust(deps, run);',
      replace: 'run.working?.unsold(fault);',
      grep: 'a settlement of unknown outcome costs a payer its standing',
    },
  ]),
  ...of('sale/settlement', 'main/paid-promises', [
    {
      name: 'a false report of a settlement changes nothing',
      find: 'if (rail.isDoubted(checked) && ',
      replace: 'if (false && ',
      grep: 'after a false report, the answer waits for the chain',
    },
    {
      name: 'a success of the second settle request is believed without a check',
      find: 'if (!(await isSeen(deps, id, settlement)))',
      replace: 'if (false)',
      grep: 'a success reported for the second settle request counts only once',
    },
  ]),
  ...of('sale/flows', 'main/paid-promises', [
    {
      name: 'a failed rerun of owed work is delivered',
      find: 'if (!isSuccess(answer))',
      replace: 'if (false)',
      grep: 'work that is repeated and fails delivers nothing',
    },
    {
      name: 'a move to owed that changed no row is ignored',
      find: 'if (!owed)',
      replace: 'if (!seen)',
      grep: 'an order that could not be marked as owed is unresolved',
    },
    {
      name: 'an order begins before its money was seen',
      find: 'const owed = seen && ',
      replace: 'const owed = ',
      grep: 'an order whose transfer was not seen is unresolved',
    },
  ]),
  ...of('facilitators/http-facilitator', 'facilitators/facilitator', [
    {
      name: 'any refusal by settle is final',
      find: ' && REFUSALS_BEFORE_SIGNING.has(reason)',
      replace: '',
      grep: 'on an unknown reason',
    },
    {
      name: 'a wallet that the transfer itself emptied counts as empty before it',
      find: 'REFUSALS_OF_LANDED_TRANSFERS.has(reason)',
      replace: "(reason !== 'insufficient_funds' && REFUSALS_OF_LANDED_TRANSFERS.has(reason))",
      grep: 'an empty wallet is a refusal before signing',
    },
    {
      name: 'a refusal with any status is final',
      find: 'if (ok && json.success === false &&',
      replace: 'if (json.success === false &&',
      grep: 'on a listed reason with 400',
    },
    {
      name: 'a valid verify is believed with any status',
      find: 'json.isValid === true && status === 200',
      replace: 'json.isValid === true',
      grep: 'is valid on status 200 only',
    },
  ]),
];

const down = of('sale/seller', 'sale/charge-outage', [
  {
    name: 'a facilitator that is down gets requests',
    find: 'if (outage)',
    replace: 'if (false)',
    grep: 'known to be down',
  },
]);

const downLater = of('sale/settlement', 'sale/charge-outage', [
  {
    name: 'a facilitator that went down during the work gets a settle request',
    find: 'if (outage)',
    replace: 'if (false)',
    grep: 'if it went down during the work',
  },
]);

const spared = of('sale/verification', 'sale/charge-known-payer', [
  {
    name: 'a payment is settled unverified although the facilitator was in trouble',
    find: 'return rail.isHealthy(call.payment.checked);',
    replace: 'return true;',
    grep: 'after a failure of the facilitator, verify comes first',
  },
  {
    name: 'a second run is settled unverified',
    find: ' || number !== 1',
    replace: '',
    grep: 'a second run of a payment is verified',
  },
  {
    name: 'any number of runs is settled unverified',
    find: 'return started !== undefined;',
    replace: 'return true;',
    grep: 'a payer has at most four unverified runs at a time',
  },
]);

const bounded = of('admission/unsold-work', 'sale/charge-known-payer', [
  {
    name: 'long unverified work counts as short',
    find: 'weightOf(now - began)',
    replace: '1',
    grep: 'a run that has taken more than a second counts double',
  },
]);

const released = of('sale/flows', 'sale/charge-known-payer', [
  {
    name: 'an unverified run never ends',
    find: 'run.unverified?.end();',
    replace: '',
    grep: 'a payer has at most four unverified runs at a time',
  },
]);

const denied = of('sale/settlement', 'sale/charge-known-payer', [
  {
    name: 'a transfer whose simulation fails is not searched for',
    find: "settled.kind !== 'refused' || !settled.mayHaveLanded",
    replace: 'true',
    grep: 'the buyer gets the answer if the transfer has landed and only a',
  },
  {
    name: 'a transfer that the chain does not rule out is refused',
    find: "sighting.kind === 'not-seen'",
    replace: 'true',
    grep: 'the buyer gets a 503, and the payment stays unresolved',
  },
]);

const failedTransfer = of('rails/solana/transfer-fates', 'sale/charge-known-payer', [
  {
    name: 'a transfer that failed is final before it is finalized',
    find: "hasLanded(finding) ? { kind: 'seen', settlement: finding.signature } : { kind: 'unclear' }",
    replace: "{ kind: hasLanded(finding) ? 'seen' : 'not-seen', settlement: finding.signature }",
    grep: 'shows a failed transfer',
  },
]);

const several = of('facilitators/facilitators', 'facilitators/facilitators', [
  {
    name: 'every payment goes to the first facilitator',
    find: 'return this.#owners.get(feePayer);',
    replace: 'return this.#members[0];',
    grep: 'a payment goes to the facilitator whose fee payer it names',
  },
  {
    name: 'a record of the second facilitator counts for the first',
    find: 'by === undefined ? this.#members[0]',
    replace: 'true ? this.#members[0]',
    grep: 'a payment goes to the facilitator whose fee payer it names',
  },
  {
    name: 'challenges name a facilitator that is down',
    find: 'feePayer !== undefined && health.available',
    replace: 'feePayer !== undefined',
    grep: 'new challenges name the next facilitator while the first is down',
  },
  {
    name: 'another facilitator is named only once the limit is reached',
    find: '!health.nearLimit',
    replace: 'true',
    grep: 'new challenges name the next facilitator when the first is near its limit',
  },
]);

const answered = [
  ...of('http/run-handler', 'main/paid-promises', [
    {
      name: 'answers are not checked against the contract',
      find: 'routes.checkReply(route, reply) ?? headerFault(reply.status, reply.headers)',
      replace: 'headerFault(reply.status, reply.headers)',
      grep: 'a body without what is required: 502',
    },
    {
      name: 'headers are not checked before the answer is sold',
      find: 'routes.checkReply(route, reply) ?? headerFault(reply.status, reply.headers)',
      replace: 'routes.checkReply(route, reply)',
      grep: 'a header that can not be sent: 502',
    },
  ]),
  ...of('sale/outcome', 'sale/{callers,charge-*}', [
    {
      name: 'a receipt without its amount',
      find: 'amount: amount.toString(), ...repaidOf(paid)',
      replace: "amount: '0'",
      grep: 'a delivered payment gets the same answer',
    },
  ]),
  ...of('sale/outcome', 'sale/charge-*', [
    {
      name: 'an unknown settlement gets the receipt of a success',
      find: "receipt: failed(paid, 'settlement_pending')",
      replace: 'receipt: success(paid)',
      grep: 'every resend gets a 503 with a receipt',
    },
  ]),
  ...of('sale/outcome', 'sale/charge-*', [
    {
      name: 'answers with an identifier are kept for ten minutes',
      find: 'identifier !== null && bytes < IDENTIFIED_ANSWER_BYTES',
      replace: 'false',
      grep: 'an answer of less than 256 KB is kept for 24 hours',
    },
    {
      name: 'large answers are kept for a day',
      find: 'identifier !== null && bytes < IDENTIFIED_ANSWER_BYTES',
      replace: 'identifier !== null',
      grep: 'an answer of less than 256 KB is kept for 24 hours',
    },
  ]),
];

export const paymentMutants: readonly Mutant[] = [
  ...judged,
  ...worked,
  ...tooOld,
  ...verified,
  ...asked,
  ...outrun,
  ...several,
  ...down,
  ...downLater,
  ...spared,
  ...bounded,
  ...released,
  ...denied,
  ...failedTransfer,
  ...settled,
  ...answered,
  ...callerMutants,
  {
    name: 'a settlement is requested again with the present receiver',
    file: 'src/facilitators/facilitator-requests.js',
    find: 'this.#receivers.get(destinationAccountOf(evidence)) ?? this.#terms.payTo',
    replace: 'this.#terms.payTo',
    test: 'sale/charge-price-change',
    grep: 'with the receiver that was paid',
  },
  {
    name: 'an error of a check does not stop a start',
    file: 'src/checks/preflight.js',
    find: 'const stops = isSandbox ?',
    replace: 'const stops = true ?',
    test: 'checks/preflight',
    grep: 'prevents startup outside the sandbox on any error',
  },
  {
    name: 'a receiver whose account has another owner is accepted',
    file: 'src/checks/chain-checks.js',
    find: 'if (owner !== payTo)',
    replace: 'if (false)',
    test: 'main/mainnet',
    grep: 'a receiver whose account has another owner is refused at startup',
  },
  {
    name: 'a frozen receiver is accepted',
    file: 'src/checks/chain-checks.js',
    find: 'if (data[TOKEN_ACCOUNT.state] === FROZEN)',
    replace: 'if (false)',
    test: 'main/mainnet',
    grep: 'a receiver whose USDC is frozen is refused at startup',
  },
];
