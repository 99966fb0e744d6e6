import type { Context } from 'koa';
import type { Contract } from '../contract/contract.js';
import type { Caller } from '../ledger/store.js';
import { LeakyBuckets } from '../net/leaky-buckets.js';
import type { AnswerKeys } from './answer-keys.js';
import type { Charge } from '../sale/charge.js';
import { unavailable } from '../sale/outcome.js';
import type { PickedUp } from '../sale/pick-up.js';
import type { Method } from '../methods/method.js';
import type { Methods } from '../methods/methods.js';
import type { SourceLimits } from './source-limits.js';
import { Halt, send, sendError } from './responses.js';
import { goesWith } from './send-outcome.js';
import { sendSold, type SellingParts } from './send-sold.js';
import { signedHeadersOf, type SigningParts } from './sign-receipts.js';

/**
 * How often one answer may be requested. There are separate limits for requests with its payment (which
 * anyone can send once it has landed), with keys of callers that may be strangers, and with keys of its
 * buyer, so that a stranger cannot use up the buyer's limit.
 */
const LIMIT = { capacity: 20, perSecond: 2, maxKeys: 10_000 };
/** Sending an answer of this size again counts as 1; a smaller one counts in proportion, but at least LEAST. */
const WHOLE_BYTES = 256 * 1024;
const LEAST = 0.02;
const UNKNOWN = 'This server has no call with this key. Use the whole URL of the Location header.';

/** The URL to which a key is appended; undefined if the contract does not declare the operation. */
export function answersUrl({ free }: Contract, publicUrl: string): string | undefined {
  const path = free.find(({ answers }) => answers)?.path;
  return path === undefined ? undefined : publicUrl + path.replace(/\{[^{}]*\}.*$/, '');
}

type Nothing = Extract<PickedUp, { kind: 'nothing' }>;
type Found = Omit<Extract<PickedUp, { kind: 'found' }>, 'method' | 'since'> & {
  method: Method;
  /** When the payment arrived, in ms since 1970. Undefined if the answer was requested too often. */
  since?: number;
};
export type Fetched = (Nothing | Found) & { kept: Caller };

/** Fetches answers by key, without the payment, over HTTP and MCP. */
export class PickUps {
  /** The free operation of the contract that serves answers by key. */
  readonly operation: string | undefined;
  readonly #keys: AnswerKeys;
  readonly #charge: Pick<Charge, 'pickUp'>;
  readonly #methods: Pick<Methods, 'first' | 'named'>;
  readonly #asked = new LeakyBuckets(LIMIT);

  constructor(
    { free }: Contract,
    keys: AnswerKeys,
    charge: Pick<Charge, 'pickUp'>,
    methods: Pick<Methods, 'first' | 'named'>,
  ) {
    this.operation = free.find(({ answers }) => answers)?.id;
    this.#keys = keys;
    this.#charge = charge;
    this.#methods = methods;
  }

  /**
   * Counts one more copy of an answer sent for its payment, if the limit allows it. Small answers count
   * less, because many copies may have been on their way when the first was delivered.
   * @returns 0, or whole seconds until it is allowed
   */
  takeAgain(id: string, bytes: number): number {
    return this.#asked.take(`${id} payment`, Math.min(1, Math.max(LEAST, bytes / WHOLE_BYTES)));
  }

  /** @param key a key or its URL. @returns what was found, and the caller to which the key was given */
  async get(key: string): Promise<Fetched> {
    const kept = this.#keys.callerOf(key);
    if (kept === undefined) return { kind: 'nothing', error: UNKNOWN, kept: { id: '', number: 0 } };
    const wait = this.#asked.take(`${kept.id} ${kept.number === 0 ? 'stranger' : 'buyer'}`, 1);
    if (wait > 0) {
      const outcome = unavailable('Too many requests for this answer', wait);
      return { kind: 'found', method: this.#methods.first, payer: '', outcome, kept };
    }
    const found = await this.#charge.pickUp(kept);
    if (found.kind === 'nothing') return { ...found, kept };
    return { ...found, method: this.#methods.named(found.method), kept };
  }
}

export type PickUpParts = SellingParts & SigningParts & { limits: SourceLimits; pickUps: PickUps };

/**
 * Answers a request that presents a key. It gets what a repeat of the paid call would get now: the sold
 * answer, 404, 502 or 503.
 */
export async function servePickUp(ctx: Context, parts: PickUpParts, key: string): Promise<void> {
  const found = await parts.pickUps.get(key);
  if (found.kind === 'nothing') throw new Halt(404, found.error, { 'Cache-Control': 'no-store' });
  const { kept, payer, method, outcome } = found;
  const own: Record<string, string> = outcome.receipt
    ? method.receiptHeaders(outcome.receipt, goesWith(outcome))
    : {};
  if (outcome.kind === 'unavailable')
    return sendError(ctx, 503, outcome.error, {
      ...own,
      'Retry-After': String(outcome.retryAfterSeconds),
    });
  if (outcome.kind === 'sold') {
    const owner = { payment: kept.id, payer, source: parts.limits.of(ctx.req) };
    const how = { goesWith: goesWith(outcome), others: own };
    const signed = await signedHeadersOf(parts, method, outcome, how);
    return sendSold(ctx, parts, { ...outcome, owner, own, signed });
  }
  const { status, headers, body } = outcome.answer;
  send(ctx, status, body, { ...headers, ...own, 'Cache-Control': 'no-store' });
}
