import { createHash } from 'node:crypto';
import { canonicalJson } from '../contract/fingerprint.js';
import type { Json } from '../contract/json.js';
import { isSignedBy, readJws, type Jws } from './jws.js';
import { ReceiptFault } from './receipt-fault.js';
import { ANSWER_RECEIPT_TYPE } from './receipts.js';
import { hostOf } from './resolve-did.js';

export type Verified = { kind: 'receipt' | 'answer receipt' | 'offer'; kid: string; payload: Json };

/** Further facts about the call of a receipt. */
export type Known = {
  /** The bytes of the answer. */
  answer?: Buffer;
  /** The JSON body, or `[path parameters, query, body]`, with the defaults of the contract. */
  request?: unknown;
};

const TEXT = 'string';
const WHOLE = 'number';
/** The members that each kind must have, and their types. */
const MEMBERS: Record<Verified['kind'], Record<string, string>> = {
  receipt: { version: WHOLE, network: TEXT, resourceUrl: TEXT, payer: TEXT, issuedAt: WHOLE },
  'answer receipt': {
    version: WHOLE,
    network: TEXT,
    resourceUrl: TEXT,
    payer: TEXT,
    issuedAt: WHOLE,
    operation: TEXT,
    requestSha256: TEXT,
    answerStatus: WHOLE,
    answerSha256: TEXT,
  },
  offer: {
    version: WHOLE,
    resourceUrl: TEXT,
    scheme: TEXT,
    network: TEXT,
    asset: TEXT,
    payTo: TEXT,
    amount: TEXT,
  },
};

/**
 * Verifies a receipt or an offer: its form, its signature, and that its signer is the host of the URL that it is about.
 * @param keyOf returns the JWK of a key by its id, or throws ReceiptFault
 * @param trusted whether the caller knows the key, so that it need not be the host's
 */
export async function verifyReceipt(
  text: string,
  keyOf: (kid: string) => Promise<Json>,
  trusted = false,
): Promise<Verified> {
  const jws = readJws(text);
  if (!jws) throw new ReceiptFault('it is not a JWS in compact form');
  const { header, payload } = jws;
  if (header.alg !== 'EdDSA')
    throw new ReceiptFault(`its algorithm is ${JSON.stringify(header.alg)}, not EdDSA`);
  const { kid } = header;
  if (typeof kid !== 'string' || kid === '') throw new ReceiptFault('it does not say which key signed it');
  const kind = kindOf(jws);
  for (const [name, type] of Object.entries(MEMBERS[kind]))
    if (typeof payload[name] !== type) throw new ReceiptFault(`its ${name} is missing, or is not a ${type}`);
  if (!trusted) checkAuthority(kid, String(payload.resourceUrl));
  if (!isSignedBy(jws, await keyOf(kid)))
    throw new ReceiptFault(`the key ${kid} did not sign it: it was changed, or is somebody else's`);
  return { kind, kid, payload };
}

/** The parts of a call that the receipt contradicts; empty if the receipt is for that call. */
export function contradictions({ kind, payload }: Verified, { answer, request }: Known): string[] {
  const other: string[] = [];
  if (kind !== 'answer receipt') return other;
  if (answer && sha256(answer) !== payload.answerSha256)
    other.push(`it is about an answer with sha256 ${payload.answerSha256}, not about this one`);
  if (request !== undefined) {
    const hash = sha256(`${payload.operation}\n${canonicalJson(request)}`);
    if (hash !== payload.requestSha256) other.push('it is about a different request');
  }
  return other;
}

function kindOf({ header, payload }: Jws): Verified['kind'] {
  if (header.typ === ANSWER_RECEIPT_TYPE) return 'answer receipt';
  return 'payTo' in payload ? 'offer' : 'receipt';
}

/** Checks that the signer is the shop, because another party's signature proves nothing. @throws ReceiptFault */
function checkAuthority(kid: string, resourceUrl: string): void {
  const signer = hostOf(kid.split('#', 1)[0] ?? '');
  const about = URL.canParse(resourceUrl) ? new URL(resourceUrl).host : '';
  if (signer !== about)
    throw new ReceiptFault(
      `${signer} signed it, but it is about ${about || 'no URL'}: the signer is not that shop`,
    );
}

function sha256(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}
