import { randomBytes } from 'node:crypto';
import type { PricedOperation } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import type { Carrier, Challenge, Method, MethodDocuments, Reading, Receipt, Receipted } from '../method.js';
import { faultIn, faultInPayload } from './answered.js';
import { headerOf, makeChallenge, type MppChallenge, type MppTerms } from './charge-challenge.js';
import { ChallengeIds } from './challenge-ids.js';
import { encoded, readCredential, type Sent } from './credential.js';

/** The metadata keys of the challenges and the receipt in an MCP result. */
const CHALLENGES_KEY = 'org.paymentauth/challenges';
const RECEIPT_KEY = 'org.paymentauth/receipt';
const FORMER = 'challenge: MPP is no longer offered here; pay as described in this answer';
const SECRET_BYTES = 32;
const PROBLEMS = 'https://paymentauth.org/problems/';

/** `secrets`: the first signs challenges, all verify them. */
export type MppOptions = { secrets: readonly [string, ...string[]]; now?: () => number };

/**
 * MPP, the HTTP authentication scheme `Payment`: method `solana`, intent `charge`. A payment is bound to its challenge by its memo, and the
 * challenge to one operation at one price by its id.
 */
export function mppMethod(terms: MppTerms, options: MppOptions): Method {
  return methodOf(terms, { ...options, former: false });
}

/** For a shop that no longer offers MPP: only payments that are already in its ledger are accepted. */
export function formerMppMethod(terms: MppTerms): Method {
  return methodOf(terms, { secrets: [randomBytes(SECRET_BYTES).toString('hex')], former: true });
}

function methodOf(
  terms: MppTerms,
  { secrets, now = Date.now, former }: MppOptions & { former: boolean },
): Method {
  const ids = new ChallengeIds(secrets);
  const made = new WeakMap<Challenge, MppChallenge>();

  function render(
    operation: PricedOperation,
    hints: Readonly<Record<string, string>>,
    why?: string,
  ): Challenge {
    const challenge = makeChallenge(operation, terms, hints, { ids, now: now() });
    const body = Buffer.from(JSON.stringify(problemOf(why)));
    const rendered = { headers: { 'WWW-Authenticate': headerOf(challenge) }, body };
    made.set(rendered, challenge);
    return rendered;
  }

  const method: Method = {
    name: 'mpp',
    protocol: 'mpp',
    requestHeaders: ['authorization'],
    answerHeaders: ['WWW-Authenticate', 'Payment-Receipt'],
    fresh: true,
    isAskedBy: () => false,
    read(carrier: Carrier, operation): Reading | undefined {
      const sent = readCredential(carrier);
      if (sent === undefined) return undefined;
      if (typeof sent === 'string') return former ? undefined : { kind: 'refused', method, error: sent };
      return readingOf(method, sent, operation, { terms, ids, now: now(), former });
    },
    challenge: render,
    example: operation => render(operation, {}),
    toolChallenge(_operation, challenge) {
      const challenges = [made.get(challenge)];
      const problem = JSON.parse(challenge.body.toString('utf8')) as Json;
      return { structured: { ...problem, challenges }, meta: { [CHALLENGES_KEY]: challenges } };
    },
    receiptHeaders(receipt, goesWith): Record<string, string> {
      const told = receiptOf(receipt, goesWith, now());
      return told ? { 'Payment-Receipt': encoded(told) } : {};
    },
    receiptMeta(receipt, goesWith): Json {
      const told = receiptOf(receipt, goesWith, now());
      return told ? { [RECEIPT_KEY]: told } : {};
    },
    documents: () => documentsOf(terms),
  };
  return method;
}

/** The inputs of a credential's local checks. `former`: MPP is no longer offered. */
type Judging = { terms: MppTerms; ids: ChallengeIds; now: number; former: boolean };

function readingOf(method: Method, sent: Sent, operation: PricedOperation, judging: Judging): Reading {
  const { payload, request, id } = sent;
  const error = faultInPayload(sent, operation);
  if (error !== undefined) return { kind: 'refused', method, error };
  const { feePayer, feePayerKey = '' } = request.methodDetails ?? {};
  const named = { memo: request.externalId ?? '', ...(feePayer === true ? { feePayer: feePayerKey } : {}) };
  const faultOf = (asked: PricedOperation): string | undefined =>
    judging.former ? FORMER : faultIn(sent, asked, judging.terms, judging.ids, judging.now);
  const fault = faultOf(operation);
  const mismatch = fault === undefined ? {} : { mismatch: fault };
  const common = { method, challenge: { id, named }, ...mismatch };
  if (payload.type === 'transaction')
    return {
      kind: 'credential',
      credential: { ...common, evidence: payload.transaction ?? '', identifier: null },
    };
  const amount = BigInt(request.amount);
  const live = faultOf({ ...operation, price: { ...operation.price, atomic: amount } }) === undefined;
  const made = { amount, live, foreign: !judging.ids.made(id, sent.slots) };
  // Anyone who reads the chain can name the transfer, but only its buyer knows the challenge that it answers.
  return {
    kind: 'credential',
    credential: { ...common, evidence: payload.signature ?? '', identifier: id, made },
  };
}

/** The receipt; undefined unless the answer was sold and the challenge that was paid is known. */
function receiptOf(
  { success, transaction: reference }: Receipt,
  { sold, challenge }: Receipted,
  now: number,
): Json | undefined {
  if (!success || !sold || challenge === undefined) return undefined;
  const timestamp = new Date(now).toISOString();
  return { method: 'solana', challengeId: challenge, reference, status: 'success', timestamp };
}

/** A problem document (RFC 9457), for clients of a shop that accepts only MPP. */
function problemOf(why?: string): Json {
  const type = `${PROBLEMS}${why === undefined ? 'payment-required' : 'verification-failed'}`;
  return { type, title: 'Payment required', status: 402, ...(why === undefined ? {} : { detail: why }) };
}

function documentsOf({ asset }: MppTerms): MethodDocuments {
  return {
    protocol: { mpp: { method: 'solana', intent: 'charge', currency: 'USD' } },
    offer: ({ price, pricing, summary }) => ({
      intent: 'charge',
      method: 'solana',
      amount: pricing.needsBody ? null : price.atomic.toString(),
      currency: asset,
      description: summary,
    }),
    instructions:
      'Or pay with MPP (method solana, intent charge): answer the Payment challenge in the WWW-Authenticate header of the 402 with a ' +
      'credential of type transaction in the Authorization header (or signature, where payment comes before the work).',
    steps: [
      `Or, with an MPP client: answer the \`Payment\` challenge in the header \`WWW-Authenticate\` of the same 402 (method \`solana\`, intent ` +
        `\`charge\`, USDC mint \`${asset}\`) with a credential of type \`transaction\` in the header \`Authorization\`. Where payment comes ` +
        'before the work, and you pay the fee, it may be of type `signature` and name the transfer that you sent. The receipt is in ' +
        '`Payment-Receipt`.',
    ],
    tool: `MPP: the challenges are in _meta["${CHALLENGES_KEY}"], the credential goes into _meta["org.paymentauth/credential"].`,
    phrase: 'MPP on Solana',
    terms: { protocol: 'mpp', method: 'solana', intent: 'charge', asset },
  };
}
