import { Keypair } from '@solana/web3.js';
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { craftPayment, v2Header } from './craft.js';
import { challengeOf, post } from './world.js';
import { priceOf } from './sold.js';

export const PANEL_TOKEN = 'a-token-that-nobody-guesses';
export const BRAND_PATH = '/brand-feedback';
export const BRAND_PRICE = priceOf('brandFeedback');

const OPEN_WITHIN_MS = 20_000;

/** A person with a browser, on the panel page of one server. */
export class Respondent {
  #url: string;
  #cookie = '';

  constructor(url: string) {
    this.#url = url;
  }

  /** Continues at another address with the same cookie. */
  moveTo(url: string): void {
    this.#url = url;
  }

  /** @returns the status of the answer: 303 when the token was right */
  async signIn(token = PANEL_TOKEN): Promise<number> {
    const response = await this.#post('/panel/login', { token });
    const { status, headers } = response;
    await response.arrayBuffer();
    this.#cookie = (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
    return status;
  }

  async page(): Promise<string> {
    return (await fetch(`${this.#url}/panel/`, { headers: { cookie: this.#cookie } })).text();
  }

  /** Sends the form as the page's script does. @returns its outcome */
  async reply(question: string, text: string, sentiment = 'neutral'): Promise<string> {
    const form = /name="form" value="([^"]+)"/.exec(await this.page())?.[1] ?? '';
    const fields = { form, question, text, sentiment };
    const { outcome } = (await (await this.#post('/panel/reply', fields)).json()) as { outcome: string };
    return outcome;
  }

  /** Waits until the question is open, and answers it. */
  async answer(question: string, text: string, sentiment = 'neutral'): Promise<void> {
    for (const end = Date.now() + OPEN_WITHIN_MS; Date.now() < end; await pause(100)) {
      const said = await this.reply(question, text, sentiment);
      if (said === 'added') return;
      if (said !== 'closed') throw new Error(`the reply was not added: ${said}`);
    }
    throw new Error(`the question ${question} was never open`);
  }

  async #post(path: string, fields: Record<string, string>): Promise<Response> {
    const response = await fetch(this.#url + path, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { origin: this.#url, cookie: this.#cookie, accept: 'application/json' },
      redirect: 'manual',
    });
    return response;
  }
}

export async function signedIn(url: string): Promise<Respondent> {
  const respondent = new Respondent(url);
  await respondent.signIn();
  return respondent;
}

/** A new payment for brandFeedback that no server has seen; `id` is its id in the ledger and the id of its question. */
export type BrandPayment = {
  id: string;
  headers: Record<string, string>;
  offer: object;
  transaction: string;
};

export async function signBrand(url: string, buyer: Uint8Array, extensions?: object): Promise<BrandPayment> {
  const [offer = {}] = challengeOf(await post(url + BRAND_PATH, {})).accepts;
  const { extra, payTo } = offer as { extra: { feePayer: string; recentBlockhash: string }; payTo: string };
  const { transaction, messageBytes } = craftPayment({
    payer: Keypair.fromSecretKey(buyer),
    feePayer: extra.feePayer,
    blockhash: extra.recentBlockhash,
    payTo,
    amount: BRAND_PRICE,
  });
  return {
    id: createHash('sha256').update(messageBytes).digest('hex'),
    headers: { 'PAYMENT-SIGNATURE': v2Header(offer, transaction, extensions) },
    offer,
    transaction,
  };
}
