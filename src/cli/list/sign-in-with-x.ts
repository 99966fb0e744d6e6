import { base58 } from '@scure/base';
import { createPrivateKey, sign } from 'node:crypto';
import type { Json } from '../../contract/json.js';
import { toAddress } from '../../rails/solana/address.js';
import { isObject, textOf } from '../conformance/http-call.js';

/** It can't be signed in; the message says why, as the end of a sentence. */
export class SignInFault extends Error {}

/** What a text to sign may say, each on a line of its own, in this order (CAIP-122 in the form of Sign-In with Solana). */
const LINES: [name: string, title: string][] = [
  ['uri', 'URI'],
  ['version', 'Version'],
  ['chainId', 'Chain ID'],
  ['nonce', 'Nonce'],
  ['issuedAt', 'Issued At'],
  ['expirationTime', 'Expiration Time'],
  ['notBefore', 'Not Before'],
  ['requestId', 'Request ID'],
];
const NEEDED = ['domain', 'uri', 'version', 'nonce', 'issuedAt'];
const MAX_TEXT = 1_000;
const MAX_RESOURCES = 20;
// eslint-disable-next-line no-control-regex -- one of these would begin a line that was not meant
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/**
 * Signs in with a Solana key pair where x402's extension `sign-in-with-x` asks for it. What is signed begins with the name of the host
 * that asked, so that nobody else can use it, and it can't be a transaction.
 * @param extension of a 402: `{ info, supportedChains }`
 * @param secretKey 64 bytes: seed and public key
 * @param asked the URL that was called
 * @returns the header `SIGN-IN-WITH-X`
 * @throws SignInFault
 */
export function signIn(extension: unknown, secretKey: Uint8Array, asked: string): string {
  const info = infoOf(extension);
  const { host, origin } = new URL(asked);
  if (info['domain'] !== host)
    throw new SignInFault(`asks for a signature for ${textOf(info['domain'])}, not for ${host}`);
  const uri = textOf(info['uri']);
  if (!URL.canParse(uri) || new URL(uri).origin !== origin)
    throw new SignInFault(`asks for a signature for ${uri}, which is elsewhere`);
  const chainId = chainOf(extension, info);
  const address = toAddress(secretKey.subarray(32));
  const text = textToSign({ ...info, chainId }, address);
  const signature = base58.encode(sign(null, Buffer.from(text), privateKeyOf(secretKey)));
  const said = { ...info, chainId, type: 'ed25519', address, signature };
  return Buffer.from(JSON.stringify(said)).toString('base64');
}

/** The text, LF between its lines and none at its end. */
export function textToSign(info: Json, address: string): string {
  const { domain, statement, resources } = info;
  const value = (name: string): string => {
    const text = textOf(info[name]);
    return name === 'chainId' ? text.replace(/^[^:]*:/, '') : text;
  };
  return [
    `${textOf(domain)} wants you to sign in with your Solana account:`,
    address,
    '',
    ...(statement ? [textOf(statement), ''] : []),
    ...LINES.filter(([name]) => info[name] !== undefined).map(([name, title]) => `${title}: ${value(name)}`),
    ...(Array.isArray(resources) && resources.length > 0
      ? ['Resources:', ...resources.map(resource => `- ${textOf(resource)}`)]
      : []),
  ].join('\n');
}

/** What is asked for, of the fields that are signed: nothing unsigned is sent back. */
function infoOf(extension: unknown): Json {
  const info = isObject(extension) ? extension['info'] : undefined;
  if (!isObject(info)) throw new SignInFault('does not say what to sign');
  const kept: Json = {};
  for (const name of ['domain', 'statement', ...LINES.map(([each]) => each)]) {
    const value = info[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'string' || value.length > MAX_TEXT || CONTROL.test(value))
      throw new SignInFault(`asks for a signature with a ${name} that can't be signed`);
    kept[name] = value;
  }
  const missing = NEEDED.find(name => kept[name] === undefined);
  if (missing) throw new SignInFault(`asks for a signature without ${missing}`);
  const { resources } = info;
  if (resources === undefined) return kept;
  const fine = (each: unknown): boolean =>
    typeof each === 'string' && each.length <= MAX_TEXT && !CONTROL.test(each);
  if (!Array.isArray(resources) || resources.length > MAX_RESOURCES || !resources.every(fine))
    throw new SignInFault("asks for a signature with resources that can't be signed");
  return { ...kept, resources: resources as unknown[] };
}

/** Older servers name their one chain in `info`. */
function chainOf(extension: unknown, info: Json): string {
  const { supportedChains } = extension as Json;
  const chains = (Array.isArray(supportedChains) ? (supportedChains as unknown[]) : [])
    .map(each => (isObject(each) ? each['chainId'] : undefined))
    .concat(info['chainId'])
    .filter(each => typeof each === 'string');
  const solana = chains.find(chain => /^solana:\w+$/.test(chain));
  if (solana) return solana;
  throw new SignInFault(
    `takes no Solana key, only those of ${chains.join(', ').slice(0, 200) || 'chains that it does not name'}`,
  );
}

function privateKeyOf(secretKey: Uint8Array): ReturnType<typeof createPrivateKey> {
  const [d, x] = [secretKey.subarray(0, 32), secretKey.subarray(32)].map(bytes =>
    Buffer.from(bytes).toString('base64url'),
  );
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
}
