import type { Json } from '../contract/json.js';
import { isObject, objectOf } from '../contract/references.js';
import { NETWORKS, type Network } from '../rails/solana/networks.js';

/** A shop's challenge: x402's PaymentRequired, and the form in which it accepts a payment (an object, or its base64). */
export type Challenge = { required: Json & { accepts: Json[] }; base64: boolean };

/** One payment option that the wallet supports: scheme exact, USDC on a known network. `amount` in atomic units. */
export type Offer = { required: Json & { accepts: [Json] }; network: Network; amount: bigint; payTo: string };

const NAMES = [NETWORKS.mainnet, NETWORKS.devnet];
const ATOMIC = /^[1-9]\d{0,18}$/;
/** The largest challenge. A payment repeats most of it and is stored until it is answered. Coinslot's challenges are a few KB. */
const MAX_CHALLENGE_KB = 64;

/** The challenge in a value from a shop; undefined if it is not a challenge. */
export function requiredOf(value: unknown): Challenge['required'] | undefined {
  if (!isObject(value) || !Array.isArray(value.accepts)) return undefined;
  if (value.x402Version !== 1 && value.x402Version !== 2) return undefined;
  return { ...value, accepts: value.accepts.filter(isObject) };
}

/**
 * The cheapest payment option that the wallet supports, or the reason why there is none.
 * @param payer the buyer's address; options with this fee payer are not used
 */
export function chooseOffer({ required }: Pick<Challenge, 'required'>, payer: string): Offer | string {
  const known = required.accepts.flatMap(each => offerOf(required, each, payer));
  const [first, ...others] = known;
  if (first) {
    const cheapest = others.reduce((least, each) => (each.amount < least.amount ? each : least), first);
    const kb = Math.ceil(Buffer.byteLength(JSON.stringify(cheapest.required)) / 1024);
    if (kb <= MAX_CHALLENGE_KB) return cheapest;
    return `its challenge is ${kb} KB; this wallet takes at most ${MAX_CHALLENGE_KB} KB`;
  }
  const seen = required.accepts
    .slice(0, 5)
    .map(({ scheme, network }) => `${shown(scheme)} on ${shown(network)}`);
  return `it offers ${seen.join(', ') || 'no payment options'}; this wallet pays USDC on Solana with the scheme exact`;
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

/** The reason that a shop gave for refusing a payment. */
export function reasonOf({ required }: Challenge): string {
  return typeof required.error === 'string' ? required.error.slice(0, 300) : 'the shop gives no reason';
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 60) : 'nothing';
}
