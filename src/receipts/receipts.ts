import { createHash, webcrypto, type KeyObject } from 'node:crypto';
import type { Json } from '../contract/json.js';
import type { Log } from '../net/log.js';
import { didDocument, didOf, publicKeyOf } from './did-document.js';
import { encodedHeader, signedJws } from './jws.js';
import type { PublishedKeys } from './published-keys.js';

/** The type that distinguishes an answer receipt from other JWS of a shop (RFC 7515, 4.1.9). */
export const ANSWER_RECEIPT_TYPE = 'answer-receipt+jws';

/** The sold operation, and the hex sha256 of the call's input. */
export type SoldCall = { operation: string; requestHash: string };
/** The sold answer. */
type SoldAnswer = { status: number; body: Buffer };
/** The payment: `amount` in atomic units, `transaction` in base58 or empty. */
type PaidBy = { payer: string; transaction: string; amount?: string };

/** Two JWS in compact form. */
export type SignedReceipts = {
  /** x402's receipt (extension offer-receipt), which states that this payer got something at this URL. */
  receipt: string;
  /** Coinslot's own receipt, which states which payment bought which answer to which call. */
  answer: string;
};

type ReceiptParts = {
  key: KeyObject;
  publicUrl: string;
  /** CAIP-2. */
  network: string;
  /** The URL of an operation, as in its challenge. */
  urlOf: (operation: string) => string | undefined;
  published: PublishedKeys;
  log: Log;
  now?: () => number;
  refreshMs?: number;
};

/** Larger answers are hashed in a thread. */
const HASHED_HERE_BYTES = 256 * 1024;
const REFRESH_MS = 5_000;
const VERSION = 1;
const TOO_MANY =
  'this shop has published so many keys for receipts that the oldest were removed from did.json: keep STATE_DIR when a server restarts, or set RECEIPT_KEY_FILE on all servers';

/** Signs the receipts of a shop, and publishes the keys of its servers. */
export class Receipts {
  readonly #parts: ReceiptParts;
  readonly #did: string;
  readonly #headers: { receipt: string; answer: string };
  readonly #now: () => number;
  readonly #hashes = new WeakMap<Buffer, string>();
  readonly #timer: NodeJS.Timeout;
  #document: Json;
  #shown = '';
  /** Called with the document whenever the document changes. */
  onDocument: (document: Json) => void = () => {};

  private constructor(parts: ReceiptParts) {
    const { key, publicUrl, now = Date.now, refreshMs = REFRESH_MS } = parts;
    const { name } = publicKeyOf(key);
    this.#parts = parts;
    this.#now = now;
    this.#did = didOf(publicUrl);
    const kid = `${this.#did}#${name}`;
    this.#headers = {
      receipt: encodedHeader({ alg: 'EdDSA', kid }),
      answer: encodedHeader({ alg: 'EdDSA', kid, typ: ANSWER_RECEIPT_TYPE }),
    };
    this.#document = didDocument(this.#did, [publicKeyOf(key)]);
    this.#timer = setInterval(() => void this.#refresh(), refreshMs).unref();
  }

  /** Publishes this server's key in the ledger, and starts watching for keys of other servers. */
  static async open(parts: ReceiptParts): Promise<Receipts> {
    const forgotten = await parts.published.publish(publicKeyOf(parts.key));
    if (forgotten > 0) parts.log.warn({ forgotten }, TOO_MANY);
    const receipts = new Receipts(parts);
    await receipts.#refresh();
    return receipts;
  }

  /** `/.well-known/did.json`. */
  get document(): Json {
    return this.#document;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** @returns undefined for an operation that is no longer sold, because its URL is not known */
  async sign(
    { operation, requestHash }: SoldCall,
    { payer, transaction, amount }: PaidBy,
    { status, body }: SoldAnswer,
  ): Promise<SignedReceipts | undefined> {
    const { network, key, urlOf } = this.#parts;
    const resourceUrl = urlOf(operation);
    if (resourceUrl === undefined) return undefined;
    const answerSha256 = await this.#hashOf(body);
    const issuedAt = Math.floor(this.#now() / 1000);
    const receipt = { version: VERSION, network, resourceUrl, payer, issuedAt };
    const answer = {
      ...receipt,
      operation,
      ...(amount === undefined ? {} : { amount }),
      ...(transaction === '' ? {} : { transaction }),
      requestSha256: requestHash,
      answerStatus: status,
      answerSha256,
    };
    return {
      receipt: signedJws(this.#headers.receipt, receipt, key),
      answer: signedJws(this.#headers.answer, answer, key),
    };
  }

  async #hashOf(body: Buffer): Promise<string> {
    let hash = this.#hashes.get(body);
    if (hash === undefined) {
      hash =
        body.length > HASHED_HERE_BYTES
          ? Buffer.from(await webcrypto.subtle.digest('SHA-256', body)).toString('hex')
          : createHash('sha256').update(body).digest('hex');
      this.#hashes.set(body, hash);
    }
    return hash;
  }

  async #refresh(): Promise<void> {
    try {
      const document = didDocument(this.#did, await this.#parts.published.all());
      const shown = JSON.stringify(document);
      if (shown === this.#shown) return;
      [this.#document, this.#shown] = [document, shown];
      this.onDocument(document);
    } catch (error) {
      this.#parts.log.warn({ error }, 'could not read the receipt keys from the ledger');
    }
  }
}
