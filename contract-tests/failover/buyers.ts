import { setTimeout as sleep } from 'node:timers/promises';
import type { Keypair } from '@solana/web3.js';
import { messageOf } from '../../src/ledger/fault.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { sha256 } from '../support/test-chain.js';
import { offerOf, post, recipeOf, TEXT, type Answer } from '../support/world.js';

const PAUSE_MS = 100;
const RESEND_MS = 500;
/** How long a buyer keeps trying to complete a purchase. */
const PATIENCE_MS = 240_000;

/** A call to be bought once. `payments`: the ids of all payments that its buyer signed for it. */
export type Purchase = { text: string; payments: string[]; began: number; answered?: number };

/** Buyers that each buy one call after the other from the servers in turn, and send the same payment again while they get 503. */
export class Buyers {
  readonly purchases: Purchase[] = [];
  readonly statuses = new Map<string, number>();
  /** Errors that no buyer should see. */
  readonly faults: string[] = [];
  readonly #urls: string[];
  readonly #buying: Promise<void>[];
  #isOver = false;
  #sent = 0;

  constructor(urls: string[], payers: Keypair[]) {
    this.#urls = urls;
    this.#buying = payers.map(payer => this.#buyAll(payer));
  }

  /** Waits until all purchases under way have ended. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#buying);
  }

  /** The times at which answers arrived. */
  get sales(): number[] {
    const times = this.purchases.flatMap(({ answered }) => answered ?? []);
    return times.toSorted((a, b) => a - b);
  }

  async #buyAll(payer: Keypair): Promise<void> {
    for (; !this.#isOver; await sleep(PAUSE_MS)) {
      const purchase: Purchase = {
        text: `${TEXT} Call ${this.purchases.length}.`,
        payments: [],
        began: Date.now(),
      };
      this.purchases.push(purchase);
      await this.#buy(purchase, payer).catch((error: unknown) => this.faults.push(messageOf(error)));
    }
  }

  async #buy(purchase: Purchase, payer: Keypair): Promise<void> {
    const end = Date.now() + PATIENCE_MS;
    let header = await this.#sign(purchase, payer, end);
    while (header !== undefined && Date.now() < end) {
      const answer = await this.#send(purchase, header);
      if (answer.status === 200) {
        purchase.answered = Date.now();
        return;
      }
      // The buyer was not charged: the payment expired while nothing could be sold.
      if (answer.status === 402) header = await this.#sign(purchase, payer, end);
      await sleep(RESEND_MS);
    }
    this.faults.push(`nobody answered “${purchase.text.slice(TEXT.length + 1)}”`);
  }

  async #sign({ payments }: Purchase, payer: Keypair, end: number): Promise<string | undefined> {
    for (; Date.now() < end; await sleep(RESEND_MS)) {
      const offer = await offerOf(this.#next()).catch(() => undefined);
      if (offer === undefined) continue;
      const { transaction, messageBytes } = craftPayment(recipeOf(offer, payer));
      payments.push(sha256(messageBytes));
      return v2Header(offer, transaction);
    }
    return undefined;
  }

  async #send({ text }: Purchase, header: string): Promise<Answer> {
    const answer = await post(`${this.#next()}/v1/summarize`, { text }, { 'PAYMENT-SIGNATURE': header });
    const { status } = answer;
    this.statuses.set(String(status), (this.statuses.get(String(status)) ?? 0) + 1);
    const isExpected =
      status === 200 || status === 402 || (status === 503 && answer.headers.has('retry-after'));
    if (!isExpected) this.faults.push(`${status} ${answer.body.toString().slice(0, 200)}`);
    return answer;
  }

  #next(): string {
    return this.#urls[this.#sent++ % this.#urls.length]!;
  }
}
