import { Ajv } from 'ajv';
import type { IncomingHttpHeaders } from 'node:http';
import type { Json } from '../../contract/json.js';
import type { Carrier } from '../method.js';

/**
 * The headers that carry a payment. Node joins a repeated header with commas, which are not base64, so the joined value is rejected.
 */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/** Where the metadata of an MCP call has it. The first is x402's; the second is that of a client package that some hosts use. */
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
const payload = {
  type: 'object',
  required: ['transaction'],
  properties: { transaction: text(8192) },
} as const;

// The schemas are our own. Compiling the meta-schema to validate them would dominate this folder's start time.
const ajv = new Ajv({ allowUnionTypes: true, meta: false, validateSchema: false });

const isV1 = ajv.compile<V1>({
  type: 'object',
  required: ['x402Version', 'scheme', 'network', 'payload'],
  properties: { x402Version: { const: 1 }, scheme: text(), network: text(), payload },
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
    payload,
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

/**
 * Reads the payment of a request. Its shape decides the version (`accepted` present → v2), not the name of its header.
 * What can't be read has the version of its header. A malformed payment is rejected without a network call and without reading the body.
 */
export function decodePayment(carrier: Carrier): Decoded {
  const decoded = decodeFirst(carrier);
  if (decoded.kind !== 'fault') return decoded;
  const version = 'meta' in carrier || carrier.headers[PAYMENT_HEADERS[0]] !== undefined ? 2 : 1;
  return { ...decoded, version };
}

type Fault = { kind: 'fault'; error: string };

function decodeFirst(carrier: Carrier): Exclude<Decoded, { kind: 'fault' }> | Fault {
  const [first, second] = 'meta' in carrier ? carriedByMeta(carrier.meta) : carriedByHeaders(carrier.headers);
  if (first === undefined) return { kind: 'none' };
  if (second !== undefined && second !== first) {
    return fault('PAYMENT-SIGNATURE and X-PAYMENT carry two different payments: send one');
  }
  const json = decodeBase64(first);
  if (json === undefined) return fault('the payment header is not base64');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return fault('the payment header is not base64 of JSON');
  }
  return readPayload(value);
}

function carriedByHeaders(headers: IncomingHttpHeaders): string[] {
  return PAYMENT_HEADERS.map(name => headers[name])
    .filter(value => value !== undefined)
    .map(String);
}

/** A payment is an object, or the base64 of one as a header has it. */
function carriedByMeta(meta: Json): string[] {
  return PAYMENT_KEYS.map(key => meta[key])
    .filter(payment => payment !== undefined)
    .map(payment =>
      typeof payment === 'string' ? payment : Buffer.from(JSON.stringify(payment)).toString('base64'),
    );
}

function readPayload(value: unknown): Exclude<Decoded, { kind: 'fault' }> | Fault {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return fault('the payment is not a JSON object: send an x402 PaymentPayload');
  }
  if ('accepted' in value) {
    if (!isV2(value))
      return fault(`the payment is not an x402 v2 PaymentPayload: ${shapeFault(isV2.errors)}`);
    const identifier = value.extensions?.['payment-identifier']?.info.id;
    const { scheme, network } = value.accepted;
    const { transaction } = value.payload;
    const payment = {
      version: 2,
      scheme,
      network,
      transaction,
      accepted: value.accepted,
      identifier,
    } as const;
    return { kind: 'payment', payment };
  }
  if (!isV1(value)) {
    return fault(
      `the payment is neither an x402 v2 PaymentPayload (it has no accepted) nor a v1 one: ${shapeFault(isV1.errors)}`,
    );
  }
  const { scheme, network, payload: body } = value;
  const payment = {
    version: 1,
    scheme,
    network,
    transaction: body.transaction,
    accepted: undefined,
    identifier: undefined,
  } as const;
  return { kind: 'payment', payment };
}

function shapeFault(errors: typeof isV1.errors): string {
  const first = errors?.[0];
  return first ? `${first.instancePath || 'it'} ${first.message}` : 'wrong shape';
}

function fault(error: string): Fault {
  return { kind: 'fault', error };
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
