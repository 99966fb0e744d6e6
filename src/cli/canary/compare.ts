import { setTimeout as sleep } from 'node:timers/promises';
import type { Json } from '../../contract/json.js';
import { readJws } from '../../receipts/jws.js';
import type { Fates } from '../../wallet/fate.js';
import type { PendingPayment } from '../../wallet/purse.js';
import { parseJson, receiptOf, type ServerAnswer } from '../../wallet/shop-client.js';
import { offSchema } from '../conformance/document-checks.js';
import { Broken, must } from '../conformance/findings.js';
import { isObject } from '../conformance/http-call.js';
import { checkReceipt } from '../conformance/receipt-checks.js';
import { follow } from '../conformance/sample.js';

/** An answered purchase. */
export type Bought = {
  /** The shop's OpenAPI document, and the operation in it. */
  document: Json;
  described: Json;
  /** The example request of the operation. */
  url: string;
  payer: string;
  payment: PendingPayment;
  answer: ServerAnswer;
};

/** How long to look on the chain for a transfer that the shop has seen. */
const CHAIN_MS = 20_000;
const CHAIN_PAUSE_MS = 1_000;

/** The faults of a purchase, as sentences; empty if all is well. */
export async function faultsOf(bought: Bought, fates: Pick<Fates, 'of'>): Promise<string[]> {
  const checks: [string, () => Promise<void> | void][] = [
    ['The answer does not match the contract', () => checkAnswer(bought)],
    ['The receipt is wrong', () => checkReceipts(bought)],
    ['The chain shows something else', () => checkTransfer(bought, fates)],
  ];
  const faults: string[] = [];
  for (const [title, check] of checks)
    try {
      await check();
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      faults.push(`${title}: ${error.message}.`);
    }
  return faults;
}

/** Compares an answer with what the document declares. @throws Broken */
export function checkAnswer({
  document,
  described,
  answer,
}: Omit<Bought, 'payment' | 'payer' | 'url'>): void {
  const { status, headers, body } = answer;
  const responses = isObject(described.responses) ? described.responses : {};
  const declared = responses[String(status)] ?? responses.default;
  must(declared !== undefined, `it has status ${status}, which is not declared`);
  const { content } = follow(document, declared);
  if (!isObject(content)) return must(body.length === 0, 'it has content, but none is declared');
  const [type = ''] = (headers.get('content-type') ?? '').split(';', 1);
  const media = content[type.trim().toLowerCase()];
  must(isObject(media), `its type is ${type || 'missing'}, not ${Object.keys(content).join(' or ')}`);
  must(body.length > 0, 'it is empty');
  if (!/[/+]json$/.test(type)) return;
  const value = parseJson(body);
  must(value !== undefined, 'it is not JSON');
  const off = offSchema(document, media.schema, value);
  must(off === undefined, off ?? '');
}

/** Checks that the shop signed both receipts, and that they are about this payment. */
async function checkReceipts({ url, payer, payment, answer }: Bought): Promise<void> {
  const receipt = receiptOf(answer);
  must(receipt?.success === true, 'no receipt says that the call was paid');
  await checkReceipt(answer, receipt, url);
  const own = readJws(answer.headers.get('answer-receipt') ?? '');
  must(own, 'there is no Answer-Receipt');
  const expected = {
    payer,
    amount: payment.amount,
    network: payment.network,
    transaction: receipt.transaction,
  };
  for (const [name, value] of Object.entries(expected))
    must(own.payload[name] === value, `${name} is ${String(own.payload[name])}, not ${value}`);
}

/** Checks that the chain shows the signed transaction, which fixes amount and receiver, and that the receipt names its signature. */
async function checkTransfer({ payment, answer }: Bought, fates: Pick<Fates, 'of'>): Promise<void> {
  const unseen = { ...payment };
  delete unseen.landed;
  const deadline = Date.now() + CHAIN_MS;
  for (;;) {
    const fate = await fates.of(unseen);
    must(fate.kind !== 'dead', 'the payment was not settled and never will be');
    const told = receiptOf(answer)?.transaction;
    if (fate.kind === 'landed')
      return must(
        fate.signature === told,
        `the transfer is ${fate.signature}, but the receipt names ${told}`,
      );
    must(Date.now() < deadline, `the transfer was not found: ${fate.why}`);
    await sleep(CHAIN_PAUSE_MS);
  }
}
