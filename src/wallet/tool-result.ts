import type { Json } from '../contract/json.js';
import { isObject, objectOf } from '../contract/references.js';
import { requiredOf, type Challenge } from './offer.js';

/** A tool's result, as the shop sent it. */
export type ToolResult = Json & {
  content: Json[];
  isError?: boolean;
  structuredContent?: Json;
  _meta?: Json;
};

const CHALLENGE_KEY = 'x402/error';
const RECEIPT_KEYS = ['x402/payment-response', 'x402.payment-response'];
/** The longest link that the statement stores. */
const MAX_LINK = 500;

/** The challenge in the result of an unpaid or refused call, from any of the places where shops put it; undefined if there is none. */
export function challengeIn(result: ToolResult): Challenge | undefined {
  const structured = requiredOf(result.structuredContent);
  if (structured && result.isError) return { required: structured, base64: false };
  const inMeta = requiredOf(objectOf(result._meta)[CHALLENGE_KEY]);
  if (inMeta) return { required: inMeta, base64: true };
  const [first] = result.content;
  const text = result.isError && typeof first?.text === 'string' ? requiredOf(read(first.text)) : undefined;
  return text && { required: text, base64: false };
}

/** The challenge of a shop that sends it as a JSON-RPC error. */
export function challengeOfError(code: number, data: unknown): Challenge | undefined {
  const required = code === 402 ? requiredOf(data) : undefined;
  return required && { required, base64: false };
}

/** The transfer according to the receipt in a result; undefined if there is no receipt. */
export function receiptIn({
  _meta: meta,
}: ToolResult): { success: boolean; transaction: string; errorReason: string } | undefined {
  const [receipt] = RECEIPT_KEYS.map(key => receiptOf(objectOf(meta)[key])).filter(isObject);
  if (!receipt) return undefined;
  const { success, transaction, errorReason } = receipt;
  return {
    success: success === true,
    transaction: typeof transaction === 'string' ? transaction.slice(0, 100) : '',
    errorReason: typeof errorReason === 'string' ? errorReason.slice(0, 100) : '',
  };
}

function receiptOf(value: unknown): unknown {
  return typeof value === 'string' ? read(Buffer.from(value, 'base64').toString('utf8')) : value;
}

/** What a Coinslot server reports about a call without an answer: the equivalent HTTP status, when to retry, and the key. */
export function stateIn({ structuredContent, _meta: meta }: ToolResult): {
  status: number | undefined;
  retryAfterSeconds: number | undefined;
  pickUp: string | undefined;
} {
  const { status, retryAfterSeconds } = objectOf(structuredContent);
  const { key } = objectOf(objectOf(meta)['coinslot/pick-up']);
  return {
    status: typeof status === 'number' ? status : undefined,
    retryAfterSeconds:
      typeof retryAfterSeconds === 'number' && retryAfterSeconds >= 0 ? retryAfterSeconds : undefined,
    pickUp: typeof key === 'string' && key.length <= 200 ? key : undefined,
  };
}

/** The link in a result that replaces an answer that is not text. */
export function linkIn({ content, structuredContent, _meta: meta }: ToolResult): string | undefined {
  const { uri } = content.find(({ type }) => type === 'resource_link') ?? {};
  const { url } = objectOf(objectOf(meta)['coinslot/pick-up']);
  const named = uri ?? (objectOf(structuredContent).url === url ? url : undefined);
  return typeof named === 'string' && named.length <= MAX_LINK ? named : undefined;
}

function read(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
