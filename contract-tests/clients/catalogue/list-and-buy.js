import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { HTTPFacilitatorClient } from '@x402/core/server';
import { withBazaar } from '@x402/extensions/bazaar';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { openFacilitator } from './facilitator.js';
import { openShop } from './shop.js';

/** Half-made answers of people are answers, too: an order is placed, and not waited for. */
const AT_ONCE = { prefer: 'respond-async' };

function newKey() {
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  return Uint8Array.from([...Buffer.from(d, 'base64url'), ...Buffer.from(x, 'base64url')]);
}

/** How an entry of a directory is called, by what it says itself. */
function callOf({ resource, extensions }) {
  const { method, body } = extensions.bazaar.info.input;
  return new Request(resource, {
    method,
    headers: { 'content-type': 'application/json', ...AT_ONCE },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
}

async function rpc(url, method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const headers = { 'content-type': 'application/json' };
  const { result, error } = await (await fetch(url, { method: 'POST', headers, body })).json();
  if (error) throw new Error(error.message);
  return result;
}

async function mcp(url, method, params) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const text = await (await fetch(url, { method: 'POST', headers, body })).text();
  const [line = text] = /(?<=^data: ).*"id".*$/m.exec(text) ?? [];
  return JSON.parse(line).result;
}

const { KEYPAIR = '', RPC_URL: rpcUrl = '' } = process.env;
const facilitator = await openFacilitator({ key: newKey(), rpcUrl });
await rpc(rpcUrl, 'requestAirdrop', [facilitator.address, 1_000_000_000]);
const shop = await openShop(facilitator.url);
try {
  const buyer = Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8')));
  const signer = await createKeyPairSignerFromBytes(buyer);
  const wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));
  const pay = wrapFetchWithPayment(fetch, wallet);

  // The first sale of each operation, over HTTP and over MCP.
  const { paths } = await (await fetch(`${shop.url}/openapi.json`)).json();
  const sold = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, each]) => (each?.['x-price'] ? [{ path, method, ...each }] : [])),
  );
  for (const { path, method } of sold) {
    const url = shop.url + path;
    const challenge = await (await fetch(url, { method: method.toUpperCase() })).json();
    const { status } = await pay(callOf({ resource: url, extensions: challenge.extensions }));
    assert.ok(status < 300, `${url}: ${status}`);
  }
  for (const { operationId } of sold) {
    const asked = { name: operationId, arguments: {} };
    const { structuredContent: required } = await mcp(`${shop.url}/mcp`, 'tools/call', asked);
    const { example } = required.extensions.bazaar.info.input;
    const payment = await wallet.createPaymentPayload(required);
    const call = { ...asked, arguments: example, _meta: { 'x402/payment': payment } };
    const paid = await mcp(`${shop.url}/mcp`, 'tools/call', call);
    assert.equal(paid._meta['x402/payment-response'].success, true, operationId);
  }

  // What a stranger finds, who knows the facilitator's URL only.
  const client = withBazaar(new HTTPFacilitatorClient({ url: facilitator.url }));
  const { items } = await client.extensions.bazaar.listResources();
  const names = items.map(({ type, resource, extensions }) => {
    const { method, toolName } = extensions.bazaar.info.input;
    return `${type} ${resource} ${toolName ?? method}`;
  });
  const expected = sold.flatMap(({ path, method, operationId }) => [
    `http ${shop.url}${path} ${method.toUpperCase()}`,
    `mcp ${shop.url}/mcp ${operationId}`,
  ]);
  assert.deepEqual(names.toSorted(), expected.toSorted());
  for (const { path, summary } of sold)
    assert.equal(items.find(({ resource }) => resource === shop.url + path).description, summary);
  for (const item of items.filter(({ type }) => type === 'http')) {
    const answer = await pay(callOf(item));
    assert.ok(answer.status < 300, `${item.resource}: ${answer.status}`);
    assert.ok(answer.headers.get('payment-response'), `${item.resource}: no receipt`);
    assert.equal(answer.headers.get('extension-responses'), null);
  }
  for (const { operationId } of sold)
    for (const transport of ['http', 'mcp'])
      assert.match(shop.log(), new RegExp(`lists ${operationId} \\(${transport}\\)`));
} finally {
  await shop.close();
  facilitator.server.close();
  facilitator.server.closeAllConnections();
}
