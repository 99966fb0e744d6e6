import type { Json } from '../../contract/json.js';
import { isObject, objectOf } from '../../contract/references.js';
import { NETWORKS, type Network } from '../../rails/solana/networks.js';

/** A tool's result, as the shop sent it. */
export type ToolResult = Json & {
  content: Json[];
  isError?: boolean;
  structuredContent?: Json;
  _meta?: Json;
};

/** What a shop wants to be paid: x402's PaymentRequired, and how it reads a payment (an object, or its base64). */
export type Challenge = { required: Json & { accepts: Json[] }; base64: boolean };

/** One way to pay that this wallet knows: scheme exact, USDC on a known network. `amount` in atomic units. */
export type Offer = { required: Json & { accepts: [Json] }; network: Network; amount: bigint; payTo: string };

const CHALLENGE_KEY = 'x402/error';
const RECEIPT_KEYS = ['x402/payment-response', 'x402.payment-response'];
const NAMES = [NETWORKS.mainnet, NETWORKS.devnet];
const ATOMIC = /^[1-9]\d{0,18}$/;
/** A payment repeats most of its challenge, and is kept until it is answered. The ones of this server have a few KB. */
const MAX_CHALLENGE_KB = 64;
/** Of a link, which the statement keeps. */
const MAX_LINK = 500;

/** The challenge of an unpaid or refused call, in each place in which shops put it; undefined if the result is none. */
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

/**
 * The cheapest way to pay that this wallet knows, or why there is none.
 * @param payer must not pay the network's fee, too
 */
export function chooseOffer({ required }: Challenge, payer: string): Offer | string {
  const known = required.accepts.flatMap(each => offerOf(required, each, payer));
  const [first, ...others] = known;
  if (first) {
    const cheapest = others.reduce((least, each) => (each.amount < least.amount ? each : least), first);
    const kb = Math.ceil(Buffer.byteLength(JSON.stringify(cheapest.required)) / 1024);
    if (kb <= MAX_CHALLENGE_KB) return cheapest;
    return `its challenge has ${kb} KB; this wallet takes at most ${MAX_CHALLENGE_KB} KB`;
  }
  const seen = required.accepts
    .slice(0, 5)
    .map(({ scheme, network }) => `${shown(scheme)} on ${shown(network)}`);
  return `it offers ${seen.join(', ') || 'no way to pay'}; this wallet pays USDC on Solana with the scheme exact`;
}

function offerOf(required: Challenge['required'], accepted: Json, payer: string): Offer[] {
  const v1 = required.x402Version === 1;
  const amount = v1 ? accepted.maxAmountRequired : accepted.amount;
  const network = NAMES.find(each => accepted.network === (v1 ? each.v1 : each.caip2));
  const { scheme, asset, payTo, extra } = accepted;
  if (!network || scheme !== 'exact' || asset !== network.usdcMint || typeof payTo !== 'string') return [];
  if (typeof amount !== 'string' || !ATOMIC.test(amount) || objectOf(extra).feePayer === payer) return [];
  return [{ required: { ...required, accepts: [accepted] }, network, amount: BigInt(amount), payTo }];
}

/** What a receipt says of the transfer; undefined if the result has none. */
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

/** What a Coinslot says of a call without an answer: the status of the same answer over HTTP, when to ask again, the key. */
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

/** The link that a result has in place of an answer that is too long for it. */
export function linkIn({ content }: ToolResult): string | undefined {
  const { uri } = content.find(({ type }) => type === 'resource_link') ?? {};
  return typeof uri === 'string' && uri.length <= MAX_LINK ? uri : undefined;
}

/** The reason for which a shop refused a payment. */
export function reasonOf({ required }: Challenge): string {
  return typeof required.error === 'string' ? required.error.slice(0, 300) : 'the shop gives no reason';
}

function requiredOf(value: unknown): Challenge['required'] | undefined {
  if (!isObject(value) || !Array.isArray(value.accepts)) return undefined;
  if (value.x402Version !== 1 && value.x402Version !== 2) return undefined;
  return { ...value, accepts: value.accepts.filter(isObject) };
}

function read(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 60) : 'nothing';
}
