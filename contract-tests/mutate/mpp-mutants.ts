import type { Mutant } from './mutants.js';

type Change = Omit<Mutant, 'file' | 'test'>;

const of = (file: string, test: string, changes: readonly Change[]): readonly Mutant[] =>
  changes.map(change => ({ ...change, file: `src/${file}.js`, test: `methods/mpp/${test}` }));

/** Checks that an MPP credential answers a challenge of this server. */
const answered = of('methods/mpp/answered', 'credentials', [
  {
    name: 'anybody may make challenges',
    find: 'if (!ids.made(id, slots))',
    replace: 'if (false)',
    grep: 'with another expiry',
  },
  {
    name: 'a challenge of another shop is accepted',
    find: 'if (slots.realm !== realm)',
    replace: 'if (false)',
    grep: 'of another shop with the same secret',
  },
  {
    name: 'a challenge of any intent is accepted',
    find: "slots.method !== 'solana' || slots.intent !== 'charge'",
    replace: 'false',
    grep: 'of an intent that is not offered',
  },
  {
    name: 'the challenge of one operation buys another',
    find: 'if (slots.opaque !== encoded(opaqueOf(operation)))',
    replace: 'if (false)',
    grep: 'challenge of another operation',
  },
  {
    name: 'a challenge at another price is accepted',
    find: 'if (request.amount !== operation.price.atomic.toString())',
    replace: 'if (false)',
    grep: 'at another price',
  },
  {
    name: 'a challenge for another receiver is accepted',
    find: 'request.currency !== asset || request.recipient !== payTo',
    replace: 'false',
    grep: 'to a former receiver',
  },
  {
    name: 'challenges never expire',
    find: "if (!(Date.parse(slots.expires ?? '') > now))",
    replace: 'if (false)',
    grep: 'that have expired',
  },
]);

const bound = of('rails/solana/transaction', 'credentials', [
  {
    name: 'any memo answers any challenge',
    find: 'memo !== undefined && (',
    replace: 'false && (',
    grep: 'with another memo than the externalId',
  },
  {
    name: 'any fee payer of an MPP payment is accepted',
    find: 'feePayer !== undefined && nameOf(keys[0]) !== feePayer',
    replace: 'false',
    grep: 'with another fee payer than the challenge names',
  },
]);

const method = of('methods/mpp/mpp', 'credentials', [
  {
    name: 'an unsold answer gets a receipt',
    find: '!success || !sold ||',
    replace: '!success ||',
    grep: 'get a receipt only if the call was sold',
  },
]);

const sender = of('facilitators/sender', 'paid', [
  {
    name: 'work is done for a payment that the chain would refuse',
    find: 'if (error === null)',
    replace: 'if (true)',
    grep: 'does no work for a wallet without the money',
  },
]);

/** Transfers that their buyers made before the request. */
const made: readonly Mutant[] = [
  ...of('facilitators/sender', 'made', [
    {
      name: 'a payment that its buyer has already sent is refused',
      find: 'if (landed && !landed.failed)',
      replace: 'if (false)',
      grep: 'buy once, with a receipt, and pass the later audit',
    },
    {
      name: 'a transfer that failed counts as made',
      find: 'if (landed && !landed.failed)',
      replace: 'if (landed)',
      grep: 'buy nothing if the transfer failed on the chain',
    },
  ]),
  ...of('sale/settlement', 'made', [
    {
      name: 'two transfers for one call are one sale',
      find: 'payment.identifier === null && sent.movedAfter === undefined',
      replace: 'payment.identifier === null',
      grep: 'are two sales if there are two of them for one call',
    },
  ]),
  ...of('ledger/queries/transitions', 'made', [
    {
      name: 'a transfer that was made before its claim does not count',
      find: 'claim_slot = coalesce(${p.moved_after}, claim_slot)',
      replace: 'claim_slot = coalesce(claim_slot, ${p.moved_after})',
      grep: 'buy once, with a receipt, and pass the later audit',
    },
  ]),
  ...of('sale/check-payment', 'made', [
    {
      name: 'anyone who names a transfer counts as its payer',
      find: 'check.checked && (check.ok || found.ours)',
      replace: 'check.checked',
      grep: 'for a stranger who names the transfer of another',
    },
  ]),
  ...of('methods/mpp/mpp', 'made', [
    {
      name: 'a challenge is paid twice',
      find: 'identifier: id, made',
      replace: 'identifier: null, made',
      grep: 'buy one order if they answer one challenge',
    },
  ]),
  ...of('sale/charge', 'made', [
    {
      name: 'nobody is told that the money has moved',
      find: ': movedIn(payment, moneyNote(row))',
      replace: ': moneyNote(row)',
      grep: 'stay unused when the body is wrong',
    },
  ]),
  ...of('sale/outcome', 'made', [
    {
      name: 'a buyer who can still send the transfer is told that nothing was charged',
      find: 'moved === true || checked?.selfPaid === true',
      replace: 'moved === true',
      grep: 'get no answer that says “not charged”',
    },
  ]),
  ...of('rails/solana/find-transfer', 'made', [
    {
      name: 'a failed transfer is found',
      find: 'if (landed.failed)',
      replace: 'if (false)',
      grep: 'buy nothing with a transfer that failed',
    },
  ]),
  ...of('methods/mpp/answered', 'made', [
    {
      name: 'work that is not paid up front is sold for a signature',
      find: "if (flow !== 'upfront')",
      replace: 'if (false)',
      grep: 'are not accepted for work that is paid afterwards',
    },
  ]),
  ...of('methods/mpp/answered', 'credentials', [
    {
      name: 'a signature is accepted although the server pays the fee',
      find: 'if (request.methodDetails?.feePayer === true)',
      replace: 'if (false)',
      grep: 'cause no request to the chain',
    },
  ]),
  ...of('sale/made-payments', 'credentials', [
    {
      name: 'any caller causes a request to the chain',
      find: 'if (!live)',
      replace: 'if (false)',
      grep: 'cause no request to the chain',
    },
  ]),
];

const former: readonly Mutant[] = [
  ...of('rails/solana/solana-rail', 'former', [
    {
      name: 'a payment whose buyer pays the fee is sent by a facilitator',
      find: 'selfPaid ? sender : facilitator',
      replace: 'facilitator',
      grep: 'with the fee paid by the buyer',
    },
  ]),
  ...of('methods/shop-methods', 'former', [
    {
      name: 'MPP payments are no longer read',
      find: '[formerMppMethod(own)]',
      replace: '[]',
      grep: 'settles a payment that was stored but not sent when its server died',
    },
  ]),
];

const adopted: readonly Mutant[] = [
  {
    name: 'adopt takes in any transfer from a wallet',
    file: 'src/operator/transfers-in.js',
    find: "isExternalId(memo ?? '')",
    replace: 'true',
    test: 'cli/ledger/adopt-mpp',
    grep: "ignores a wallet's other transfers",
  },
];

export const mppMutants: readonly Mutant[] = [
  ...answered,
  ...bound,
  ...method,
  ...sender,
  ...made,
  ...former,
  ...adopted,
];
