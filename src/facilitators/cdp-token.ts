import { createPrivateKey, randomBytes, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose';

/** A key of the Coinbase Developer Platform: its id, and its secret as the portal shows it (base64, or PEM for an ECDSA key). */
export type CdpKey = { id: string; secret: string };

/** The headers that authorize one request. `target`: host and path, without query. */
export type Authorize = (method: 'GET' | 'POST', target: string) => Promise<Record<string, string>>;

const LIFE_SECONDS = 120;
const NONCE_BYTES = 16;
/** An Ed25519 secret consists of the seed and the public key. */
const SEED_BYTES = 32;
const SECRET_BYTES = 64;

/**
 * Signs a token for each request, as Coinbase's API requires (CDP documentation, JWT Authentication): the token names the key, is valid for
 * two minutes and for one method, host and path.
 * @throws TypeError if the secret is neither of the two kinds; the message does not show it
 */
export function cdpAuthorization(key: CdpKey, now: () => number = Date.now): Authorize {
  const { alg, privateKey } = readSecret(key.secret);
  return async (method, target) => {
    const seconds = Math.floor(now() / 1_000);
    const token = await new SignJWT({ uris: [`${method} ${target}`] })
      .setProtectedHeader({ alg, typ: 'JWT', kid: key.id, nonce: randomBytes(NONCE_BYTES).toString('hex') })
      .setIssuer('cdp')
      .setSubject(key.id)
      .setIssuedAt(seconds)
      .setNotBefore(seconds)
      .setExpirationTime(seconds + LIFE_SECONDS)
      .sign(privateKey);
    return { authorization: `Bearer ${token}` };
  };
}

function readSecret(secret: string): { alg: 'EdDSA' | 'ES256'; privateKey: KeyObject } {
  if (secret.includes('-----BEGIN')) {
    const privateKey = pem(secret.replaceAll('\\n', '\n'));
    if (privateKey?.asymmetricKeyDetails?.namedCurve === 'prime256v1') return { alg: 'ES256', privateKey };
  }
  const bytes = Buffer.from(secret, 'base64');
  if (bytes.length !== SECRET_BYTES)
    throw new TypeError('it is neither an Ed25519 secret (64 bytes as base64) nor a PEM key of curve P-256');
  const [d, x] = [bytes.subarray(0, SEED_BYTES), bytes.subarray(SEED_BYTES)].map(part =>
    part.toString('base64url'),
  );
  const jwk = { kty: 'OKP', crv: 'Ed25519', d: String(d), x: String(x) };
  return { alg: 'EdDSA', privateKey: createPrivateKey({ key: jwk, format: 'jwk' }) };
}

function pem(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}
