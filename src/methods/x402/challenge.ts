import type { Json } from '../../contract/json.js';
import type { PricedOperation } from '../../contract/contract.js';
import { tagsOf } from './service.js';
import { networkName, requirementsOf, resourceUrl, type Terms } from './requirements.js';
import { USDC } from '../../price/amount.js';
import { bazaarOf, outputSchemaOf, PAYMENT_IDENTIFIER } from './describe-call.js';
import { MAX_HEADER_BYTES, OTHER_HEADER_BYTES } from '../header-bytes.js';
import type { Challenge } from '../method.js';
import type { Hints } from '../../rails/rail.js';
import { TOKEN_PROGRAM } from '../../rails/solana/networks.js';

/** The version of x402 that a challenge is in. */
export type ChallengeVersion = 1 | 2;

/**
 * The length of a body that fills the header when it is encoded as base64. A v1 challenge is not sent in a
 * header; there, the limit only keeps it short.
 */
function maxBodyBytes(version: ChallengeVersion, { otherMethodsBytes = 0 }: Terms): number {
  const others = version === 1 ? 0 : OTHER_HEADER_BYTES + otherMethodsBytes;
  return ((MAX_HEADER_BYTES - others) / 4) * 3;
}

/** The message of the challenge for a call without payment. */
export const UNPAID =
  'Payment required: sign one of the accepted payments and repeat the call with it (clients of x402 v1: add ?x402Version=1)';

/**
 * Renders the challenge of an operation (x402 v2 PaymentRequired, v1 PaymentRequirementsResponse).
 * It has one option, with the fields of both versions. The network is the CAIP-2 name in the v2 challenge and the v1 name in the v1
 * challenge, because the v2 schema and the closed network list of first-generation clients each reject the other's name. The v1
 * challenge has no text in `error` unless a payment was refused; a text that does not fit is cut. A v1 challenge is sent without the
 * PAYMENT-REQUIRED header, because clients take the header to mean v2.
 */
export function renderChallenge(
  operation: PricedOperation,
  terms: Terms,
  live: Hints,
  version: ChallengeVersion = 2,
  error?: string,
): Challenge {
  const crawlers = forCrawlers(operation, terms);
  const render = (text?: string): Buffer =>
    Buffer.from(challengeText(operation, terms, live, version, crawlers, text));
  const body = render(
    error === undefined ? error : cutToJsonBytes(error, maxBodyBytes(version, terms) - render('').length),
  );
  return inVersion(version, body);
}

function inVersion(version: ChallengeVersion, body: Buffer): Challenge {
  return { headers: version === 2 ? { 'PAYMENT-REQUIRED': body.toString('base64') } : {}, body };
}

/** The longest prefix of a text that takes at most `room` bytes within a JSON string. */
function cutToJsonBytes(text: string, room: number): string {
  let used = 0;
  let end = 0;
  for (const character of text) {
    used += Buffer.byteLength(JSON.stringify(character)) - 2;
    if (used > room) break;
    end += character.length;
  }
  return text.slice(0, end);
}

function challengeText(
  operation: PricedOperation,
  terms: Terms,
  live: Hints,
  version: ChallengeVersion,
  { outputSchema, extensions, without = [] }: Partial<ForCrawlers>,
  error?: string,
): string {
  const reason = error ?? (version === 2 ? UNPAID : undefined);
  const withV1Extras = version === 1 || !without.includes('v1 extras');
  const offered = option(operation, terms, live, version, withV1Extras);
  return JSON.stringify({
    x402Version: version,
    ...(reason === undefined ? {} : { error: reason }),
    ...(version === 2 ? { resource: resourceOf(operation, terms, !without.includes('tags')) } : {}),
    accepts: [version === 1 && outputSchema ? { ...offered, outputSchema } : offered],
    ...(version === 2 && extensions ? { extensions } : {}),
  });
}

/**
 * Placeholders for the parts that change while a server runs: an unused address, and a blockhash that no
 * chain has.
 */
const EXAMPLE_LIVE: Hints = {
  feePayer: 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb',
  recentBlockhash: 'EkSnNWid2cvwEVnVx9aBqawnmiCNiDgp3gUdkDPTKN1N',
};

/** A sample for documents; a real challenge has other addresses and extensions. */
export function exampleChallenge(
  operation: PricedOperation,
  terms: Terms,
  version: ChallengeVersion,
): Challenge {
  return inVersion(version, Buffer.from(challengeText(operation, terms, EXAMPLE_LIVE, version, {})));
}

/** Describes the operation that is sold (x402 v2 ResourceInfo). */
export function resourceOf(operation: PricedOperation, terms: Terms, withTags = true): Json {
  const { service } = terms;
  const tags = withTags ? tagsOf(operation.tags) : [];
  return {
    url: resourceUrl(operation, terms),
    description: operation.summary,
    mimeType: operation.answers[0].mimeType,
    ...(service && { serviceName: service.name }),
    ...(service && tags.length > 0 && { tags }),
    ...(service && { iconUrl: service.iconUrl }),
  };
}

function option(
  operation: PricedOperation,
  terms: Terms,
  live: Hints,
  version: ChallengeVersion,
  withV1Extras: boolean,
): Json {
  const { feePayer = '', recentBlockhash } = live;
  const { amount, extra, ...requirements } = requirementsOf(operation, terms, feePayer);
  const ofV1 = {
    maxAmountRequired: amount,
    resource: resourceUrl(operation, terms),
    description: operation.summary,
    mimeType: operation.answers[0].mimeType,
  };
  return {
    ...requirements,
    network: networkName(terms, version),
    amount,
    ...(withV1Extras ? ofV1 : {}),
    // Data that a buyer would otherwise read from an RPC server before signing.
    extra: {
      ...extra,
      decimals: USDC.decimals,
      tokenProgram: TOKEN_PROGRAM,
      ...(recentBlockhash !== undefined && { recentBlockhash }),
    },
  };
}

/** The parts that are dropped, in this order, from a v2 challenge that does not fit into its header. The price is never dropped. */
const GIVING_WAY = ['schemas', 'v1 extras', 'examples', 'tags'] as const;
type GivenUp = (typeof GIVING_WAY)[number];

/** The part of a challenge for crawlers: as much as fits into the header. Computed once for each operation and terms. */
type ForCrawlers = { outputSchema?: Json; extensions: Json; without: readonly GivenUp[] };

const described = new WeakMap<Terms, WeakMap<PricedOperation, ForCrawlers>>();
const LONGEST_ADDRESS = 'z'.repeat(44);
const LONGEST_LIVE: Hints = { feePayer: LONGEST_ADDRESS, recentBlockhash: LONGEST_ADDRESS };
/** Room for the reason why a payment was refused; in v2, it replaces the usual sentence. */
const ROOM_FOR_ERROR = 160;

function forCrawlers(operation: PricedOperation, terms: Terms): ForCrawlers {
  let known = described.get(terms);
  if (!known) described.set(terms, (known = new WeakMap<PricedOperation, ForCrawlers>()));
  let found = known.get(operation);
  if (!found) known.set(operation, (found = largestThatFits(operation, terms)));
  return found;
}

function largestThatFits(operation: PricedOperation, terms: Terms): ForCrawlers {
  const bytes = (version: ChallengeVersion, crawlers: ForCrawlers): number =>
    Buffer.byteLength(challengeText(operation, terms, LONGEST_LIVE, version, crawlers));
  const steps = GIVING_WAY.map((_, count) => GIVING_WAY.slice(0, count));
  const all = [...steps, GIVING_WAY].map(without => withoutSome(operation, without));
  const shortest = withoutSome(operation, GIVING_WAY);
  const found = all.find(each => bytes(2, each) <= maxBodyBytes(2, terms)) ?? shortest;
  const room = maxBodyBytes(1, terms) - ROOM_FOR_ERROR;
  const outputSchemas = [true, false].map(whole => outputSchemaOf(operation, whole));
  const outputSchema = outputSchemas.find(each => bytes(1, { ...found, outputSchema: each }) <= room);
  return outputSchema ? { ...found, outputSchema } : found;
}

function withoutSome(operation: PricedOperation, without: readonly GivenUp[]): ForCrawlers {
  const bazaar = without.includes('examples')
    ? {}
    : { bazaar: bazaarOf(operation, !without.includes('schemas')) };
  return { extensions: { ...bazaar, 'payment-identifier': PAYMENT_IDENTIFIER }, without };
}

/** The parts left out of an operation's challenge, because its header has no room. */
export function givenUpBy(operation: PricedOperation, terms: Terms): readonly string[] {
  return forCrawlers(operation, terms).without;
}
