import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Ledger } from '../ledger/store.js';

const SECRET = 'answer keys';
const SECRET_BYTES = 32;
const ID_BYTES = 32;
const MAC_BYTES = 32;
const KEY = /^[A-Za-z0-9_-]{86}$/;

/** The key with which the answer of a payment is fetched, and its URL if the contract has a path for that. */
export type AnswerLink = { key: string; url: string | undefined };

/**
 * Keys of answers. Who has the key of a payment may fetch its answer without the payment, so that it is told only to callers who sent
 * the payment, and is never logged. A key is the payment's id, which is public, and the HMAC-SHA-256 of it under a secret of the
 * ledger: the same at every server, found without an index, and a made-up one costs no read.
 */
export class AnswerKeys {
  readonly #secret: Buffer;
  readonly #prefix: string | undefined;

  /** @param prefix the URL that a key is appended to */
  constructor(secret: Buffer, prefix: string | undefined) {
    this.#secret = secret;
    this.#prefix = prefix;
  }

  /** Reads the secret of the ledger; the first server makes it. */
  static async open(ledger: Pick<Ledger, 'keepMeta'>, prefix: string | undefined): Promise<AnswerKeys> {
    const secret = await ledger.keepMeta(SECRET, randomBytes(SECRET_BYTES).toString('hex'));
    return new AnswerKeys(Buffer.from(secret, 'hex'), prefix);
  }

  /** @param id of the payment, in hex */
  linkOf(id: string): AnswerLink {
    const bytes = Buffer.from(id, 'hex');
    const key = Buffer.concat([bytes, this.#macOf(bytes)]).toString('base64url');
    return { key, url: this.#prefix === undefined ? undefined : this.#prefix + key };
  }

  /** The payment of a key or its URL; undefined if this ledger did not make it. */
  idOf(text: string): string | undefined {
    const key =
      this.#prefix !== undefined && text.startsWith(this.#prefix) ? text.slice(this.#prefix.length) : text;
    if (!KEY.test(key)) return undefined;
    const bytes = Buffer.from(key, 'base64url');
    if (bytes.length !== ID_BYTES + MAC_BYTES) return undefined;
    const id = bytes.subarray(0, ID_BYTES);
    return timingSafeEqual(bytes.subarray(ID_BYTES), this.#macOf(id)) ? id.toString('hex') : undefined;
  }

  #macOf(id: Buffer): Buffer {
    return createHmac('sha256', this.#secret).update(id).digest();
  }
}
