import { toAtomic } from '../../price/amount.js';
import type { Json } from '../../contract/json.js';
import { unpaid, type Sold } from './catalogue.js';
import { BASE58, isDollar } from './assets.js';
import { must, type Findings } from './findings.js';
import {
  call,
  expectHeader,
  expectStatus,
  isObject,
  PAID_TIMEOUT_MS,
  textOf,
  type Reply,
} from './http-call.js';

/** A challenge of the HTTP authentication scheme `Payment`, with its parameters as they are sent. */
type PaymentChallenge = Readonly<Record<string, string>>;

const UNREADABLE = 'Payment bm90aGluZw';
const REQUIRED = ['id', 'realm', 'method', 'intent', 'request'];
/** Servers should stay below this; clients must accept half of it. */
const MAX_BYTES = 8_192;

/** The MPP challenges in an answer. */
export function paymentChallengesIn({ headers }: Reply): PaymentChallenge[] {
  const text = headers.get('www-authenticate') ?? '';
  return text
    .split(/(?:^|,)\s*(?=payment\s)/i)
    .filter(each => /^payment\s/i.test(each))
    .map(each =>
      Object.fromEntries(
        [...each.matchAll(/[\s,]([a-z]{1,20})="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]),
      ),
    );
}

/** Whether a 402 can be paid with MPP only. */
export function isMppOnly(reply: Reply): boolean {
  if (reply.status !== 402 || reply.headers.has('payment-required')) return false;
  return paymentChallengesIn(reply).length > 0 && !reply.body.includes('"x402Version"');
}

/** Checks the MPP challenge of a 402, if it has one, against the drafts httpauth-payment and solana-charge. */
export async function checkMpp(operation: Sold, reply: Reply, findings: Findings): Promise<void> {
  const name = `${operation.method} ${operation.path}`;
  const challenges = paymentChallengesIn(reply);
  if (challenges.length === 0) return;
  await findings.must(`${name}: its MPP challenge can be answered, at its price`, () => {
    for (const challenge of challenges) checkChallenge(challenge, operation);
  });
  await findings.should(`${name}: each MPP payment is unique`, () => {
    for (const challenge of challenges)
      if (isSolana(challenge))
        must(
          requestOf(challenge)['externalId'],
          'no externalId: two payments at the same price with the same blockhash are the same transaction',
        );
  });
  await findings.should(`${name}: a browser can read its MPP challenge`, () =>
    expectHeader(reply, 'access-control-expose-headers', /\bWWW-Authenticate\b|^\*$/i),
  );
  await findings.must(
    `${name} with a credential that can't be read is refused, with a new challenge`,
    async () => {
      const { method, url, body, headers } = operation;
      const init = unpaid(method, body, { ...headers, authorization: UNREADABLE });
      const refused = await call(url, init, PAID_TIMEOUT_MS);
      expectStatus(refused, 402);
      const [again] = paymentChallengesIn(refused);
      must(again, 'no challenge of the scheme Payment in WWW-Authenticate');
      must(!refused.headers.has('payment-receipt'), 'it has a Payment-Receipt');
    },
  );
}

function isSolana({ method, intent }: PaymentChallenge): boolean {
  return method === 'solana' && intent === 'charge';
}

function checkChallenge(challenge: PaymentChallenge, operation: Sold): void {
  for (const name of REQUIRED) must(challenge[name], `it has no ${name}`);
  const { expires } = challenge;
  if (expires !== undefined) must(Date.parse(expires) > Date.now(), `it expired at ${expires}`);
  const bytes = Object.values(challenge).join('').length;
  must(bytes <= MAX_BYTES, `it takes ${bytes} bytes, at most ${MAX_BYTES} are read`);
  const request = requestOf(challenge);
  const amount = textOf(request['amount']);
  must(/^[1-9]\d*$/.test(amount), `its amount is ${amount}, not a positive whole number`);
  if (isSolana(challenge)) checkCharge(request, operation);
}

/** @throws Broken if a client can't build the transfer, or the transfer would not pay the price */
function checkCharge(request: Json, { amount }: Sold): void {
  const { currency, recipient } = request;
  must(BASE58.test(textOf(recipient)), `its recipient is ${textOf(recipient)}, not a Solana address`);
  must(isObject(request['methodDetails']), 'it has no methodDetails');
  const { decimals, feePayer, feePayerKey } = request['methodDetails'];
  must(
    (feePayer === true) === (feePayerKey !== undefined),
    'feePayerKey must be present if feePayer is true, and only then',
  );
  if (feePayer === true) must(BASE58.test(textOf(feePayerKey)), `its feePayerKey is ${textOf(feePayerKey)}`);
  if (!BASE58.test(textOf(currency))) return;
  must(typeof decimals === 'number', 'its methodDetails have no decimals, which a token needs');
  if (amount !== undefined && isDollar(textOf(currency)))
    must(
      textOf(request['amount']) === toAtomic(amount).toString(),
      `its amount is ${textOf(request['amount'])}, but the price of ${amount} USD is ${toAtomic(amount)}`,
    );
}

function requestOf({ request = '' }: PaymentChallenge): Json {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(request, 'base64url').toString('utf8'));
  } catch {
    value = undefined;
  }
  must(isObject(value), 'its request is not JSON in base64url');
  return value;
}
