import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Caller, Ledger } from '../ledger/store.js';
import { readSecrets, type AnswerSecret } from './answer-secrets.js';

const ID_BYTES = 32;
const MAC_BYTES = 32;
const NUMBER_BYTES = 4;
const KEY_BYTES = ID_BYTES + MAC_BYTES;
const KEY = /^[A-Za-z0-9_-]{86}$/;

/**
 * The key for fetching the answer of a payment, and the URL if the contract has a path for fetching answers.
 */
export type AnswerLink = { key: string; url: string | undefined };

/**
 * Answer keys. Anyone with the key of a payment may fetch its answer without the payment, so a key is given only to callers who sent the
 * payment, and it is never logged. It consists of the payment's public id, the number of the caller that got the key, and the HMAC-SHA-256
 * of both under a secret of the ledger, cut to 28 bytes. Every server computes the same key, no index is needed, and a forged key costs no
 * read. A caller that may be a stranger has number 0; its key is the id and the whole HMAC.
 */
export class AnswerKeys {
  #secrets: readonly Secret[];
  readonly #prefix: string | undefined;
  readonly #now: () => number;

  /** @param prefix the URL that a key is appended to */
  constructor(secrets: readonly AnswerSecret[], prefix: string | undefined, now: () => number = Date.now) {
    this.#secrets = secrets.map(secretOf);
    this.#prefix = prefix;
    this.#now = now;
  }

  static async open(ledger: Notes, prefix: string | undefined): Promise<AnswerKeys> {
    return new AnswerKeys(await readSecrets(ledger, Date.now()), prefix);
  }

  /** Reloads the secrets from the ledger, because the operator may have changed them. */
  async refresh(ledger: Notes): Promise<void> {
    this.#secrets = (await readSecrets(ledger, this.#now())).map(secretOf);
  }

  linkOf({ id, number }: Caller): AnswerLink {
    const bytes = number === 0 ? Buffer.from(id, 'hex') : signedBytes(id, number);
    const now = this.#now();
    const secret = this.#secrets.findLast(each => each.from <= now) ?? this.#secrets[0];
    if (!secret) throw new Error('the ledger has no secret for answer keys');
    const key = Buffer.concat([bytes, macOf(bytes, secret)])
      .subarray(0, KEY_BYTES)
      .toString('base64url');
    return { key, url: this.#prefix === undefined ? undefined : this.#prefix + key };
  }

  /** The caller that got a key or its URL; undefined if the key is not from this ledger. */
  callerOf(text: string): Caller | undefined {
    const key =
      this.#prefix !== undefined && text.startsWith(this.#prefix) ? text.slice(this.#prefix.length) : text;
    if (!KEY.test(key)) return undefined;
    const bytes = Buffer.from(key, 'base64url');
    if (bytes.length !== KEY_BYTES) return undefined;
    const id = bytes.toString('hex', 0, ID_BYTES);
    if (this.#made(bytes, ID_BYTES)) return { id, number: 0 };
    return this.#made(bytes, ID_BYTES + NUMBER_BYTES)
      ? { id, number: bytes.readUInt32BE(ID_BYTES) }
      : undefined;
  }

  /** Whether the bytes of a key from `length` on are the HMAC of the bytes before them, under a secret that is in force. */
  #made(bytes: Buffer, length: number): boolean {
    const mac = bytes.subarray(length);
    const now = this.#now();
    return this.#secrets
      .filter(({ until }) => until === null || until > now)
      .some(secret => timingSafeEqual(mac, macOf(bytes.subarray(0, length), secret).subarray(0, mac.length)));
  }
}

type Notes = Pick<Ledger, 'getMeta' | 'setMeta' | 'keepMeta'>;
type Secret = Omit<AnswerSecret, 'secret'> & { bytes: Buffer };

function secretOf({ secret, from, until }: AnswerSecret): Secret {
  return { bytes: Buffer.from(secret, 'hex'), from, until };
}

function macOf(id: Buffer, secret: Secret): Buffer {
  return createHmac('sha256', secret.bytes).update(id).digest();
}

function signedBytes(id: string, number: number): Buffer {
  const bytes = Buffer.alloc(ID_BYTES + NUMBER_BYTES, id, 'hex');
  bytes.writeUInt32BE(number, ID_BYTES);
  return bytes;
}
