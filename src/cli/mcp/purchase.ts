import { createHash } from 'node:crypto';
import type { Json } from '../../contract/json.js';
import { toDecimal } from '../../contract/price.js';
import { pause } from '../../net/deadline.js';
import { canonicalJson } from '../../sale/fingerprint.js';
import {
  challengeIn,
  chooseOffer,
  linkIn,
  reasonOf,
  receiptIn,
  stateIn,
  type Challenge,
  type Offer,
  type ToolResult,
} from './tool-result.js';
import type { Fate, Fates } from './fate.js';
import type { PendingPayment, Purse } from './purse.js';
import { errorResult, withNote, type Note } from './results.js';
import type { CallOptions, Reply, Shop } from './shop-connection.js';
import type { Signed, Signer } from './signer.js';

export type Limits = { maxPrice: bigint; budget: bigint };

export type BuyerParts = {
  shop: Pick<Shop, 'endpoint' | 'call'>;
  purse: Purse;
  signer: Signer;
  fates: Pick<Fates, 'of' | 'chainClock'>;
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
const MINUTE_MS = 60_000;
/**
 * How long after its signature a payment is given up that is settled, or may be, and that the shop refuses, or answers with a failure. A
 * shop that first took it for lost finds it on chain within minutes; a backend may be down for hours.
 */
const GIVE_UP_MS = { refused: 15 * MINUTE_MS, failed: 24 * 60 * MINUTE_MS };
/** A refused payment of which the chain can't tell what became of it is given up after this time. */
const UNSURE_MS = 24 * 60 * MINUTE_MS;
/** After this time a payment is given up whatever the shop says: none keeps an answer for so long. */
const FORGET_MS = 30 * 24 * 60 * MINUTE_MS;

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
    const { shop, purse, signer, fates, limits } = this.#parts;
    const offer = chooseOffer(challenge, signer.address);
    if (typeof offer === 'string')
      return errorResult(`The shop can't be paid: ${offer}. Nothing was paid.`, this.#note());
    const refused = await this.#overLimit(offer);
    if (refused !== undefined) return errorResult(refused, this.#note());
    let signed: Signed;
    const signedOnChain = await fates.chainClock(offer.network.caip2);
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
      ...(signedOnChain ? { signedOnChain } : {}),
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

  /**
   * Releases the payments of which the chain shows that they were not settled and never will be, and gives up those that are very old.
   * A look at the chain takes a while, so each sweep looks for a few: those for which it has not been searched for longest.
   */
  async sweep(atMost = 3): Promise<void> {
    const { purse } = this.#parts;
    const unsure = purse.pending().filter(({ landed }) => landed === undefined);
    const next = unsure.toSorted((a, b) => (a.lookedAt ?? 0) - (b.lookedAt ?? 0)).slice(0, atMost);
    await Promise.all(next.map(each => this.#look(each)));
    for (const { id, signedAt } of purse.pending())
      if (Date.now() - signedAt > FORGET_MS) purse.unanswered(id, 'the shop gave no answer in 30 days');
  }

  /** Searches the chain for a payment, and records what it shows. */
  async #look(payment: PendingPayment): Promise<Fate> {
    const { purse, fates } = this.#parts;
    const fate = await fates.of(payment);
    if (fate.kind === 'dead') purse.release(payment.id);
    if (fate.kind === 'landed') purse.update(payment.id, { landed: fate.signature });
    if (fate.kind === 'open') purse.update(payment.id, { lookedAt: Date.now() });
    return fate;
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
      if (picked.kind === 'result' && isRefunded(picked.result))
        return this.#refunded(payment, picked.result);
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
        return this.#failed(payment, `The shop answered with an error: ${reply.error}`);
      const wait = retryMs(reply, attempt);
      if (reply.kind === 'result') {
        if (isRefunded(reply.result)) return this.#refunded(payment, reply.result);
        const settled = this.#settle(payment, reply.result);
        if (settled) return settled;
        if (wait === undefined)
          return this.#failed(payment, `The call failed: ${firstText(reply.result)}`, reply.result);
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
    this.#parts.purse.answered(payment.id, transaction, linkIn(result));
    return withNote(result, { ...this.#note(), paid: BigInt(payment.amount), transaction });
  }

  /** The shop refused the payment. That frees neither the call nor the money, because the shop could still settle it. */
  async #refused(
    payment: PendingPayment,
    challenge: Challenge,
    asked: HostCall,
    deadline: number,
  ): Promise<ToolResult> {
    const reason = reasonOf(challenge);
    this.#parts.purse.refused(payment, reason);
    const fate = await this.#look(payment);
    const age = Date.now() - payment.signedAt;
    if (fate.kind !== 'dead' && age > (fate.kind === 'landed' ? GIVE_UP_MS.refused : UNSURE_MS))
      return this.#giveUp(payment, fate, reason);
    if (fate.kind === 'landed')
      return this.#kept(
        payment,
        `The shop refuses the payment (${reason}), though it was settled as ${fate.signature}`,
      );
    if (fate.kind === 'open')
      return this.#kept(
        payment,
        `The shop refused the payment: ${reason}. No other is signed for this call yet: ${fate.why}`,
      );
    const left = deadline - Date.now();
    if (left < LEAST_MS || asked.signal.aborted)
      return errorResult(
        `The shop refused the payment: ${reason}. It was not settled. Call again.`,
        this.#note(),
      );
    // Only once: a shop that refuses the new payment, too, finds it young.
    return this.#buy(payment.call, challenge, asked, deadline);
  }

  /** A final answer that is not the one that was bought. A shop that says that it was paid owes the answer still. */
  async #failed(payment: PendingPayment, error: string, result?: ToolResult): Promise<ToolResult> {
    const owes = result !== undefined && receiptIn(result)?.success === true;
    if (owes || Date.now() - payment.signedAt <= GIVE_UP_MS.failed) return this.#kept(payment, error, result);
    const fate = await this.#look(payment);
    if (fate.kind !== 'dead') return this.#giveUp(payment, fate, error);
    const next = `${sentence(error)} The payment was not settled and never will be. Nothing was paid; call again.`;
    return errorResult(next, this.#note(), result);
  }

  /** Closes a payment for which there is no answer any more, and says so, once. The next call is a new purchase. */
  #giveUp(payment: PendingPayment, fate: Exclude<Fate, { kind: 'dead' }>, reason: string): ToolResult {
    const { id, tool, amount, signedAt } = payment;
    this.#parts.purse.unanswered(id, reason);
    const price = usdc(BigInt(amount));
    const landed = fate.kind === 'landed' ? fate.signature : undefined;
    const money =
      landed === undefined
        ? `Whether it was settled can't be seen (${fate.kind === 'open' ? fate.why : ''}), so it counts as spent`
        : `It was settled as ${landed} and is spent`;
    const error = [
      `There is no answer to this call any more: a payment of ${price} was signed for it at ${new Date(signedAt).toISOString()}, and the shop says: ${sentence(reason)}`,
      `${money}. The wallet has closed it. Nothing else was paid.`,
      `Tell the user: only the shop's operator can refund it. To call ${tool} with these arguments again is a new purchase, for which the user should be asked first.`,
    ].join(' ');
    return errorResult(error, { ...this.#note(), paid: BigInt(amount), transaction: landed });
  }

  /** The shop says that it paid the money back. Only the shop says so, so the payment stays counted. */
  #refunded(payment: PendingPayment, result: ToolResult): ToolResult {
    const { id, tool, amount } = payment;
    this.#parts.purse.refunded(id, firstText(result));
    const error = [
      `There is no answer to this call: the shop says that it refunded the payment of ${usdc(BigInt(amount))}: ${sentence(firstText(result))}`,
      `The wallet has closed the payment; it stays counted in the budget of its day. Nothing else was paid.`,
      `To call ${tool} with these arguments again is a new purchase.`,
    ].join(' ');
    return errorResult(error, this.#note(), result);
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
    return errorResult(`${sentence(error)} ${next}`, note, result);
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

function isRefunded(result: ToolResult): boolean {
  return result.isError === true && receiptIn(result)?.errorReason === 'refunded';
}

function firstText({ content: [first] }: ToolResult): string {
  return typeof first?.text === 'string' ? first.text.slice(0, 500) : 'the shop gives no reason';
}

function sentence(text: string): string {
  return text.replace(/\.?$/, '.');
}

function overBudget({ amount }: Offer, left: bigint): string {
  return `The price is ${usdc(amount)}, but only ${usdc(left)} of today's budget is left. Nothing was paid. The budget is whole again at 00:00 UTC; its owner can raise --budget.`;
}

function usdc(amount: bigint): string {
  return `${toDecimal(amount)} USDC`;
}
