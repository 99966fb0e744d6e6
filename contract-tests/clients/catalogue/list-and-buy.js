import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { HTTPFacilitatorClient } from '@x402/core/server';
import { withBazaar } from '@x402/extensions/bazaar';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { openFacilitator } from './facilitator.js';
import { openPetStore } from './pet-store.js';
import { openShop } from './shop.js';

/** A pending order counts as an answer: the order is placed without waiting for its result. */
const AT_ONCE = { prefer: 'respond-async' };

function newKey() {
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  return Uint8Array.from([...Buffer.from(d, 'base64url'), ...Buffer.from(x, 'base64url')]);
}

/** How to call an entry of a directory, according to the entry itself. */
function callOf({ resource, extensions }) {
  const { method, body, pathParams = {} } = extensions.bazaar.info.input;
  const url = resource.replace(/(?<=\/):(\w+)/g, (_, name) => encodeURIComponent(pathParams[name]));
  return new Request(url, {
    method,
    headers: { 'content-type': 'application/json', ...AT_ONCE },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
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

const { KEYPAIR = '', RPC_URL: rpcUrl = '', root = '' } = process.env;
const facilitator = await openFacilitator({ key: newKey(), rpcUrl });
await rpc(rpcUrl, 'requestAirdrop', [facilitator.address, 1_000_000_000]);
const petStore = await openPetStore();
// The public URL has another host name than the address on which the shop listens.
const port = await freePort();
const pets = {
  SHOP_DIR: join(root, 'examples/petstore'),
  PORT: String(port),
  PUBLIC_URL: `http://localhost:${port}`,
  ALLOW_PRIVATE_UPSTREAMS: 'true',
  PETSTORE_URL: petStore.url,
  PETSTORE_KEY: 'special-key',
};
const opened = await Promise.allSettled([openShop(facilitator.url), openShop(facilitator.url, pets)]);
const shops = opened.flatMap(({ value }) => value ?? []);

const buyer = Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8')));
const signer = await createKeyPairSignerFromBytes(buyer);
const wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));
const pay = wrapFetchWithPayment(fetch, wallet);

/** The paid operations of a shop, according to its contract. */
async function soldBy(shop) {
  const { paths } = await (await fetch(`${shop.url}/openapi.json`)).json();
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, each]) => {
      if (!each?.['x-price']) return [];
      const listed = shop.url + path.replace(/\{(\w+)\}/g, ':$1');
      // Each example costs the minimum price.
      const { amount: fixed, min = fixed } = each['x-price'];
      const amount = String(Math.round(Number(min) * 1e6));
      return [{ shop, path, listed, method: method.toUpperCase(), amount, ...each }];
    }),
  );
}

/** The first sale of an operation over HTTP. */
async function buyFirst({ listed, method }) {
  // A buyer who knows only the path calls it with any id, which is an integer here.
  const challenge = await (await fetch(listed.replace(/:\w+$/, '1'), { method })).json();
  const { status } = await pay(callOf({ resource: listed, extensions: challenge.extensions }));
  assert.ok(status < 300, `${listed}: ${status}`);
}

/** The first sale of an operation over MCP. */
async function callFirst({ shop, operationId }) {
  const asked = { name: operationId, arguments: {} };
  const { structuredContent: probed } = await mcp(`${shop.url}/mcp`, 'tools/call', asked);
  const { example } = probed.extensions.bazaar.info.input;
  // If the price depends on the call, the server names it only for a call with arguments.
  const whole = { ...asked, arguments: example };
  const { structuredContent: required } = await mcp(`${shop.url}/mcp`, 'tools/call', whole);
  const call = { ...whole, _meta: { 'x402/payment': await wallet.createPaymentPayload(required) } };
  const paid = await mcp(`${shop.url}/mcp`, 'tools/call', call);
  assert.equal(paid._meta['x402/payment-response'].success, true, operationId);
}

try {
  for (const { reason } of opened) if (reason) throw reason;
  const sold = (await Promise.all(shops.map(soldBy))).flat();
  assert.equal(sold.filter(({ path }) => path.includes('{')).length, 1);
  for (const each of sold) await buyFirst(each);
  for (const each of sold) await callFirst(each);

  // What a buyer who knows only the facilitator's URL finds.
  const client = withBazaar(new HTTPFacilitatorClient({ url: facilitator.url }));
  const { items } = await client.extensions.bazaar.listResources();
  const names = items.map(({ type, resource, extensions }) => {
    const { method, toolName } = extensions.bazaar.info.input;
    return `${type} ${resource} ${toolName ?? method}`;
  });
  const expected = sold.flatMap(({ shop, listed, method, operationId }) => [
    `http ${listed} ${method}`,
    `mcp ${shop.url}/mcp ${operationId}`,
  ]);
  assert.deepEqual(names.toSorted(), expected.toSorted());
  for (const { listed, path, summary, amount } of sold) {
    const { description, accepts, routeTemplate } = items.find(({ resource }) => resource === listed);
    assert.equal(description, summary);
    assert.equal(accepts[0].amount, amount, listed);
    assert.equal(routeTemplate, path.includes('{') ? new URL(listed).pathname : undefined);
  }
  for (const item of items.filter(({ type }) => type === 'http')) {
    const answer = await pay(callOf(item));
    assert.ok(answer.status < 300, `${item.resource}: ${answer.status}`);
    assert.ok(answer.headers.get('payment-response'), `${item.resource}: no receipt`);
    assert.equal(answer.headers.get('extension-responses'), null);
  }
  for (const { shop, operationId } of sold)
    for (const transport of ['http', 'mcp'])
      assert.match(shop.log(), new RegExp(`lists ${operationId} \\(${transport}\\)`));
} finally {
  for (const shop of shops) await shop.close();
  for (const { server } of [facilitator, petStore]) {
    server.close();
    server.closeAllConnections();
  }
}
