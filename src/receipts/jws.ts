import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { canonicalJson } from '../contract/fingerprint.js';
import type { Json } from '../contract/json.js';
import { isObject } from '../contract/references.js';

/** A JWS in compact form, split into its parts but not verified. */
export type Jws = { header: Json; payload: Json; signed: string; signature: Buffer };

const PART = /^[A-Za-z0-9_-]+$/;

/** The first part of every JWS with this header. */
export function encodedHeader(header: Json): string {
  return Buffer.from(JSON.stringify(header)).toString('base64url');
}

/**
 * Signs with Ed25519 (`alg` EdDSA; RFC 8037). The payload is canonical JSON (RFC 8785).
 * @param header the result of `encodedHeader`
 */
export function signedJws(header: string, payload: Json, key: KeyObject): string {
  const input = `${header}.${Buffer.from(canonicalJson(payload)).toString('base64url')}`;
  return `${input}.${sign(null, Buffer.from(input), key).toString('base64url')}`;
}

/** @returns undefined unless the text is a JWS in compact form whose header and payload are JSON objects */
export function readJws(text: string): Jws | undefined {
  const parts = text.split('.');
  const [head = '', body = '', mac = ''] = parts;
  if (parts.length !== 3 || !parts.every(part => PART.test(part))) return undefined;
  const [header, payload] = [objectIn(head), objectIn(body)];
  if (!header || !payload) return undefined;
  return { header, payload, signed: `${head}.${body}`, signature: Buffer.from(mac, 'base64url') };
}

/** Whether the key of an Ed25519 JWK made the signature. No other algorithm is accepted, whatever the header says. */
export function isSignedBy({ header, signed, signature }: Jws, jwk: Json): boolean {
  if (header.alg !== 'EdDSA' || jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519' || typeof jwk.x !== 'string')
    return false;
  try {
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: jwk.x }, format: 'jwk' });
    return verify(null, Buffer.from(signed), key, signature);
  } catch {
    return false;
  }
}

function objectIn(part: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
