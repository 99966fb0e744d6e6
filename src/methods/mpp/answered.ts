import type { PricedOperation } from '../../contract/contract.js';
import { toDecimal } from '../../price/amount.js';
import { opaqueOf, type MppTerms } from './charge-challenge.js';
import type { ChallengeIds } from './challenge-ids.js';
import { encoded, type Sent } from './credential.js';

const ANSWER_NEW = 'answer the new challenge in this response';
const IF_MADE =
  'a transfer that you sent yourself has bought nothing, but the operator of this shop can credit or refund it';
/** A transaction signature in base58. */
const SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{64,88}$/;
const AMOUNT = /^[1-9][0-9]{0,15}$/;

/** The fault of a credential's payload, whatever challenge it answers; undefined if there is none. */
export function faultInPayload({ payload, request }: Sent, { flow }: PricedOperation): string | undefined {
  const { type, transaction, signature } = payload;
  if (type === 'transaction' && transaction !== undefined) return undefined;
  if (type !== 'signature')
    return `payload: type ${type} is not accepted: only transaction is, with the signed transaction in base64`;
  if (flow !== 'upfront')
    return (
      'payload: type signature is not accepted for an operation that is paid after its work: answer the same challenge with type ' +
      'transaction and the signed transaction in base64, even if you have already sent it'
    );
  if (request.methodDetails?.feePayer === true)
    return 'payload: type signature is not accepted where the server pays the fee: send the transaction, with type transaction';
  if (!SIGNATURE.test(signature ?? '') || !AMOUNT.test(request.amount))
    return 'payload: type signature needs the signature of the transfer in base58';
  return undefined;
}

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
    return `challenge: ${slots.method} ${slots.intent} is not offered; only solana charge is`;
  if (slots.opaque !== encoded(opaqueOf(operation)))
    return `challenge: it is not for ${operation.id}: ${ANSWER_NEW}`;
  if (request.amount !== operation.price.atomic.toString())
    return `challenge: its amount is ${request.amount}, the price is ${toDecimal(operation.price.atomic)} USDC: ${ANSWER_NEW}`;
  if (request.currency !== asset || request.recipient !== payTo)
    return `challenge: its receiver or token is not the one that this server accepts now: ${ANSWER_NEW}`;
  if (!(Date.parse(slots.expires ?? '') > now))
    return `challenge: it expired at ${slots.expires}: ${ANSWER_NEW}${isSelfPaid(request) ? `; ${IF_MADE}` : ''}`;
  return undefined;
}

/** Whether the buyer pays the fee, and so can send the transfer. */
function isSelfPaid({ methodDetails }: Sent['request']): boolean {
  return methodDetails?.feePayer !== true;
}
