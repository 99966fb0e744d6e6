import type { SettleResult, VerifyResult } from '../rails/rail.js';
import { plain, type FacilitatorRequest, type ListingVerdict } from './facilitator.js';
import type { Listing } from './listings.js';

/** Where a facilitator reports the result of each extension of a request: base64 of `{ "bazaar": { "status", "rejectedReason"? } }`. */
export const EXTENSION_RESPONSES = 'extension-responses';
const MAX_CHARACTERS = 4 * 1024;
/** How long, in ms, no listing is sent to a facilitator that has refused one. */
export const REFUSED_FOR_MS = 24 * 60 * 60 * 1_000;
/** Statuses and words of a refusal that concerns the contents of the request rather than its payment. */
const REFUSAL = /\bstatus 4(00|13|15|22)\b|extension|bazaar|unrecognized|additional propert/i;

/** Reads the header; a malformed one counts as no answer. */
export function readListingVerdict(
  header: string | undefined,
  { operation, transport }: Listing,
): ListingVerdict | undefined {
  if (header === undefined || header.length > MAX_CHARACTERS) return undefined;
  const { status, rejectedReason: why } = bazaarIn(header);
  if (status !== 'success' && status !== 'processing' && status !== 'rejected') return undefined;
  const reason = typeof why === 'string' && why !== '' ? { why: plain(why) } : {};
  return { operation, transport, status, ...reason };
}

function bazaarIn(header: string): { status?: unknown; rejectedReason?: unknown } {
  try {
    const { bazaar } = JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as { bazaar?: object };
    return bazaar ?? {};
  } catch {
    return {};
  }
}

/** Whether one facilitator accepts requests with a listing. */
export class TakesListings {
  readonly #told: (verdict: ListingVerdict) => void;
  readonly #now: () => number;
  #refusedUntil = 0;

  constructor(told: (verdict: ListingVerdict) => void, now: () => number = Date.now) {
    this.#told = told;
    this.#now = now;
  }

  /** The request, with or without the listing. */
  trimmed(request: FacilitatorRequest): FacilitatorRequest {
    return this.#now() < this.#refusedUntil ? { ...request, listing: undefined } : request;
  }

  /** Verifies. If the listing may have been the reason for a refusal, verifies again without it. */
  async verify(
    request: FacilitatorRequest,
    ask: (request: FacilitatorRequest) => Promise<VerifyResult>,
  ): Promise<VerifyResult> {
    const sent = this.trimmed(request);
    const first = await ask(sent);
    const why = refusalIn(first);
    if (!sent.listing || why === undefined) return first;
    const second = await ask({ ...sent, listing: undefined });
    if (second.kind === 'valid') this.#refuse(sent.listing, why);
    return second;
  }

  /** Settles, and never asks twice. If the listing may have been the reason for a refusal, later requests are sent without one. */
  async settle(
    request: FacilitatorRequest,
    ask: (request: FacilitatorRequest) => Promise<SettleResult>,
  ): Promise<SettleResult> {
    const sent = this.trimmed(request);
    const result = await ask(sent);
    const why = refusalIn(result);
    if (sent.listing && why !== undefined) this.#refuse(sent.listing, why);
    return result;
  }

  #refuse({ operation, transport }: Listing, why: string): void {
    this.#refusedUntil = this.#now() + REFUSED_FOR_MS;
    this.#told({ operation, transport, status: 'refused', why: plain(why) });
  }
}

function refusalIn(result: VerifyResult | SettleResult): string | undefined {
  const why = 'detail' in result ? result.detail : 'reason' in result ? result.reason : '';
  return REFUSAL.test(why) ? why : undefined;
}
