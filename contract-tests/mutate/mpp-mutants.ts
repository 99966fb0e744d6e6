import type { Mutant } from './mutants.js';

type Change = Omit<Mutant, 'file' | 'test'>;

const of = (file: string, test: string, changes: readonly Change[]): readonly Mutant[] =>
  changes.map(change => ({ ...change, file: `src/${file}.js`, test: `methods/mpp/${test}` }));

/** What makes a credential an answer to a challenge of this server. */
const answered = of('methods/mpp/answered', 'credentials', [
  {
    name: 'anybody may make challenges',
    find: 'if (!ids.made(id, slots))',
    replace: 'if (false)',
    grep: 'with another expiry',
  },
  {
    name: 'a challenge of another shop is taken',
    find: 'if (slots.realm !== realm)',
    replace: 'if (false)',
    grep: 'of another shop with the same secret',
  },
  {
    name: 'a challenge of any intent is taken',
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
    name: 'a challenge at another price is taken',
    find: 'if (request.amount !== operation.price.atomic.toString())',
    replace: 'if (false)',
    grep: 'at another price',
  },
  {
    name: 'a challenge for another receiver is taken',
    find: 'request.currency !== asset || request.recipient !== payTo',
    replace: 'false',
    grep: 'to a receiver of earlier times',
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
    name: 'any fee payer will do',
    find: 'feePayer !== undefined && nameOf(keys[0]) !== feePayer',
    replace: 'false',
    grep: 'with another fee payer than the challenge names',
  },
]);

const method = of('methods/mpp/mpp', 'credentials', [
  {
    name: 'a receipt goes with what is not sold',
    find: '!success || !sold ||',
    replace: '!success ||',
    grep: 'a receipt goes with nothing but what was sold',
  },
  {
    name: 'other payloads are read as transactions',
    find: "payload.type !== 'transaction' || ",
    replace: '',
    grep: 'that nobody can read',
  },
]);

const sender = of('facilitators/sender', 'paid', [
  {
    name: 'what the chain would refuse is worked for',
    find: 'if (error === null)',
    replace: 'if (true)',
    grep: 'does no work for a wallet without the money',
  },
]);

export const mppMutants: readonly Mutant[] = [...answered, ...bound, ...method, ...sender];
