import { ed25519 } from '@noble/curves/ed25519.js';
import { base58 } from '@scure/base';
import { randomBytes } from 'node:crypto';
import type { Json } from '../contract/json.js';
import { isObject } from '../contract/references.js';
import { signedFields, textToSign, UnsignableField, type SignedFields } from './sign-in-text.js';

/** The header that carries a signed statement, and its place in the metadata of an MCP call. */
export const SIGN_IN_HEADER = 'sign-in-with-x';
/** The path at which a wallet gets the statement to sign. */
export const SIGN_IN_PATH = '/.well-known/coinslot/sign-in';

const LIFE_MS = 5 * 60_000;
/** How far the clock of a wallet may be ahead. */
const AHEAD_MS = 60_000;
/** How much longer a used statement is remembered, to allow for differing clocks of servers and database. */
const CLOCKS_DIFFER_MS = 60 * 60_000;
const NONCE = /^[A-Za-z0-9_-]{8,128}$/;
const MAX_SENT = 8_192;
const STATEMENT = 'Call free of charge, within the limits of this shop';

/** A wallet that has signed in. `use` identifies its statement, which can be used once until `endsAt` (ms since 1970). */
export type SignedIn = { wallet: string; use: string; endsAt: number };

/** Why a statement is refused: the code of x402's extension `sign-in-with-x`, and a message for human readers. */
export type SignInRefusal = { reason: string; error: string };

/** Verifies the statements that wallets sign according to x402's extension `sign-in-with-x`, on Solana. */
export class SignIns {
  readonly #url: URL;
  readonly #chainId: string;
  readonly #now: () => number;

  /** @param chainId CAIP-2 */
  constructor({ publicUrl, chainId }: { publicUrl: string; chainId: string }, now: () => number = Date.now) {
    this.#url = new URL(publicUrl);
    this.#chainId = chainId;
    this.#now = now;
  }

  /** The statement that a wallet can sign now, in the form that the extension has in a 402. */
  extension(): Json {
    const now = this.#now();
    const info = {
      domain: this.#url.host,
      uri: this.#url.origin,
      version: '1',
      nonce: randomBytes(16).toString('hex'),
      issuedAt: new Date(now).toISOString(),
      expirationTime: new Date(now + LIFE_MS).toISOString(),
      statement: STATEMENT,
    };
    return { info, supportedChains: [{ chainId: this.#chainId, type: 'ed25519' }] };
  }

  /** @param sent the value of the header, which is JSON in base64, or the JSON itself */
  read(sent: unknown): SignedIn | SignInRefusal {
    const said = typeof sent === 'string' ? jsonIn(sent) : sent;
    if (!isObject(said)) return refusal('malformed', 'it is not base64 of a JSON object');
    try {
      return this.#judge(signedFields(said), said);
    } catch (error) {
      if (!(error instanceof UnsignableField)) throw error;
      return refusal('malformed', `${error.message} ${error.missing ? 'is missing' : "can't be signed"}`);
    }
  }

  #judge(fields: SignedFields, { address, signature, type = 'ed25519' }: Json): SignedIn | SignInRefusal {
    const misfit = this.#misfit(fields, type) ?? this.#untimely(fields);
    if (misfit) return misfit;
    const key = bytesOf(address, 32);
    const signed = bytesOf(signature, 64);
    if (!key || !signed) return refusal('malformed_signature', 'address and signature must be base58');
    const text = textToSign(fields, base58.encode(key));
    if (!isSignedBy(key, Buffer.from(text), signed))
      return refusal('signature', 'this wallet has not signed these fields');
    const wallet = base58.encode(key);
    const endsAt = timeIn(fields, 'issuedAt') + LIFE_MS + CLOCKS_DIFFER_MS;
    return { wallet, use: `statement ${wallet} ${String(fields['nonce'])}`, endsAt };
  }

  /** Why a statement is meant for another shop or chain, or lacks the required form; undefined if nothing is wrong. */
  #misfit({ domain, uri, version, chainId, nonce }: SignedFields, type: unknown): SignInRefusal | undefined {
    const { host, origin } = this.#url;
    if (domain !== host) return refusal('domain_mismatch', `domain is ${String(domain)}, not ${host}`);
    const place = String(uri);
    if (!URL.canParse(place) || new URL(place).origin !== origin)
      return refusal('uri_mismatch', `uri is ${place}, which does not belong to ${origin}`);
    if (chainId !== this.#chainId || type !== 'ed25519')
      return refusal('unsupported_chain', `only ${this.#chainId} with ed25519 is accepted here`);
    if (version !== '1') return refusal('malformed', "version must be '1'");
    if (!NONCE.test(String(nonce)))
      return refusal('nonce', 'nonce must be 8 to 128 letters, digits, _ and -');
    return undefined;
  }

  #untimely(fields: SignedFields): SignInRefusal | undefined {
    const now = this.#now();
    const issued = timeIn(fields, 'issuedAt');
    if (Number.isNaN(issued)) return refusal('malformed', 'issuedAt is not a time');
    if (issued > now + AHEAD_MS) return refusal('issued_at_in_future', 'issuedAt is in the future');
    if (issued <= now - LIFE_MS) return refusal('issued_at_too_old', 'it is older than five minutes');
    if (fields['expirationTime'] !== undefined && !(timeIn(fields, 'expirationTime') > now))
      return refusal('expired', `it expired at ${String(fields['expirationTime'])}`);
    if (fields['notBefore'] !== undefined && !(timeIn(fields, 'notBefore') <= now + AHEAD_MS))
      return refusal('not_yet_valid', `it is not valid before ${String(fields['notBefore'])}`);
    return undefined;
  }
}

function refusal(word: string, why: string): SignInRefusal {
  const reason = `invalid_siwx_${word}`;
  return { reason, error: `the signed statement is refused, ${reason}: ${why}` };
}

function timeIn(fields: SignedFields, name: string): number {
  return Date.parse(String(fields[name]));
}

function bytesOf(value: unknown, length: number): Uint8Array | undefined {
  // Decoding base58 takes time that grows with the square of its length.
  if (typeof value !== 'string' || value.length > 1.4 * length) return undefined;
  try {
    const bytes = base58.decode(value);
    return bytes.length === length ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** Refuses keys of small order, in any encoding, because anyone can forge signatures for them. */
function isSignedBy(key: Uint8Array, text: Uint8Array, signature: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, text, key, { zip215: false });
  } catch {
    return false;
  }
}

function jsonIn(base64: string): unknown {
  if (base64.length > MAX_SENT) return undefined;
  try {
    return JSON.parse(Buffer.from(base64, 'base64').toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
