import { createHash } from 'node:crypto';
import type { Json } from '../../contract/json.js';
import { toDecimal } from '../../contract/price.js';
import { pause } from '../../net/deadline.js';
import { canonicalJson } from '../../payments/fingerprint.js';
import {
  challengeIn,
  chooseOffer,
  reasonOf,
  receiptIn,
  stateIn,
  type Challenge,
  type Offer,
  type ToolResult,
} from './tool-result.js';
import type { Fates } from './fate.js';
import type { PendingPayment, Purse } from './purse.js';
import { errorResult, withNote, type Note } from './results.js';
import type { CallOptions, Reply, Shop } from './shop-connection.js';
import type { Signed, Signer } from './signer.js';

export type Limits = { maxPrice: bigint; budget: bigint };

export type BuyerParts = {
  shop: Pick<Shop, 'endpoint' | 'call'>;
  purse: Purse;
  signer: Signer;
  fates: Pick<Fates, 'of'>;
  limits: Limits;
  /** How long one tool call may take, in ms: less than the shortest limit of a host. */
  timeoutMs: number;
};

/** One tool call of the host. */
export type HostCall = { tool: string; args: Json } & Pick<CallOptions, 'signal' | 'onProgress'>;

const PAYMENT_KEYS = ['x402/payment', 'x402.payment'] as const;
const PICK_UP = 'pick_up';
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 10_000;
/** With less time than this a further request to the shop is not worth its while. */
const LEAST_MS = 1_000;

/**
 * Calls tools of a shop and pays what they cost. A call has at most one payment whose outcome is not known: it is sent again until
 * the shop answers, or until the chain shows that it was not settled and never will be. Only then another one is signed.
 */
export class Buyer {
  readonly #parts: BuyerParts;

  constructor(parts: BuyerParts) {
    this.#parts = parts;
  }

  /** @throws PurseFault, TooDeep */
  async call(asked: HostCall): Promise<ToolResult> {
    const { shop, purse, timeoutMs } = this.#parts;
    const deadline = Date.now() + timeoutMs;
    const call = nameOf(shop.endpoint, asked);
    const known = purse.find(call);
    if (known) return this.#continue(known, asked, deadline);
    const reply = await this.#send(asked, {}, deadline);
    const challenge = challengeOf(reply);
    if (challenge) return this.#buy(call, challenge, asked, deadline);
    if (reply.kind === 'result') return reply.result;
    const error = reply.kind === 'challenge' ? '' : reply.error;
    return errorResult(`The shop ${shop.endpoint} did not answer the call: ${error}. Nothing was paid.`);
  }

  /** Signs a payment, keeps it, and only then sends it. */
  async #buy(call: string, challenge: Challenge, asked: HostCall, deadline: number): Promise<ToolResult> {
    const { shop, purse, signer, limits } = this.#parts;
    const offer = chooseOffer(challenge, signer.address);
    if (typeof offer === 'string')
      return errorResult(`The shop can't be paid: ${offer}. Nothing was paid.`, this.#note());
    const refused = await this.#overLimit(offer);
    if (refused !== undefined) return errorResult(refused, this.#note());
    let signed: Signed;
    try {
      signed = await signer.sign(offer);
    } catch (error) {
      return errorResult(
        `The payment could not be signed: ${String(error).slice(0, 300)}. Nothing was paid.`,
      );
    }
    const { id, transaction, blockhash } = signed;
    const payment = {
      id,
      call,
      shop: shop.endpoint,
      tool: asked.tool,
      amount: String(offer.amount),
      network: offer.network.caip2,
      payTo: offer.payTo,
      blockhash,
      transaction,
      payment: challenge.base64 ? base64Of(signed.payment) : signed.payment,
    };
    const speaks = purse.add(payment, limits.budget);
    if (speaks?.kind === 'known') return this.#continue(speaks.pending, asked, deadline);
    if (speaks?.kind === 'budget') return errorResult(overBudget(offer, speaks.left), this.#note());
    if (speaks?.kind === 'full') return errorResult(TOO_MANY, this.#note());
    const kept = purse.find(call);
    if (!kept) return errorResult('The payment was not kept. Nothing was paid.', this.#note());
    return this.#pay(kept, asked, deadline);
  }

  /** Why the offer is not paid. Payments that turn out not to have been settled are given back to the budget first. */
  async #overLimit(offer: Offer): Promise<string | undefined> {
    const { purse, limits } = this.#parts;
    const { maxPrice, budget } = limits;
    if (offer.amount > maxPrice)
      return `The price is ${usdc(offer.amount)}, more than this wallet pays for one call (${usdc(maxPrice)}). Nothing was paid. Its owner can raise --max-price.`;
    if (offer.amount > purse.left(budget)) await this.sweep();
    const left = purse.left(budget);
    return offer.amount > left ? overBudget(offer, left) : undefined;
  }

  /** Releases the payments of which the chain shows that they were not settled and never will be, the oldest first. */
  async sweep(atMost = 3): Promise<void> {
    const { purse, fates } = this.#parts;
    const unsure = purse.pending().filter(({ landed }) => landed === undefined);
    for (const each of unsure.slice(0, atMost)) {
      const fate = await fates.of(each);
      if (fate.kind === 'dead') purse.release(each.id);
      if (fate.kind === 'landed') purse.update(each.id, { landed: fate.signature });
    }
  }

  /** Goes on with a payment that was signed for this call before: its answer may be ready. */
  async #continue(payment: PendingPayment, asked: HostCall, deadline: number): Promise<ToolResult> {
    if (payment.pickUp !== undefined) {
      const picked = await this.#send(
        { ...asked, tool: PICK_UP, args: { key: payment.pickUp } },
        {},
        deadline,
      );
      if (picked.kind === 'result' && !picked.result.isError) return this.#answered(payment, picked.result);
    }
    return this.#pay(payment, asked, deadline);
  }

  /** Sends the payment until it is answered, refused, or the time is up. */
  async #pay(payment: PendingPayment, asked: HostCall, deadline: number): Promise<ToolResult> {
    for (let attempt = 0; ; attempt++) {
      const reply = await this.#send(asked, metaOf(payment), deadline);
      const challenge = challengeOf(reply);
      if (challenge) return this.#refused(payment, challenge, asked, deadline);
      if (reply.kind === 'refused')
        return this.#kept(payment, `The shop answered with an error: ${reply.error}`);
      const wait = retryMs(reply, attempt);
      if (reply.kind === 'result') {
        const settled = this.#settle(payment, reply.result);
        if (settled || wait === undefined) return settled ?? this.#failed(payment, reply.result);
      }
      if (Date.now() + (wait ?? 0) + LEAST_MS > deadline) return this.#outOfTime(payment, reply);
      await pause(wait ?? 0, asked.signal);
    }
  }

  /** The result of a call that is over; undefined if its answer is still to come, or the shop failed to give one. */
  #settle(payment: PendingPayment, result: ToolResult): ToolResult | undefined {
    if (!result.isError) return this.#answered(payment, result);
    const receipt = receiptIn(result);
    const { status, pickUp } = stateIn(result);
    const landed = receipt?.success ? receipt.transaction : undefined;
    if (pickUp !== undefined || landed !== undefined)
      this.#parts.purse.update(payment.id, { ...(pickUp ? { pickUp } : {}), ...(landed ? { landed } : {}) });
    // A shop that says nothing of a later answer has sold this error.
    return receipt?.success && status === undefined ? this.#answered(payment, result) : undefined;
  }

  #answered(payment: PendingPayment, result: ToolResult): ToolResult {
    const receipt = receiptIn(result);
    const transaction = (receipt?.success ? receipt.transaction : undefined) ?? payment.landed;
    this.#parts.purse.answered(payment.id, transaction);
    return withNote(result, { ...this.#note(), paid: BigInt(payment.amount), transaction });
  }

  /** The shop refused the payment. That frees neither the call nor the money, because the shop could still settle it. */
  async #refused(
    payment: PendingPayment,
    challenge: Challenge,
    asked: HostCall,
    deadline: number,
  ): Promise<ToolResult> {
    const { purse, fates } = this.#parts;
    const reason = reasonOf(challenge);
    purse.refused(payment, reason);
    const fate = await fates.of(payment);
    if (fate.kind === 'landed') {
      purse.update(payment.id, { landed: fate.signature });
      return this.#kept(
        payment,
        `The shop refuses the payment (${reason}), though it was settled as ${fate.signature}`,
      );
    }
    if (fate.kind === 'open')
      return this.#kept(
        payment,
        `The shop refused the payment: ${reason}. No other is signed for this call yet: ${fate.why}`,
      );
    purse.release(payment.id);
    const left = deadline - Date.now();
    if (left < LEAST_MS || asked.signal.aborted)
      return errorResult(
        `The shop refused the payment: ${reason}. It was not settled. Call again.`,
        this.#note(),
      );
    // Only once: a shop that refuses the new payment, too, finds it young.
    return this.#buy(payment.call, challenge, asked, deadline);
  }

  #failed(payment: PendingPayment, result: ToolResult): ToolResult {
    return this.#kept(payment, `The call failed: ${firstText(result)}`, result);
  }

  #outOfTime(payment: PendingPayment, reply: Reply): ToolResult {
    if (reply.kind === 'result')
      return this.#kept(payment, `No answer yet: ${firstText(reply.result)}`, reply.result);
    return this.#kept(payment, `No answer yet: ${reply.kind === 'lost' ? reply.error : 'the shop is busy'}`);
  }

  /** The payment stays; the next call with the same arguments goes on with it. */
  #kept(payment: PendingPayment, error: string, result?: ToolResult): ToolResult {
    const next = `The payment of ${usdc(BigInt(payment.amount))} is kept: call ${payment.tool} with the same arguments to go on without paying twice.`;
    const note = { ...this.#note(), reserved: BigInt(payment.amount), transaction: payment.landed };
    return errorResult(`${error.replace(/\.?$/, '.')} ${next}`, note, result);
  }

  #send({ tool, args, signal, onProgress }: HostCall, meta: Json, deadline: number): Promise<Reply> {
    const withinMs = Math.max(LEAST_MS, deadline - Date.now());
    return this.#parts.shop.call(tool, args, meta, { withinMs, signal, onProgress });
  }

  #note(): Note {
    const { purse, limits } = this.#parts;
    return { left: purse.left(limits.budget), budget: limits.budget };
  }
}

const TOO_MANY =
  'Too many payments of this wallet have no answer yet. Nothing was paid. wallet_statement lists them; call the same tools again.';

function nameOf(endpoint: string, { tool, args }: HostCall): string {
  return createHash('sha256')
    .update(canonicalJson([endpoint, tool, args]))
    .digest('hex');
}

function challengeOf(reply: Reply): Challenge | undefined {
  if (reply.kind === 'challenge') return reply.challenge;
  return reply.kind === 'result' ? challengeIn(reply.result) : undefined;
}

/** Shops differ in where they look. They all get the same payment. */
function metaOf({ payment }: PendingPayment): Json {
  const [key, other] = PAYMENT_KEYS;
  return { [key]: payment, [other]: typeof payment === 'string' ? payment : base64Of(payment) };
}

function base64Of(payment: Json): string {
  return Buffer.from(JSON.stringify(payment)).toString('base64');
}

/** How long to wait before the same payment is sent again; undefined if that would change nothing. */
function retryMs(reply: Reply, attempt: number): number | undefined {
  const backoff = Math.min(RETRY_MS * 2 ** attempt, MAX_RETRY_MS);
  if (reply.kind === 'lost') return backoff;
  if (reply.kind !== 'result') return undefined;
  const { status, retryAfterSeconds } = stateIn(reply.result);
  if (status !== 503 && retryAfterSeconds === undefined) return undefined;
  return Math.max(RETRY_MS, (retryAfterSeconds ?? 0) * 1_000);
}

function firstText({ content: [first] }: ToolResult): string {
  return typeof first?.text === 'string' ? first.text.slice(0, 500) : 'the shop gives no reason';
}

function overBudget({ amount }: Offer, left: bigint): string {
  return `The price is ${usdc(amount)}, but only ${usdc(left)} of today's budget is left. Nothing was paid. The budget is whole again at 00:00 UTC; its owner can raise --budget.`;
}

function usdc(amount: bigint): string {
  return `${toDecimal(amount)} USDC`;
}
