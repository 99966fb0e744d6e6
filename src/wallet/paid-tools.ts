import { createHash } from 'node:crypto';
import type { Json } from '../contract/json.js';
import { canonicalJson } from '../contract/fingerprint.js';
import { sentence, usdc, Buyer, type BuyerParts, type Call, type Reply } from './purchase.js';
import type { PendingPayment } from './purse.js';
import { withLinkedFile, withoutBytes, type AnswerFiles } from './answer-files.js';
import { errorResult, withNote, type Note } from './results.js';
import type { CallOptions, Shop, ShopReply } from './shop-connection.js';
import { challengeIn, linkIn, receiptIn, stateIn, type ToolResult } from './tool-result.js';

/** One tool call by the host. */
export type HostCall = { tool: string; args: Json } & Pick<CallOptions, 'signal' | 'onProgress'>;

const PAYMENT_KEYS = ['x402/payment', 'x402.payment'] as const;
const PICK_UP = 'pick_up';
const LEAST_WAIT_MS = 1_000;
/** The minimum time for reading a file that a result links to, even if the call has run out of time. */
const LEAST_READ_MS = 5_000;

type Parts = BuyerParts & { shop: Pick<Shop, 'endpoint' | 'call' | 'read'>; files: AnswerFiles };

/** Calls tools of a shop, pays for them, and reports the outcome and the cost to the host. */
export class PaidTools {
  readonly #parts: Parts;
  readonly #buyer: Buyer;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#buyer = new Buyer(parts);
  }

  /** @throws PurseFault, TooDeep */
  async call(asked: HostCall): Promise<ToolResult> {
    const deadline = Date.now() + this.#parts.timeoutMs;
    let delivered: ToolResult | undefined;
    const outcome = await this.#buyer.buy({
      ...this.#callOf(asked),
      // An answer that can't be saved is not delivered: its payment is kept, so that repeating the call tries again.
      deliver: answer => void (delivered = withoutBytes(answer, asked.tool, this.#parts.files)),
    });
    const { kind, answer } = outcome;
    if (kind === 'unpriced')
      return this.#inFiles(withoutBytes(answer, asked.tool, this.#parts.files), asked, deadline);
    if (kind === 'unpaid') return errorResult(outcome.error, this.#note(), answer);
    const { payment } = outcome;
    const amount = BigInt(payment.amount);
    const settled = { ...this.#note(), paid: amount };
    if (kind === 'answered') {
      const shown = await this.#inFiles(delivered ?? outcome.answer, asked, deadline);
      return withNote(shown, { ...settled, transaction: outcome.landed });
    }
    if (kind === 'closed') {
      const next = `Tell the user that calling ${asked.tool} with these arguments again is a new purchase, and ask before you do that.`;
      const note = { ...settled, transaction: outcome.landed };
      return errorResult(`${outcome.error} ${next}`, note, answer);
    }
    const error = outcome.waiting ? `No answer yet: ${outcome.error}` : outcome.error;
    const next = `The payment of ${usdc(amount)} is kept: call ${asked.tool} with the same arguments to continue without paying twice.`;
    const note = { ...this.#note(), reserved: amount, transaction: payment.landed };
    return errorResult(`${sentence(error)} ${next}`, note, answer);
  }

  /** Saves to a file the content that a result links to. */
  #inFiles(result: ToolResult, { tool }: HostCall, deadline: number): Promise<ToolResult> {
    const { shop, files } = this.#parts;
    const withinMs = Math.max(LEAST_READ_MS, deadline - Date.now());
    return withLinkedFile(result, tool, files, uri => shop.read(uri, withinMs));
  }

  sweep(): Promise<void> {
    return this.#buyer.sweep();
  }

  #callOf({ tool, args, signal, onProgress }: HostCall): Call<ToolResult> {
    const { shop } = this.#parts;
    const name = createHash('sha256')
      .update(canonicalJson([shop.endpoint, tool, args]))
      .digest('hex');
    const send = async (to: string, given: Json, meta: Json, withinMs: number): Promise<Reply<ToolResult>> =>
      replyOf(await shop.call(to, given, meta, { withinMs, signal, onProgress }));
    return {
      ...{ name, shop: shop.endpoint, tool, signal },
      send: (payment, withinMs) => send(tool, args, payment ? metaOf(payment) : {}, withinMs),
      pickUp: (key, withinMs) => send(PICK_UP, { key }, {}, withinMs),
    };
  }

  #note(): Note {
    const { purse, limits } = this.#parts;
    return { left: purse.left(limits.budget), budget: limits.budget };
  }
}

/** Interprets the shop's result. */
function replyOf(reply: ShopReply): Reply<ToolResult> {
  if (reply.kind === 'challenge') return { kind: 'price', challenge: reply.challenge };
  if (reply.kind === 'lost') return { kind: 'later', error: reply.error };
  if (reply.kind === 'refused')
    return { kind: 'failed', error: `The shop answered with an error: ${reply.error}`, owed: false };
  const { result: answer } = reply;
  const challenge = challengeIn(answer);
  if (challenge) return { kind: 'price', challenge };
  const receipt = receiptIn(answer);
  const paid = receipt?.success === true;
  const { status, retryAfterSeconds, pickUp } = stateIn(answer);
  const known = { landed: paid ? receipt.transaction : undefined, pickUp };
  // If the shop does not announce a later answer, this error is the sold answer.
  if (!answer.isError || (paid && status === undefined))
    return { kind: 'answer', answer, link: linkIn(answer), ...known };
  const error = firstText(answer);
  if (receipt?.errorReason === 'refunded') return { kind: 'refunded', error, answer };
  if (status !== 503 && retryAfterSeconds === undefined)
    return { kind: 'failed', error: `The call failed: ${error}`, owed: paid, answer, ...known };
  const afterMs = Math.max(LEAST_WAIT_MS, (retryAfterSeconds ?? 0) * 1_000);
  return { kind: 'later', error, afterMs, answer, ...known };
}

/** The payment is sent in all places where shops may look for it. */
function metaOf({ payment }: PendingPayment): Json {
  const [key, other] = PAYMENT_KEYS;
  const base64 =
    typeof payment === 'string' ? payment : Buffer.from(JSON.stringify(payment)).toString('base64');
  return { [key]: payment, [other]: base64 };
}

function firstText({ content: [first] }: ToolResult): string {
  return typeof first?.text === 'string' ? first.text.slice(0, 500) : 'the shop gives no reason';
}
