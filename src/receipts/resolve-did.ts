import type { Json } from '../contract/json.js';
import { isObject } from '../contract/references.js';
import { HttpClient, NoAnswer } from '../net/http-client.js';
import { ReceiptFault } from './receipt-fault.js';

const MAX_BYTES = 256 * 1024;
const DEADLINE_MS = 10_000;
const PREFIX = 'did:web:';
/** Hosts that are reached without TLS, as in other resolvers. */
const LOCAL = /^(localhost|127\.0\.0\.1)(:\d+)?$/;

/** The host that a did:web names, with its port. @throws ReceiptFault */
export function hostOf(did: string): string {
  const [host = ''] = did.slice(PREFIX.length).split(':');
  const decoded = did.startsWith(PREFIX) ? decodedPart(host) : '';
  if (/^[\w.-]+(:\d{1,5})?$/.test(decoded)) return decoded.toLowerCase();
  throw new ReceiptFault(
    `it is signed by ${did.slice(0, 100)}, which names no host: only did:web does, so give its key with --key`,
  );
}

/**
 * The key that the document of a did:web has under an id, as a JWK. Sends one request to one host, follows no redirect and, unless
 * `allowPrivate` is true, reaches only public addresses.
 * @throws ReceiptFault
 */
export async function publishedKey(kid: string, allowPrivate: boolean): Promise<Json> {
  const [did = ''] = kid.split('#', 1);
  const url = documentUrl(did);
  const { verificationMethod } = await fetchDocument(url, allowPrivate);
  const methods: unknown[] = Array.isArray(verificationMethod) ? verificationMethod : [];
  const key = methods.filter(isObject).find(({ id }) => id === kid)?.publicKeyJwk;
  if (!isObject(key))
    throw new ReceiptFault(`${url} has no key ${kid}, so nothing shows that the key is the shop's`);
  return key;
}

function documentUrl(did: string): string {
  const host = hostOf(did);
  const path = did.slice(PREFIX.length).split(':').slice(1).map(decodedPart).map(encodeURIComponent);
  const origin = `${LOCAL.test(host) ? 'http' : 'https'}://${host}`;
  return `${origin}/${path.length > 0 ? path.join('/') : '.well-known'}/did.json`;
}

async function fetchDocument(url: string, allowPrivate: boolean): Promise<Json> {
  const client = new HttpClient(url, {
    connections: 1,
    maxAnswerBytes: MAX_BYTES,
    publicOnly: !allowPrivate,
    headers: { accept: 'application/did+json, application/json' },
  });
  try {
    const { status, text } = await client.request({ method: 'GET', path: '', ms: DEADLINE_MS });
    if (status !== 200) throw new ReceiptFault(`${url} answered ${status} instead of the keys of the shop`);
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
    throw new ReceiptFault(`${url} is not a JSON object`);
  } catch (error) {
    if (error instanceof ReceiptFault) throw error;
    if (error instanceof SyntaxError) throw new ReceiptFault(`${url} is not JSON`);
    if (error instanceof NoAnswer && error.kind === 'private')
      throw new ReceiptFault(
        `${url} has a private address: use --allow-private, but only for a shop of your own`,
      );
    throw new ReceiptFault(`${url} cannot be read: ${(error as Error).message}`);
  } finally {
    await client.close();
  }
}

function decodedPart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}
