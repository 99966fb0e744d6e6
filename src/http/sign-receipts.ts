import { bytesOf, MAX_HEADER_BYTES, OTHER_HEADER_BYTES } from '../methods/header-bytes.js';
import type { Method, Receipted } from '../methods/method.js';
import type { Receipts, SignedReceipts } from '../receipts/receipts.js';
import type { Outcome, Success } from '../sale/outcome.js';
import { soldHeaders } from './sold-headers.js';

/** The header of the receipt that binds a call to its answer, a JWS in compact form. */
export const ANSWER_RECEIPT = 'Answer-Receipt';

export type SigningParts = { receipts?: Pick<Receipts, 'sign'> };

type SoldOutcome = Extract<Outcome, { kind: 'sold' }>;

/** The signed receipts of a sale. Undefined for every other outcome, and in a shop that signs no receipts. */
export async function signedFor(
  { receipts }: SigningParts,
  outcome: Outcome,
): Promise<SignedReceipts | undefined> {
  if (outcome.kind !== 'sold') return undefined;
  return receipts?.sign(outcome.call, outcome.receipt, outcome.answer);
}

/**
 * The headers of signed receipts, which go out only with the answer itself. Proxies limit the size of
 * headers. If the answer's own headers leave too little room, the signed receipts are dropped: first the
 * answer receipt, then x402's.
 * @param others the other headers; the signed receipt replaces the plain one among them
 */
export async function signedHeadersOf(
  parts: SigningParts,
  method: Method,
  outcome: SoldOutcome,
  { goesWith, others }: { goesWith: Receipted; others: Record<string, string> },
): Promise<Record<string, string>> {
  const signed = await signedFor(parts, outcome);
  if (!signed) return {};
  const receipt = method.receiptHeaders(outcome.receipt, { ...goesWith, signed: signed.receipt });
  const both = { ...receipt, [ANSWER_RECEIPT]: signed.answer };
  const besides = { ...passedOn(outcome.answer), ...others };
  const fits = (headers: Record<string, string>): boolean =>
    bytesOf({ ...besides, ...headers }) <= MAX_HEADER_BYTES - OTHER_HEADER_BYTES;
  return [both, receipt].find(fits) ?? {};
}

/** The answer's own headers that are sent with it. */
function passedOn(answer: Success): Record<string, string> {
  const sent = Object.entries(soldHeaders(answer, {}));
  return Object.fromEntries(
    sent.filter(([name]) => name in answer.headers).map(([name, value]) => [name, String(value)]),
  );
}
