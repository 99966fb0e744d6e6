import { Ajv } from 'ajv';
import type { IncomingHttpHeaders } from 'node:http';
import { PAYMENT_HEADERS } from './headers.js';

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

export type Accepted = {
  scheme: string;
  network: string;
  amount?: string;
  maxAmountRequired?: string;
  asset: string;
  payTo: string;
  extra?: { feePayer?: string; paymentFlow?: string };
};

export type Decoded =
  { kind: 'none' } | { kind: 'payment'; payment: WirePayment } | { kind: 'fault'; error: string };

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
 * A malformed payment is rejected without a network call and without reading the body.
 */
export function decodePayment(headers: IncomingHttpHeaders): Decoded {
  const values = PAYMENT_HEADERS.map(name => headers[name]).filter(value => value !== undefined);
  const [first, second] = values;
  if (first === undefined) return { kind: 'none' };
  if (second !== undefined && second !== first) {
    return fault('PAYMENT-SIGNATURE and X-PAYMENT carry two different payments: send one');
  }
  const json = decodeBase64(String(first));
  if (json === undefined) return fault('the payment header is not base64');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return fault('the payment header is not base64 of JSON');
  }
  return readPayload(value);
}

function readPayload(value: unknown): Decoded {
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

function fault(error: string): Decoded {
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

/** x402's SettlementResponse, as sent in the PAYMENT-RESPONSE and X-PAYMENT-RESPONSE headers. */
export type Receipt = {
  success: boolean;
  errorReason?: string;
  payer: string;
  /** Base58 signature of the transfer, empty if unknown. */
  transaction: string;
  network: string;
  amount?: string;
};

/** The header that carries a receipt, by the version of the payment. */
export function receiptHeader(version: 1 | 2, receipt: Receipt): Record<string, string> {
  const value = Buffer.from(JSON.stringify(receipt)).toString('base64');
  return version === 2 ? { 'PAYMENT-RESPONSE': value } : { 'X-PAYMENT-RESPONSE': value };
}
