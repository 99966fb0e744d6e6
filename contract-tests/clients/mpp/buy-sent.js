// Buys the operation that is paid before its work from a server that pays no fees: the client sends the transfer itself, and names it in
// its credential (type signature).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { solana } from '@solana/mpp/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { Mppx } from 'mppx/client';

const { url, rpcUrl } = JSON.parse(readFileSync(`${process.env.SENT_STATE_DIR}/sandbox.json`, 'utf8'));
const keys = JSON.parse(readFileSync(`${process.env.SENT_STATE_DIR}/buyer.json`, 'utf8'));
const signer = await createKeyPairSignerFromBytes(Uint8Array.from(keys));
const said = [];
const method = solana.charge({ signer, rpcUrl, broadcast: true, onProgress: step => said.push(step) });
const mppx = Mppx.create({ methods: [method], polyfill: false });

const { paths } = await (await fetch(`${url}/openapi.json`)).json();
const [[path, { post }]] = Object.entries(paths).filter(
  ([, { post }]) => post?.['x-price']?.flow === 'upfront',
);
const { example } = post.requestBody.content['application/json'];
const answer = await mppx.fetch(url + path, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(example),
});
const body = await answer.text();
assert.equal(answer.status, 200, `${path}: ${answer.status} ${body}`);
const receipt = JSON.parse(Buffer.from(answer.headers.get('Payment-Receipt'), 'base64url').toString());
const sent = said.find(({ type }) => type === 'paid');
assert.equal(receipt.status, 'success');
assert.equal(receipt.reference, sent.signature, 'the receipt names the transfer that the client sent');
