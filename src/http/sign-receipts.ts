import { bytesOf, MAX_HEADER_BYTES, OTHER_HEADER_BYTES } from '../methods/header-bytes.js';
import type { Method, Receipted } from '../methods/method.js';
import type { Receipts, SignedReceipts } from '../receipts/receipts.js';
import type { Outcome, Success } from '../sale/outcome.js';
import { soldHeaders } from './sold-headers.js';

/** Carries the receipt that binds a call and its answer; a JWS in compact form. */
export const ANSWER_RECEIPT = 'Answer-Receipt';

export type SigningParts = { receipts?: Pick<Receipts, 'sign'> };

type SoldOutcome = Extract<Outcome, { kind: 'sold' }>;

/** What is signed for a sale; undefined for every other outcome, and in a shop that signs nothing. */
export async function signedFor(
  { receipts }: SigningParts,
  outcome: Outcome,
): Promise<SignedReceipts | undefined> {
  if (outcome.kind !== 'sold') return undefined;
  return receipts?.sign(outcome.call, outcome.receipt, outcome.answer);
}

/**
 * The headers of signed receipts, which go out only with the answer itself. They give way where its own headers leave a proxy no room for
 * them: first the answer receipt, then x402's.
 * @param others the headers that go out besides, of which these replace the plain receipt
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

/** The headers of the answer itself that go out with it. */
function passedOn(answer: Success): Record<string, string> {
  const sent = Object.entries(soldHeaders(answer, {}));
  return Object.fromEntries(
    sent.filter(([name]) => name in answer.headers).map(([name, value]) => [name, String(value)]),
  );
}
