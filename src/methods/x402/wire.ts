import { Ajv } from 'ajv';
import type { IncomingHttpHeaders } from 'node:http';
import type { Json } from '../../contract/json.js';
import type { Carrier } from '../method.js';

/**
 * The headers that carry a payment. Node joins a repeated header with commas, which are not base64, so the joined value is rejected.
 */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/** The metadata keys of a payment in an MCP call. The first is x402's, the second that of a client package that some hosts use. */
const PAYMENT_KEYS = ['x402/payment', 'x402.payment'] as const;

/** The parts of a decoded payment that the server uses. Everything else in it is ignored. */
export type WirePayment = {
  version: 1 | 2;
  scheme: string;
  network: string;
  /** Base64 of the half-signed transaction. */
  transaction: string;
  /** v2 only: the offer that the buyer accepted, as sent by the buyer. */
  accepted: Accepted | undefined;
  /** v2 only: the id of the `payment-identifier` extension. */
  identifier: string | undefined;
};

type Accepted = {
  scheme: string;
  network: string;
  amount?: string;
  maxAmountRequired?: string;
  asset: string;
  payTo: string;
  extra?: { feePayer?: string; paymentFlow?: string };
};

export type Decoded =
  | { kind: 'none' }
  | { kind: 'payment'; payment: WirePayment }
  | { kind: 'fault'; version: 1 | 2; error: string };

type V1 = { x402Version: number; scheme: string; network: string; payload: { transaction: string } };
type V2 = {
  x402Version: number;
  accepted: Accepted;
  payload: { transaction: string };
  extensions?: { 'payment-identifier'?: { info: { id?: string } } };
};

const text = (maxLength = 256) => ({ type: 'string', maxLength }) as const;
const PAYLOAD = {
  type: 'object',
  required: ['transaction'],
  properties: { transaction: text(8192) },
} as const;

// The schemas are our own. Validating them would mean compiling the meta-schema, which takes longer than everything else that this folder does
// when the server starts.
const ajv = new Ajv({ allowUnionTypes: true, meta: false, validateSchema: false });

const isV1 = ajv.compile<V1>({
  type: 'object',
  required: ['x402Version', 'scheme', 'network', 'payload'],
  properties: { x402Version: { const: 1 }, scheme: text(), network: text(), payload: PAYLOAD },
});

const isV2 = ajv.compile<V2>({
  type: 'object',
  required: ['x402Version', 'accepted', 'payload'],
  properties: {
    x402Version: { const: 2 },
    accepted: {
      type: 'object',
      required: ['scheme', 'network', 'asset', 'payTo'],
      properties: {
        scheme: text(),
        network: text(),
        amount: text(),
        maxAmountRequired: text(),
        asset: text(),
        payTo: text(),
        extra: { type: 'object', properties: { feePayer: text(), paymentFlow: text() } },
      },
    },
    payload: PAYLOAD,
    extensions: {
      type: 'object',
      properties: {
        'payment-identifier': {
          type: 'object',
          required: ['info'],
          properties: {
            info: {
              type: 'object',
              properties: {
                id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[A-Za-z0-9_-]+$' },
              },
            },
          },
        },
      },
    },
  },
});

/** The payment can't be read. */
class Unreadable extends Error {}

/**
 * Reads the payment of a request. Its shape decides the version (`accepted` present → v2), not the name of its header. An unreadable
 * payment has the version of its header. A malformed payment is rejected without a network call and without reading the body.
 */
export function decodePayment(carrier: Carrier): Decoded {
  const { headers = {} } = carrier;
  const inMeta = 'meta' in carrier ? carriedByMeta(carrier.meta) : [];
  const [first, ...others] = [...inMeta, ...carriedByHeaders(headers)];
  if (first === undefined) return { kind: 'none' };
  try {
    if (others.some(other => other !== first))
      throw new Unreadable(
        `${inMeta.length > 0 ? 'the call carries' : 'PAYMENT-SIGNATURE and X-PAYMENT carry'} two different payments: send one`,
      );
    return { kind: 'payment', payment: readPayload(parse(first)) };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const version = inMeta.length > 0 || headers[PAYMENT_HEADERS[0]] !== undefined ? 2 : 1;
    return { kind: 'fault', version, error: error.message };
  }
}

function carriedByHeaders(headers: IncomingHttpHeaders): string[] {
  return PAYMENT_HEADERS.map(name => headers[name])
    .filter(value => value !== undefined)
    .map(String);
}

/** A payment is an object, or its base64 as in a header. */
function carriedByMeta(meta: Json): string[] {
  return PAYMENT_KEYS.map(key => meta[key])
    .filter(payment => payment !== undefined)
    .map(payment =>
      typeof payment === 'string' ? payment : Buffer.from(JSON.stringify(payment)).toString('base64'),
    );
}

function parse(header: string): unknown {
  const json = decodeBase64(header);
  if (json === undefined) throw new Unreadable('the payment header is not base64');
  try {
    return JSON.parse(json);
  } catch {
    throw new Unreadable('the payment header is not base64-encoded JSON');
  }
}

function readPayload(value: unknown): WirePayment {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Unreadable('the payment is not a JSON object: send an x402 PaymentPayload');
  if ('accepted' in value) {
    if (!isV2(value))
      throw new Unreadable(`the payment is not an x402 v2 PaymentPayload: ${shapeFault(isV2.errors)}`);
    const { accepted, payload, extensions } = value;
    const { scheme, network } = accepted;
    const identifier = extensions?.['payment-identifier']?.info.id;
    return { version: 2, scheme, network, transaction: payload.transaction, accepted, identifier };
  }
  if (!isV1(value))
    throw new Unreadable(
      `the payment is neither an x402 v2 PaymentPayload (it has no accepted) nor a v1 one: ${shapeFault(isV1.errors)}`,
    );
  const { scheme, network, payload } = value;
  const { transaction } = payload;
  return { version: 1, scheme, network, transaction, accepted: undefined, identifier: undefined };
}

function shapeFault(errors: typeof isV1.errors): string {
  const first = errors?.[0];
  return first ? `${first.instancePath || 'it'} ${first.message}` : 'wrong shape';
}

/**
 * Base64 or base64url, with or without padding. Node's decoder reads both and skips other characters, so an invalid character shows
 * in the length. Checking by length is faster than regular expressions over 5 KB.
 */
function decodeBase64(value: string): string | undefined {
  const trimmed = value.trim();
  let end = trimmed.length;
  while (end > trimmed.length - 2 && trimmed[end - 1] === '=') end -= 1;
  const bytes = Buffer.from(trimmed, 'base64');
  const whole = end > 0 && end % 4 !== 1 && bytes.length === Math.floor((end * 3) / 4);
  return whole ? bytes.toString('utf8') : undefined;
}
