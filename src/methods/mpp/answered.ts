import type { PricedOperation } from '../../contract/contract.js';
import { toDecimal } from '../../price/amount.js';
import { opaqueOf, type MppTerms } from './charge-challenge.js';
import type { ChallengeIds } from './challenge-ids.js';
import { encoded, type Sent } from './credential.js';

const ANSWER_NEW = 'answer the one in this answer';

/** Why a credential does not answer a challenge of this server for this operation; undefined if it does. */
export function faultIn(
  { id, slots, request }: Sent,
  operation: PricedOperation,
  { asset, payTo, realm }: MppTerms,
  ids: ChallengeIds,
  now: number,
): string | undefined {
  if (!ids.made(id, slots))
    return `challenge: ${id} was not made by this server, or was changed: ${ANSWER_NEW}`;
  if (slots.realm !== realm) return `challenge: realm ${slots.realm} is not ${realm}: ${ANSWER_NEW}`;
  if (slots.method !== 'solana' || slots.intent !== 'charge')
    return `challenge: ${slots.method} ${slots.intent} is not offered, only solana charge is`;
  if (slots.opaque !== encoded(opaqueOf(operation)))
    return `challenge: it is not one for ${operation.id}: ${ANSWER_NEW}`;
  if (request.amount !== operation.price.atomic.toString())
    return `challenge: its amount is ${request.amount}, the price is ${toDecimal(operation.price.atomic)} USDC: ${ANSWER_NEW}`;
  if (request.currency !== asset || request.recipient !== payTo)
    return `challenge: it pays another receiver or token than this server takes now: ${ANSWER_NEW}`;
  if (!(Date.parse(slots.expires ?? '') > now))
    return `challenge: it expired at ${slots.expires}: ${ANSWER_NEW}`;
  return undefined;
}
