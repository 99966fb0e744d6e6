import { createKeyPairSignerFromBytes } from '@solana/kit';
import { decodePaymentResponseHeader } from '@x402/core/http';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { toDecimal } from '../../src/price/amount.js';
import { exampleCall } from '../support/example-call.js';
import { SOLD } from '../support/sold.js';
import { openWorld } from '../support/world.js';

/**
 * Buys every operation of this repository's contract, with its examples, from a server in the sandbox with the official
 * client. Fails unless each is answered 200 with a receipt, and the receiver gets exactly the prices.
 */

const world = await openWorld();
try {
  const signer = await createKeyPairSignerFromBytes(world.buyer);
  const scheme = new ExactSvmScheme(signer, { rpcUrl: world.sandbox.rpc.url });
  const pay = wrapFetchWithPayment(fetch, new x402Client().register('solana:*', scheme));
  let expected = 0n;
  for (const operation of SOLD.paid) {
    const { query, init } = exampleCall(operation);
    const answer = await pay(world.url + operation.examplePath + query, init);
    const text = await answer.text();
    const receipt = answer.headers.get('payment-response');
    const paid = receipt !== null && decodePaymentResponseHeader(receipt).success;
    if (answer.status !== 200 || !paid) throw new Error(`${operation.id}: ${answer.status} ${text}`);
    expected += operation.price.atomic;
    process.stdout.write(`${operation.id}, ${operation.price.amount} USDC: ${text.slice(0, 100)}\n`);
  }
  const earned = await world.earned();
  if (earned !== expected)
    throw new Error(`the receiver got ${toDecimal(earned)} USDC instead of ${toDecimal(expected)}`);
} finally {
  await world.close();
}
