import { createKeyPairSignerFromBytes } from '@solana/kit';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { callTool, paid } from '../support/mcp-call.js';
import { ownPlace, startShop, type Running } from '../support/other-shop.js';
import { TestUpstream, VALUE } from '../support/upstream-shop.js';

const COMMAND = fileURLToPath(new URL('../../../src/cli/coinslot.js', import.meta.url));
const PRICE = { mode: 'fixed', currency: 'USD', amount: '0.01', flow: 'authorization' };
const FORM = 'application/x-www-form-urlencoded';
const text = { type: 'string', maxLength: 100 };
const note = { type: 'object', required: ['text'], properties: { text } };
const photo = {
  type: 'object',
  required: ['photo'],
  properties: { text, photo: { type: 'string', format: 'binary' } },
};

const TAKEN: Record<string, Record<string, object>> = {
  list: { 'application/json': { schema: { type: 'array', minItems: 1, items: { type: 'integer' } } } },
  text: { 'text/plain': { schema: text } },
  bytes: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
  upload: { 'multipart/form-data': { schema: photo } },
  several: {
    'application/json': { schema: note },
    [FORM]: { schema: note },
    'multipart/form-data': { schema: photo },
  },
};

const BYTES = Buffer.from([0, 1, 254, 255, 13, 10]);

function upload(): FormData {
  const form = new FormData();
  form.append('photo', new Blob([BYTES], { type: 'image/png' }), 'photo.png');
  form.append('text', 'a');
  return form;
}

describe('A shop that sells operations with bodies of every type to the official client', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let folder: string;
  let shop: Running;
  let wallet: x402Client;

  before(async () => {
    upstream = await TestUpstream.open();
    folder = mkdtempSync(join(tmpdir(), 'coinslot-bodies-'));
    const paths = Object.fromEntries(
      Object.entries(TAKEN).map(([operationId, content]) => [
        `/${operationId}`,
        {
          post: {
            ...{ operationId, 'x-price': PRICE, 'x-upstream': { url: `${upstream.url}/` } },
            requestBody: { required: true, content },
            responses: { 200: { content: { 'application/json': { schema: VALUE } } } },
          },
        },
      ]),
    );
    writeFileSync(join(folder, 'openapi.yaml'), JSON.stringify({ info: { title: 'Bodies' }, paths }));
    const env = ownPlace(join(folder, 'state'), { ALLOW_PRIVATE_UPSTREAMS: 'true' });
    shop = await startShop(folder, env, process.execPath, COMMAND, 'run');
    const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, 'state', name), 'utf8'));
    const { rpcUrl } = read('sandbox.json') as { rpcUrl: string };
    const signer = await createKeyPairSignerFromBytes(Uint8Array.from(read('buyer.json') as number[]));
    wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));
  });
  after(async () => {
    await shop?.kill();
    upstream.close();
    rmSync(folder, { recursive: true });
  });
  beforeEach(() => void (upstream.calls.length = 0));

  const json = { 'content-type': 'application/json' };
  const ROWS: [what: string, id: string, init: () => RequestInit, received: string | Buffer | undefined][] = [
    ['a list', 'list', () => ({ body: '[1,2]', headers: json }), '[1,2]'],
    ['a text', 'text', () => ({ body: 'a\r\nü', headers: { 'content-type': 'text/plain' } }), 'a\r\nü'],
    [
      'bytes',
      'bytes',
      () => ({ body: BYTES, headers: { 'content-type': 'application/octet-stream' } }),
      BYTES,
    ],
    ['a form with a file', 'upload', () => ({ body: upload() }), undefined],
    ['JSON, of several types', 'several', () => ({ body: '{"text":"a"}', headers: json }), '{"text":"a"}'],
    ['a form, of several types', 'several', () => ({ body: new URLSearchParams({ text: 'a' }) }), 'text=a'],
    ['a file, of several types', 'several', () => ({ body: upload() }), undefined],
  ];
  for (const [what, id, init, received] of ROWS)
    it(`${what}: ${id}`, async () => {
      const pay = wrapFetchWithPayment(fetch, wallet);
      const answer = await pay(`${shop.url}/${id}`, { method: 'POST', ...init() });
      expect([answer.status, await answer.text()]).to.deep.equal([200, '{"value":1}']);
      expect(answer.headers.get('payment-response')).to.be.a('string');
      expect(upstream.calls).to.have.length(1);
      const [{ headers, bytes }] = upstream.calls as [(typeof upstream.calls)[0]];
      if (received !== undefined) return expect(bytes).to.deep.equal(Buffer.from(received as string));
      const type = String(headers['content-type']);
      const form = await new Response(bytes, { headers: { 'content-type': type } }).formData();
      const file = form.get('photo') as File;
      expect([file.name, file.type, Buffer.from(await file.arrayBuffer()), form.get('text')]).to.deep.equal([
        ...['photo.png', 'image/png', BYTES, 'a'],
      ]);
      return undefined;
    });

  for (const [id, args] of [
    ['list', { body: [1, 2] }],
    ['text', { body: 'a' }],
    ['bytes', { body: BYTES.toString('base64') }],
    ['upload', { photo: `data:image/png;name=photo.png;base64,${BYTES.toString('base64')}` }],
    ['several', { text: 'a' }],
  ] as const)
    it(`${id}, as an MCP tool`, async () => {
      const { structuredContent } = await callTool(shop.url, id, args);
      const payment = await wallet.createPaymentPayload(structuredContent as never);
      const result = await callTool(shop.url, id, args, paid(payment));
      expect(result.isError, JSON.stringify(result.content)).to.equal(undefined);
      expect(upstream.calls).to.have.length(1);
    });

  it('serves its pages and documents', async () => {
    const pages = await Promise.all(
      ['/', '/llms-full.txt', '/openapi.json', '/.well-known/x402', '/docs'].map(path =>
        fetch(shop.url + path, { headers: { accept: 'text/html' } }).then(answer => answer.status),
      ),
    );
    expect(pages).to.deep.equal([200, 200, 200, 200, 200]);
  });
});
