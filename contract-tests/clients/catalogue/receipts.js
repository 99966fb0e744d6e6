// Buys every operation of a sandbox over HTTP, and verifies its signed receipt with the keys that the server publishes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import {
  extractReceiptFromResponse,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';

const { COINSLOT_URL, KEYPAIR, RPC_URL: rpcUrl } = process.env;
const OPERATIONS = 5;
const signer = await createKeyPairSignerFromBytes(Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8'))));
const wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));
const pay = wrapFetchWithPayment(fetch, wallet);

let bought = 0;
const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8'));
for (const [path, { post }] of Object.entries(paths)) {
  if (!post?.['x-price']) continue;
  const url = COINSLOT_URL + path;
  const { example } = post.requestBody.content['application/json'];
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(example),
  };
  const { resource, accepts } = await (await fetch(url, init)).json();
  const answer = await pay(url, init);
  assert.equal(answer.status, 200, `${path}: ${answer.status}`);
  const receipt = extractReceiptFromResponse(answer);
  assert.ok(receipt, `${path}: no receipt`);
  const payload = await verifyReceiptSignatureJWS(receipt);
  const offer = { resourceUrl: resource.url, network: accepts[0].network };
  assert.ok(verifyReceiptMatchesOffer(receipt, offer, [signer.address]), JSON.stringify(payload));
  const changed = { ...receipt, signature: receipt.signature.replace(/.{4}$/, 'AAAA') };
  await assert.rejects(verifyReceiptSignatureJWS(changed));
  await answer.arrayBuffer();
  bought += 1;
}
assert.equal(bought, OPERATIONS);
