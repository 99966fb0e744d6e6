import { decodePaymentRequiredHeader } from '@x402/core/http';
import { parsePaymentRequired } from '@x402/core/schemas';
import { toAtomic } from '../../price/amount.js';
import type { Json } from '../../contract/json.js';
import { askingPrice, unpaid, type Sold } from './catalogue.js';
import { BASE58, isDollar } from './assets.js';
import { offSchema } from './document-checks.js';
import { Broken, must, type Findings } from './findings.js';
import { checkMpp, isMppOnly } from './mpp-checks.js';
import { checkOffers } from './receipt-checks.js';
import {
  call,
  expectHeader,
  expectStatus,
  isObject,
  jsonOf,
  PAID_TIMEOUT_MS,
  textOf,
  type Reply,
} from './http-call.js';

/** One payment option, in x402 v1 or v2. */
type Option = Json & { scheme: string; network: string; payTo: string; asset: string; extra?: Json };
/** The body of a 402: x402's PaymentRequired (v2) or PaymentRequirementsResponse (v1). */
export type Challenge = Json & { x402Version: number; accepts: Option[]; resource?: Json; extensions?: Json };

const CAIP2 = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/;
const HEX = /^0x[0-9a-fA-F]{40}$/;
const UNREADABLE = 'bm90aGluZw==';

/** The challenge of a 402, read as the official clients read it. @throws Broken */
export function readChallenge(reply: Reply): Challenge {
  expectStatus(reply, 402);
  const header = reply.headers.get('payment-required');
  let value: unknown;
  if (header === null) {
    value = jsonOf(reply);
    must((value as Json)['x402Version'] === 1, 'no PAYMENT-REQUIRED header: a proxy may have dropped it');
  } else {
    try {
      value = decodePaymentRequiredHeader(header);
    } catch (error) {
      throw new Broken(`PAYMENT-REQUIRED can't be decoded: ${(error as Error).message}`);
    }
  }
  const parsed = parsePaymentRequired(value);
  if (!parsed.success) {
    const [first] = parsed.error.issues;
    throw new Broken(`this is not an x402 challenge: ${first?.path.join('.')}: ${first?.message}`);
  }
  const challenge = value as Challenge;
  must(challenge.accepts.length > 0, 'it has no payment options');
  return challenge;
}

/** An operation, with its reply to a call without a payment and the challenge in that reply, if there are any. */
export type Asked = { operation: Sold; reply: Reply | undefined; challenge: Challenge | undefined };

/** Checks the challenges of one operation. */
export async function checkChallenges(operation: Sold, findings: Findings): Promise<Asked> {
  const { method, path } = operation;
  const name = `${method} ${path}`;
  let reply: Reply | undefined;
  let challenge: Challenge | undefined;
  await findings.must(`${name} without payment is a challenge at its price`, async () => {
    reply = await call(operation.url, askingPrice(operation));
    if (isMppOnly(reply)) return;
    challenge = readChallenge(reply);
    checkOptions(challenge, operation);
  });
  if (reply?.status === 402) {
    await checkReply(name, reply, challenge, findings);
    await checkMpp(operation, reply, findings);
    if (isMppOnly(reply)) return { operation, reply, challenge };
  }
  if (challenge) await checkOffers(name, operation.url, challenge, findings);
  if (operation.v1)
    await findings.must(`${name} with x402Version=1 is a v1 challenge at its price`, async () => {
      const url = `${operation.url}${operation.url.includes('?') ? '&' : '?'}x402Version=1`;
      const old = readChallenge(await call(url, askingPrice(operation)));
      must(old.x402Version === 1, `x402Version is ${old.x402Version}`);
      checkOptions(old, operation);
    });
  await findings.must(`${name} with a payment that can't be read is refused, and the error says so`, () =>
    checkUnreadable(operation),
  );
  return { operation, reply, challenge };
}

/** @throws Broken if the payment options do not match this operation, or clients can sign none of them */
export function checkOptions(
  { x402Version, accepts, resource }: Challenge,
  { url, amount, path }: Sold,
): void {
  // A v2 challenge names the resource once, a v1 challenge in each option.
  for (const stated of [resource?.['url'], ...accepts.map(option => option['resource'])]) {
    if (stated === undefined) continue;
    const [plain] = textOf(stated).split('?');
    const right = plain === url.split('?')[0] || textOf(stated).endsWith(path);
    must(right, `resource is ${textOf(stated)}, not ${url}: set PUBLIC_URL`);
  }
  for (const option of accepts) {
    const { network } = option;
    if (x402Version === 2) must(CAIP2.test(network), `the network ${network} is not a CAIP-2 name`);
    else must(!network.includes(':'), `the network ${network} is not the name of a network in x402 v1`);
    checkAddresses(option);
    for (const name of ['amount', 'maxAmountRequired']) {
      const asked = option[name];
      if (asked === undefined) continue;
      must(/^[1-9]\d*$/.test(textOf(asked)), `${name} is ${textOf(asked)}, not a positive whole number`);
      if (amount !== undefined && isDollar(option.asset))
        must(
          asked === toAtomic(amount).toString(),
          `${name} is ${textOf(asked)}, but the price of ${amount} USD is ${toAtomic(amount)}`,
        );
    }
  }
}

/** What the `exact` scheme needs on the two families of chains that official clients pay on. */
function checkAddresses({ scheme, network, payTo, asset, extra }: Option): void {
  if (scheme !== 'exact') return;
  const solana = /^solana(:|-|$)/.test(network);
  const pattern = solana ? BASE58 : HEX;
  if (!solana && !/^(eip155:|base|avalanche|polygon)/.test(network)) return;
  must(pattern.test(payTo), `payTo ${payTo} is not an address of ${network}`);
  must(pattern.test(asset), `asset ${asset} is not an address of ${network}`);
  if (solana)
    must(BASE58.test(String(extra?.['feePayer'])), 'no extra.feePayer: a client cannot build the payment');
  else
    must(
      extra?.['name'] && extra['version'],
      'no extra.name and extra.version: a client cannot sign the transfer',
    );
}

async function checkReply(
  name: string,
  reply: Reply,
  challenge: Challenge | undefined,
  findings: Findings,
): Promise<void> {
  const header = reply.headers.get('payment-required');
  if (header !== null) {
    await findings.should(`${name}: header and body are the same challenge`, () =>
      must(
        Buffer.from(header, 'base64').equals(reply.body),
        'PAYMENT-REQUIRED is not the base64 of the body',
      ),
    );
  } else if (challenge) {
    await findings.should(`${name} speaks x402 v2`, () => must(false, 'it has a v1 challenge only'));
  }
  await findings.should(`${name}: its challenge is never cached`, () =>
    expectHeader(reply, 'cache-control', /\bno-store\b/),
  );
  await findings.should(`${name}: a browser can read its challenge`, () => {
    expectHeader(reply, 'access-control-allow-origin', /^\*$/);
    if (header !== null) expectHeader(reply, 'access-control-expose-headers', /\bPAYMENT-REQUIRED\b|^\*$/i);
  });
}

/** @throws Broken if the extension `bazaar` does not describe this operation */
export function checkBazaar({ info, schema }: Json, { method }: Sold): void {
  const input = isObject(info) ? info['input'] : undefined;
  must(isObject(input), 'it has no info.input');
  must(
    input['method'] === undefined || input['method'] === method,
    `its method is ${String(input['method'])}`,
  );
  const fault = offSchema({}, schema, info);
  must(!fault, `its example does not match its own schema: ${fault}`);
}

async function checkUnreadable({ method, url, body }: Sold): Promise<void> {
  const headers = { 'payment-signature': UNREADABLE, 'x-payment': UNREADABLE };
  const reply = await call(url, unpaid(method, body, headers), PAID_TIMEOUT_MS);
  expectStatus(reply, 402, 400);
  const { error } = reply.status === 400 ? jsonOf(reply) : readChallenge(reply);
  must(typeof error === 'string' && error, 'there is no `error` that says why');
}
