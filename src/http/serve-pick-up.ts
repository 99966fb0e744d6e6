import type { Context } from 'koa';
import type { Contract } from '../contract/contract.js';
import { LeakyBuckets } from '../net/leaky-buckets.js';
import type { AnswerKeys } from '../payments/answer-keys.js';
import type { Charge } from '../payments/charge.js';
import { unavailable } from '../payments/outcome.js';
import type { PickedUp } from '../payments/pick-up.js';
import { receiptHeader } from '../payments/wire.js';
import type { Deliveries } from './deliveries.js';
import { onSent } from './on-close.js';
import type { SourceLimits } from './source-limits.js';
import { Halt, send, sendError } from './responses.js';
import { TOO_MANY_ANSWERS } from './send-outcome.js';

/** How often one answer may be asked for. Keys can't be guessed, so that only its buyer can use this up. */
const LIMIT = { capacity: 20, perSecond: 2, maxKeys: 10_000 };
/** An answer of this size that is sent again counts as one that is asked for, a smaller one as its share, and at least as LEAST. */
const WHOLE_BYTES = 256 * 1024;
const LEAST = 0.02;
const UNKNOWN = 'No call of this server has this key. Use the whole URL of the Location header.';

/** The URL to which a key is appended; undefined if the contract does not declare the operation. */
export function answersUrl({ free }: Contract, publicUrl: string): string | undefined {
  const path = free.find(({ answers }) => answers)?.path;
  return path === undefined ? undefined : publicUrl + path.replace(/\{[^{}]*\}.*$/, '');
}

/** Fetches answers by their keys, without the payment, over HTTP and MCP alike. */
export class PickUps {
  /** The free operation of the contract that serves them. */
  readonly operation: string | undefined;
  readonly #keys: AnswerKeys;
  readonly #charge: Pick<Charge, 'pickUp'>;
  readonly #asked = new LeakyBuckets(LIMIT);

  constructor({ free }: Contract, keys: AnswerKeys, charge: Pick<Charge, 'pickUp'>) {
    this.operation = free.find(({ answers }) => answers)?.id;
    this.#keys = keys;
    this.#charge = charge;
  }

  /**
   * Counts that the answer of a payment is sent once more by that payment, if it may be. Small answers count less: of those, many
   * copies may have been on their way when the first was delivered.
   * @returns 0, or whole seconds until it may
   */
  takeAgain(id: string, bytes: number): number {
    return this.#take(id, Math.min(1, Math.max(LEAST, bytes / WHOLE_BYTES)));
  }

  #take(id: string, amount: number): number {
    const wait = Math.ceil(this.#asked.wait(id, amount));
    if (wait === 0) this.#asked.add(id, amount);
    return wait;
  }

  /** @param key or its URL */
  async get(key: string): Promise<PickedUp & { id: string }> {
    const id = this.#keys.idOf(key);
    if (id === undefined) return { kind: 'nothing', error: UNKNOWN, id: '' };
    const wait = this.#take(id, 1);
    if (wait > 0) {
      const outcome = unavailable('This answer is asked for too often', wait);
      return { kind: 'found', version: 2, payer: '', outcome, id };
    }
    return { ...(await this.#charge.pickUp(id)), id };
  }
}

export type PickUpParts = { limits: SourceLimits; pickUps: PickUps; deliveries: Deliveries };

/** Answers a request for the answer of a key: 200, 404, 502 or 503, as the paid call would be answered now. */
export async function servePickUp(
  ctx: Context,
  { pickUps, deliveries, limits }: PickUpParts,
  key: string,
): Promise<void> {
  const found = await pickUps.get(key);
  if (found.kind === 'nothing') throw new Halt(404, found.error, { 'Cache-Control': 'no-store' });
  const { id, payer, version, outcome } = found;
  const receipt = outcome.receipt ? receiptHeader(version, outcome.receipt) : {};
  if (outcome.kind === 'unavailable')
    return sendError(ctx, 503, outcome.error, {
      ...receipt,
      'Retry-After': String(outcome.retryAfterSeconds),
    });
  const { status, headers, body } = outcome.answer;
  const { req, res } = ctx;
  const owner = { payment: id, payer, source: limits.of(req) };
  const delivery = deliveries.open(owner, body, () => req.socket.destroy());
  if (!delivery) return sendError(ctx, 503, TOO_MANY_ANSWERS, { ...receipt, 'Retry-After': '1' });
  onSent(req, res, () => delivery.close());
  send(ctx, status, delivery.body, { ...headers, ...receipt, 'Cache-Control': 'no-store' });
  if (delivery.body !== body) ctx.length = body.length;
}
