import { x402Client, x402HTTPClient } from '@x402/core/client';
import type { PaymentRequired } from '@x402/core/types';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSoldStatus, SOLD_STATUSES } from '../../contract/sold-status.js';
import { toDecimal } from '../../price/amount.js';
import { askingPrice, unpaid, type Catalogue, type Sold } from './catalogue.js';
import { readChallenge, type Challenge } from './challenge-checks.js';
import { must, type Findings } from './findings.js';
import { checkReceipt } from './receipt-checks.js';
import { call, expectStatus, isObject, PAID_TIMEOUT_MS, type Reply } from './http-call.js';

/**
 * The buyer's wallet: a keypair of 64 bytes, the highest price it pays for a call (in atomic units of USDC), and the RPC server that the
 * client uses.
 */
export type Purse = { keypair: Uint8Array; maxPrice: bigint; rpcUrl: string | undefined };

const MAX_RETRIES = 20;

export type Asked = { operation: Sold; challenge: Challenge; amount: bigint };

/**
 * Buys the cheapest operation that can be paid in USDC on Solana, once: first with an invalid body, which must not cost anything, then
 * with a valid one, then the same again.
 */
export async function checkPurchase(catalogue: Catalogue, purse: Purse, findings: Findings): Promise<void> {
  const asked = await cheapest(catalogue);
  if (!asked)
    return findings.must('something can be bought', () =>
      must(false, 'nothing is sold for USDC on Solana with the scheme exact'),
    );
  const { operation, challenge, amount } = asked;
  const name = `${operation.method} ${operation.path}`;
  let headers: Record<string, string> | undefined;
  await findings.must(`${name} can be paid within the limit`, async () => {
    must(
      amount <= purse.maxPrice,
      `it costs ${toDecimal(amount)} USDC, but --max-price is ${toDecimal(purse.maxPrice)}`,
    );
    headers = await sign(challenge, purse);
  });
  if (!headers) return;
  const payment = headers;
  if (takesFields(operation))
    await findings.must(`${name}, paid but with an empty body, gets a 400 and is not charged`, async () => {
      const reply = await send(operation, {}, payment);
      must(receiptOf(reply)?.success !== true, `it was charged and answered with ${reply.status}`);
      expectStatus(reply, 400);
    });
  let first: Reply | undefined;
  await findings.must(`${name}: a paid call is answered with a receipt`, async () => {
    first = await send(operation, operation.body, payment);
    expectStatus(first, ...SOLD_STATUSES);
    const receipt = receiptOf(first);
    must(receipt?.success === true, `the receipt is ${JSON.stringify(receipt) ?? 'missing'}`);
  });
  if (!first || !isSoldStatus(first.status)) return;
  const bought = first;
  await findings.should(`${name}: its receipt is signed by the shop`, () =>
    checkReceipt(bought, receiptOf(bought), operation.url),
  );
  const { status, body } = first;
  await findings.should(`${name}: the same payment again gets the same answer`, async () => {
    const again = await send(operation, operation.body, payment);
    expectStatus(again, status);
    must(body.equals(again.body), 'the same payment got two different answers');
  });
}

/** The cheapest operation that can be paid in USDC on Solana. */
export async function cheapest({ sold }: Pick<Catalogue, 'sold'>): Promise<Asked | undefined> {
  const asked: Asked[] = [];
  for (const operation of sold.filter(({ method }) => method)) {
    const challenge = await readOffer(operation);
    const option = challenge?.accepts.find(
      ({ scheme, network }) => scheme === 'exact' && network.startsWith('solana:'),
    );
    if (!challenge || !option) continue;
    asked.push({ operation, challenge, amount: BigInt(String(option['amount'])) });
  }
  return asked.sort((a, b) => Number(a.amount - b.amount))[0];
}

async function readOffer(operation: Sold): Promise<Challenge | undefined> {
  try {
    return readChallenge(await call(operation.url, askingPrice(operation)));
  } catch {
    // `checkChallenges` reports this fault.
    return undefined;
  }
}

function takesFields({ method, schema }: Sold): boolean {
  return method !== 'GET' && Array.isArray(schema?.['required']) && schema['required'].length > 0;
}

/** Sends one payment until the shop has decided: after a 503, sends it again. */
async function send(
  { method, url, headers: own }: Sold,
  body: unknown,
  payment: Record<string, string>,
): Promise<Reply> {
  const headers = { ...own, ...payment };
  const deadline = Date.now() + PAID_TIMEOUT_MS;
  for (let attempt = 0; ; attempt++) {
    const reply = await call(url, unpaid(method, body, headers), PAID_TIMEOUT_MS);
    const waitMs = Math.max(1, Number(reply.headers.get('retry-after') ?? 1)) * 1000;
    if (reply.status !== 503 || attempt >= MAX_RETRIES || Date.now() + waitMs > deadline) return reply;
    await sleep(waitMs);
  }
}

function receiptOf(reply: Reply): { success?: unknown } | undefined {
  const header = reply.headers.get('payment-response') ?? reply.headers.get('x-payment-response');
  if (header === null) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

async function sign(challenge: Challenge, { keypair, rpcUrl }: Purse): Promise<Record<string, string>> {
  const options = rpcUrl === undefined ? {} : { rpcUrl };
  const scheme = new ExactSvmScheme(await createKeyPairSignerFromBytes(keypair), options);
  const client = new x402HTTPClient(new x402Client().register('solana:*', scheme));
  const payload = await client.createPaymentPayload(challenge as unknown as PaymentRequired);
  return client.encodePaymentSignatureHeader(payload);
}
