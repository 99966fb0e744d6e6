// Buys every operation of a sandbox with mppx and the method of @solana/mpp, without an RPC server.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { solana } from '@solana/mpp/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { Mppx } from 'mppx/client';

const { COINSLOT_URL, KEYPAIR } = process.env;
const NO_RPC = 'http://127.0.0.1:9';
const OPERATIONS = 5;

const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8'));
const signer = await createKeyPairSignerFromBytes(Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8'))));
const mppx = Mppx.create({ methods: [solana.charge({ signer, rpcUrl: NO_RPC })], polyfill: false });

let bought = 0;
for (const [path, { post }] of Object.entries(paths)) {
  if (!post?.['x-price']) continue;
  const { example } = post.requestBody.content['application/json'];
  const answer = await mppx.fetch(COINSLOT_URL + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(example),
  });
  assert.equal(answer.status, 200, `${path}: ${answer.status} ${await answer.clone().text()}`);
  const receipt = JSON.parse(Buffer.from(answer.headers.get('Payment-Receipt'), 'base64url').toString());
  assert.equal(receipt.status, 'success');
  await answer.arrayBuffer();
  bought += 1;
}
assert.equal(bought, OPERATIONS, `bought ${bought} operations instead of ${OPERATIONS}`);
