import { Ajv } from 'ajv';
import { canonicalJson, TooDeep } from '../../contract/fingerprint.js';
import type { Json } from '../../contract/json.js';
import type { Carrier } from '../method.js';
import type { Slots } from './challenge-ids.js';

/** The metadata key of the credential in an MCP call. */
const CREDENTIAL_KEY = 'org.paymentauth/credential';
const SCHEME = /(?:^|,)\s*payment[ \t]+([\w+/=-]+)/i;

/** The parts of a credential that the server uses, and what its challenge asked for. */
export type Sent = {
  id: string;
  /** Unchanged, so that the id can be verified. */
  slots: Slots;
  request: ChargeRequest;
  payload: { type: string; transaction?: string; signature?: string };
};

/** The fields of a charge request (method `solana`, intent `charge`) that the server uses. */
export type ChargeRequest = {
  amount: string;
  currency: string;
  recipient: string;
  externalId?: string;
  methodDetails?: { feePayer?: boolean; feePayerKey?: string };
};

type Wire = {
  challenge: Omit<Slots, 'request' | 'opaque'> & {
    id: string;
    request: string | Json;
    opaque?: string | Json;
  };
  payload: Sent['payload'];
};

const text = (maxLength = 256) => ({ type: 'string', maxLength }) as const;

// The schemas are our own. Validating them would mean compiling the meta-schema, which takes longer than everything else that this folder does
// when the server starts.
const ajv = new Ajv({ allowUnionTypes: true, meta: false, validateSchema: false });

const isWire = ajv.compile<Wire>({
  type: 'object',
  required: ['challenge', 'payload'],
  properties: {
    challenge: {
      type: 'object',
      required: ['id', 'realm', 'method', 'intent', 'request'],
      properties: {
        ...{ id: text(), realm: text(), method: text(), intent: text(), expires: text(), digest: text() },
        request: { type: ['string', 'object'], maxLength: 8192 },
        opaque: { type: ['string', 'object'], maxLength: 1024 },
      },
    },
    payload: {
      type: 'object',
      required: ['type'],
      properties: { type: text(), transaction: text(8192), signature: text() },
    },
  },
});

const isRequest = ajv.compile<ChargeRequest>({
  type: 'object',
  required: ['amount', 'currency', 'recipient'],
  properties: {
    ...{ amount: text(), currency: text(), recipient: text(), externalId: text(566) },
    methodDetails: {
      type: 'object',
      properties: { feePayer: { type: 'boolean' }, feePayerKey: text() },
    },
  },
});

/** Reads the credential of a request: undefined if there is none, a sentence if it can't be read. */
export function readCredential(carrier: Carrier): Sent | string | undefined {
  const value = 'meta' in carrier ? carrier.meta[CREDENTIAL_KEY] : inHeader(carrier.headers.authorization);
  if (value === undefined) return undefined;
  if (!isWire(value)) return `the credential is not valid for the scheme Payment: ${faultOf(isWire.errors)}`;
  const { id, ...sent } = value.challenge;
  const request = typeof sent.request === 'string' ? jsonIn(sent.request) : sent.request;
  if (!isRequest(request))
    return `the request in the challenge is not a charge request: ${faultOf(isRequest.errors)}`;
  const slots = slotsIn(sent);
  if (!slots) return 'the challenge of the credential is nested too deeply';
  return { id, slots, request, payload: value.payload };
}

/**
 * Over MCP, the request is JSON, and some clients send `opaque` as its decoded object. Undefined if either is
 * nested too deeply.
 */
function slotsIn({ request, opaque, ...rest }: Omit<Wire['challenge'], 'id'>): Slots | undefined {
  try {
    return {
      ...rest,
      request: encoded(request),
      ...(opaque !== undefined && { opaque: encoded(opaque) }),
    };
  } catch (error) {
    if (error instanceof TooDeep) return undefined;
    throw error;
  }
}

/** Base64url of canonical JSON; a string is already in that form. @throws TooDeep */
export function encoded(value: string | Json): string {
  return typeof value === 'string' ? value : Buffer.from(canonicalJson(value)).toString('base64url');
}

/** The JSON in a base64url string, which may be padded; undefined if it is invalid. */
export function jsonIn(base64: string): unknown {
  try {
    return JSON.parse(Buffer.from(base64, 'base64url').toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

/** Undefined unless the header uses the scheme `Payment`. */
function inHeader(header: string | undefined): unknown {
  const [, base64] = SCHEME.exec(header ?? '') ?? [];
  if (base64 !== undefined) return jsonIn(base64) ?? 'neither base64url nor JSON';
  return /^\s*payment(\s|$)/i.test(header ?? '') ? 'empty' : undefined;
}

function faultOf(errors: typeof isWire.errors): string {
  const first = errors?.[0];
  return first ? `${first.instancePath || 'it'} ${first.message}` : 'wrong shape';
}
