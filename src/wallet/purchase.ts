import { toDecimal } from '../price/amount.js';
import { messageOf } from '../ledger/fault.js';
import { pause } from '../net/deadline.js';
import type { Fate, Fates } from './fate.js';
import { chooseOffer, reasonOf, type Challenge, type Offer } from './offer.js';
import type { PendingPayment, Purse } from './purse.js';
import type { Signed, Signer } from './signer.js';

/** Limits in atomic units of USDC: for one call, and for one day (UTC). */
export type Limits = { maxPrice: bigint; budget: bigint };

export type BuyerParts = {
  purse: Purse;
  signer: Signer;
  fates: Pick<Fates, 'of' | 'chainClock'>;
  limits: Limits;
  /** How long one call may take, in ms. */
  timeoutMs: number;
  /** How long one request may take; by default as long as the call. */
  attemptMs?: number;
};

/**
 * A shop's answer to one request. `later`: no answer yet, or the connection was lost. `failed`: a final answer that is not the one that
 * was bought; `owed`: the shop says that it was paid.
 */
export type Reply<A> = {
  /** The signature of the transfer, if a receipt shows it. */
  landed?: string | undefined;
  /** The shop's key to the answer. */
  pickUp?: string | undefined;
} & (
  | { kind: 'answer'; answer: A; link?: string | undefined }
  | { kind: 'price'; challenge: Challenge }
  | { kind: 'later'; error: string; afterMs?: number; answer?: A }
  | { kind: 'refunded'; error: string; answer: A }
  | { kind: 'failed'; error: string; owed: boolean; answer?: A }
);

/** One call to a shop, over any transport. */
export type Call<A> = {
  /** Two calls with the same name are the same call, which has at most one payment without an answer. */
  name: string;
  shop: string;
  tool: string;
  signal: AbortSignal;
  /** Sends the call once. Never rejects. */
  send(payment: PendingPayment | undefined, withinMs: number): Promise<Reply<A>>;
  /** Fetches the answer by its key. Never rejects. */
  pickUp?(key: string, withinMs: number): Promise<Reply<A>>;
  onPrice?(amount: bigint): void;
  /** Called when the payment is on disk and about to be sent. @param resumed whether an earlier call signed it */
  onKept?(payment: PendingPayment, resumed: boolean): void;
  onWait?(error: string, waitMs: number): void;
  /** Hands the answer over, before its payment is closed. If it throws, the payment is kept. */
  deliver?(answer: A): void;
};

/**
 * How a call ended. The texts are sentences that report what happened to the money. `kept`: the same call continues with the payment.
 * `closed`: the answer is gone and the payment counts as spent; the next call is a new purchase.
 */
export type Outcome<A> =
  | { kind: 'unpriced'; answer: A }
  | { kind: 'unpaid'; error: string; answer?: A | undefined }
  | { kind: 'answered'; payment: PendingPayment; answer: A; landed: string | undefined }
  | { kind: 'kept'; payment: PendingPayment; error: string; answer?: A | undefined; waiting?: true }
  | { kind: 'closed'; payment: PendingPayment; error: string; answer?: A; landed?: string | undefined };

const RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;
/** With less time left than this, another request to the shop is not worthwhile. */
const LEAST_MS = 1_000;
const MINUTE_MS = 60_000;
/**
 * How long after signing a payment the wallet gives up on it if the shop refuses it or answers with a failure although it was, or may have
 * been, settled. A shop that has lost track of it finds it on chain within minutes; a backend may be down for hours.
 */
const GIVE_UP_MS = { refused: 15 * MINUTE_MS, failed: 24 * 60 * MINUTE_MS };
/** A refused payment whose outcome the chain can't show is given up after this time. */
const UNSURE_MS = 24 * 60 * MINUTE_MS;
/** After this time a payment is given up whatever the shop says, because no shop keeps an answer that long. */
const FORGET_MS = 30 * 24 * 60 * MINUTE_MS;

/**
 * Calls a shop and pays what it costs. A call has at most one payment whose outcome is not known: it is sent again until the shop
 * answers, or until the chain shows that it was not settled and never will be. Only then is another one signed.
 */
export class Buyer {
  readonly #parts: BuyerParts;

  constructor(parts: BuyerParts) {
    this.#parts = parts;
  }

  /** @throws PurseFault, and any error from `deliver` */
  async buy<A>(call: Call<A>): Promise<Outcome<A>> {
    const deadline = Date.now() + this.#parts.timeoutMs;
    const known = this.#parts.purse.find(call.name);
    if (known) return this.#continue(known, call, deadline);
    const reply = await call.send(undefined, this.#left(deadline));
    if (reply.kind === 'price') return this.#sign(reply.challenge, call, deadline);
    if (reply.answer !== undefined) return { kind: 'unpriced', answer: reply.answer };
    const error = 'error' in reply ? reply.error : '';
    return unpaid(`The shop ${call.shop} did not answer the call: ${error}`);
  }

  /** Signs a payment, keeps it, and only then sends it. */
  async #sign<A>(challenge: Challenge, call: Call<A>, deadline: number): Promise<Outcome<A>> {
    const { purse, signer, fates, limits } = this.#parts;
    const offer = chooseOffer(challenge, signer.address);
    if (typeof offer === 'string') return unpaid(`The shop can't be paid: ${offer}`);
    call.onPrice?.(offer.amount);
    const refused = await this.#overLimit<A>(offer);
    if (refused) return refused;
    const signedOnChain = await fates.chainClock(offer.network.caip2);
    let signed: Signed;
    try {
      signed = await signer.sign(offer);
    } catch (error) {
      return unpaid(messageOf(error));
    }
    const { id, transaction, blockhash, payment } = signed;
    const { name, shop, tool } = call;
    const { network, amount, payTo } = offer;
    const kept = {
      ...{ id, call: name, shop, tool, amount: String(amount), network: network.caip2, payTo, blockhash },
      ...{ transaction, ...(signedOnChain ? { signedOnChain } : {}) },
      payment: challenge.base64 ? Buffer.from(JSON.stringify(payment)).toString('base64') : payment,
    };
    const speaks = purse.add(kept, limits.budget);
    if (speaks?.kind === 'known') return this.#continue(speaks.pending, call, deadline);
    if (speaks?.kind === 'budget') return overBudget(offer, speaks.left);
    const found = purse.find(name);
    if (speaks || !found) {
      await this.sweep();
      return unpaid('Too many payments from this wallet have no answer yet', ' Make the same calls again.');
    }
    call.onKept?.(found, false);
    return this.#pay(found, call, deadline);
  }

  /** Why the limits forbid an offer; undefined if they allow it. If the budget seems too small, first takes dead payments out of it. */
  async #overLimit<A>(offer: Offer): Promise<Outcome<A> | undefined> {
    const { purse, limits } = this.#parts;
    const { maxPrice, budget } = limits;
    if (offer.amount > maxPrice) {
      const why = `The price is ${usdc(offer.amount)}, more than your limit of ${usdc(maxPrice)} for one call`;
      return unpaid(why, " The wallet's owner can raise --max-price.");
    }
    if (offer.amount > purse.left(budget)) await this.sweep();
    const rest = purse.left(budget);
    return offer.amount > rest ? overBudget(offer, rest) : undefined;
  }

  /**
   * Releases the payments that, according to the chain, were not settled and never will be, and gives up very old ones. Searching the chain
   * takes time, so each sweep searches for only a few: those that have waited longest since their last search.
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

  /** Continues with a payment that was signed for this call before, because its answer may be ready. */
  async #continue<A>(payment: PendingPayment, call: Call<A>, deadline: number): Promise<Outcome<A>> {
    call.onKept?.(payment, true);
    if (payment.pickUp !== undefined && call.pickUp) {
      const picked = await call.pickUp(payment.pickUp, this.#left(deadline));
      if (picked.kind === 'answer') return this.#answered(payment, picked, call);
      if (picked.kind === 'refunded') return this.#refunded(payment, picked);
    }
    return this.#pay(payment, call, deadline);
  }

  /** Sends the payment until the shop answers or refuses it, or until the time is up. */
  async #pay<A>(payment: PendingPayment, call: Call<A>, deadline: number): Promise<Outcome<A>> {
    for (let attempt = 0; ; attempt++) {
      const reply = await call.send(payment, this.#left(deadline));
      const { kind, landed, pickUp } = reply;
      if (kind === 'price') return this.#refused(payment, reply.challenge, call, deadline);
      if (kind === 'answer') return this.#answered(payment, reply, call);
      if (kind === 'refunded') return this.#refunded(payment, reply);
      if (pickUp || landed)
        this.#parts.purse.update(payment.id, {
          ...(pickUp ? { pickUp } : {}),
          ...(landed ? { landed } : {}),
        });
      if (kind === 'failed') return this.#failed(payment, reply);
      const { error, answer, afterMs = Math.min(RETRY_MS * 2 ** attempt, MAX_RETRY_MS) } = reply;
      if (Date.now() + afterMs + LEAST_MS > deadline)
        return { kind: 'kept', waiting: true, payment, error, answer };
      call.onWait?.(error, afterMs);
      await pause(afterMs, call.signal);
    }
  }

  #left(deadline: number): number {
    return Math.min(Math.max(LEAST_MS, deadline - Date.now()), this.#parts.attemptMs ?? Infinity);
  }

  #answered<A>(
    payment: PendingPayment,
    { answer, landed, link }: Extract<Reply<A>, { kind: 'answer' }>,
    call: Call<A>,
  ): Outcome<A> {
    const transfer = landed ?? payment.landed;
    call.deliver?.(answer);
    this.#parts.purse.answered(payment.id, transfer, link);
    return { kind: 'answered', payment, answer, landed: transfer };
  }

  /** The shop refused the payment. The call and the money stay bound to it, because the shop could still settle it. */
  async #refused<A>(
    payment: PendingPayment,
    challenge: Challenge,
    call: Call<A>,
    deadline: number,
  ): Promise<Outcome<A>> {
    const reason = reasonOf(challenge);
    this.#parts.purse.refused(payment, reason);
    const fate = await this.#look(payment);
    const age = Date.now() - payment.signedAt;
    if (fate.kind !== 'dead' && age > (fate.kind === 'landed' ? GIVE_UP_MS.refused : UNSURE_MS))
      return this.#giveUp(payment, fate, reason);
    if (fate.kind === 'landed') {
      const error = `The shop refuses the payment (${reason}), though it was settled as ${fate.signature}`;
      return { kind: 'kept', payment, error };
    }
    const error = sentence(`The shop refused the payment: ${reason}`);
    if (fate.kind === 'open')
      return {
        kind: 'kept',
        payment,
        error: `${error} A new payment is signed only once this one can no longer be settled: ${fate.why}`,
      };
    if (deadline - Date.now() < LEAST_MS || call.signal.aborted) return neverSettled(error);
    // A call signs a new payment only once: if the shop refuses that one, too, it may still be settled, so it is kept.
    return this.#sign(challenge, call, deadline);
  }

  /** A shop that confirms the payment still owes the answer. */
  async #failed<A>(
    payment: PendingPayment,
    { error, owed, answer }: Extract<Reply<A>, { kind: 'failed' }>,
  ): Promise<Outcome<A>> {
    if (owed || Date.now() - payment.signedAt <= GIVE_UP_MS.failed)
      return { kind: 'kept', payment, error, answer };
    const fate = await this.#look(payment);
    return fate.kind === 'dead' ? neverSettled(error, answer) : this.#giveUp(payment, fate, error);
  }

  /** Closes a payment whose answer can no longer be fetched, and reports this once. */
  #giveUp<A>(payment: PendingPayment, fate: Exclude<Fate, { kind: 'dead' }>, reason: string): Outcome<A> {
    const { id, amount, signedAt } = payment;
    this.#parts.purse.unanswered(id, reason);
    const landed = fate.kind === 'landed' ? fate.signature : undefined;
    const money =
      fate.kind === 'landed'
        ? `It was settled as ${fate.signature} and is spent`
        : `Whether it was settled can't be seen (${fate.why}), so it counts as spent`;
    const error = [
      `The answer to this call is gone: a payment of ${usdc(BigInt(amount))} was signed for it at ${new Date(signedAt).toISOString()}, and the shop says: ${sentence(reason)}`,
      `${money}. The wallet has closed it; only the shop's operator can refund it. Nothing else was paid.`,
    ].join(' ');
    return { kind: 'closed', payment, error, landed };
  }

  /** The shop reports a refund. This is not verified, so the payment still counts as spent. */
  #refunded<A>(
    payment: PendingPayment,
    { error: said, answer }: Extract<Reply<A>, { kind: 'refunded' }>,
  ): Outcome<A> {
    this.#parts.purse.refunded(payment.id, said);
    const price = usdc(BigInt(payment.amount));
    const error = [
      `There is no answer to this call: the shop says that it refunded the payment of ${price}: ${sentence(said)}`,
      `The wallet has closed the payment; it still counts against the budget of the day on which it was signed. Nothing else was paid.`,
    ].join(' ');
    return { kind: 'closed', payment, error, answer };
  }
}

function unpaid<A>(why: string, next = '', answer?: A): Outcome<A> {
  return { kind: 'unpaid', error: `${sentence(why)} Nothing was paid.${next}`, answer };
}

function neverSettled<A>(error: string, answer?: A): Outcome<A> {
  const why = `${sentence(error)} The payment was not settled and never will be`;
  return unpaid(why, ' Make the call again.', answer);
}

function overBudget<A>({ amount }: Offer, rest: bigint): Outcome<A> {
  const why = `The price is ${usdc(amount)}, but only ${usdc(rest)} of today's budget is left`;
  return unpaid(
    why,
    " The full budget is available again at 00:00 UTC; the wallet's owner can raise --budget.",
  );
}

export function sentence(text: string): string {
  return text.replace(/\.?$/, '.');
}

export function usdc(amount: bigint): string {
  return `${toDecimal(amount)} USDC`;
}
