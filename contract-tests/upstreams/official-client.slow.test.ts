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
const json = { content: { 'application/json': { schema: VALUE } } };
const PRICE = { mode: 'fixed', currency: 'USD', amount: '0.01', flow: 'authorization' };

describe('Everything that an API may answer, bought with the official client', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let folder: string;
  let shop: Running;
  let wallet: x402Client;

  before(async () => {
    upstream = await TestUpstream.open();
    folder = mkdtempSync(join(tmpdir(), 'coinslot-answers-'));
    const at = (more: object = {}): object => ({ url: `${upstream.url}/`, ...more });
    const sold = (operationId: string, responses: object, more: object = {}): object => ({
      operationId,
      'x-price': PRICE,
      'x-upstream': at(more),
      responses,
    });
    const two = { content: { ...json.content, 'text/csv': { schema: { type: 'string' } } } };
    const paths = {
      '/by-type': { get: sold('byType', { 200: json }, { check: 'type' }) },
      '/as-it-is': { get: sold('asItIs', { 200: {} }, { check: 'none' }) },
      '/made': { get: sold('made', { 201: json }) },
      '/taken': { get: sold('taken', { 202: json }) },
      '/gone': { delete: sold('gone', { 204: {} }) },
      '/order': {
        get: { ...sold('order', { 201: json }), 'x-price': { ...PRICE, flow: 'upfront' } },
      },
      '/report': { get: sold('report', { 200: two }) },
      '/given': {
        get: { operationId: 'given', 'x-free-proxy': true, 'x-upstream': at(), responses: { 200: json } },
      },
    };
    writeFileSync(join(folder, 'openapi.yaml'), JSON.stringify({ info: { title: 'Answers' }, paths }));
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

  const ROWS: [path: string, id: string, status: number, body: string, type: string | null][] = [
    ['/by-type', 'byType', 200, '{"value":"high"}', 'application/json'],
    ['/as-it-is', 'asItIs', 200, '<p>', 'text/html'],
    ['/made', 'made', 201, '{"value":1}', 'application/json'],
    ['/taken', 'taken', 202, '{"value":1}', 'application/json'],
    ['/gone', 'gone', 204, '', null],
    ['/order', 'order', 201, '{"value":1}', 'application/json'],
  ];
  for (const [path, id, status, body, type] of ROWS)
    it(`${id}: ${status}, over HTTP and over MCP`, async () => {
      upstream.says(status, body, type === null ? {} : { 'Content-Type': type });
      const pay = wrapFetchWithPayment(fetch, wallet);
      const answer = await pay(shop.url + path, { method: id === 'gone' ? 'DELETE' : 'GET' });
      expect([answer.status, await answer.text()]).to.deep.equal([status, body]);
      expect(answer.headers.get('content-type')?.split(';')[0] ?? null).to.equal(type);
      expect(answer.headers.get('payment-response')).to.be.a('string');
      const { structuredContent } = await callTool(shop.url, id, {});
      const payment = await wallet.createPaymentPayload(structuredContent as never);
      const result = await callTool(shop.url, id, {}, paid(payment));
      expect(result.isError, JSON.stringify(result.content)).to.equal(undefined);
      if (body !== '') expect(result.content[0]?.text).to.equal(body);
      expect(result._meta?.['coinslot/status']).to.equal(status === 200 ? undefined : status);
    });

  it('report: answered in the content type that the client asks for', async () => {
    upstream.answer = ({ headers }, response) => {
      const csv = headers.accept?.startsWith('text/csv');
      response.writeHead(200, { 'Content-Type': csv ? 'text/csv' : 'application/json' });
      response.end(csv ? 'a;b' : '{"value":1}');
    };
    const pay = wrapFetchWithPayment(fetch, wallet);
    const csv = await pay(`${shop.url}/report`, { headers: { Accept: 'text/csv' } });
    expect([csv.status, await csv.text()]).to.deep.equal([200, 'a;b']);
    const first = await pay(`${shop.url}/report`);
    expect([first.status, await first.json()]).to.deep.equal([200, { value: 1 }]);
  });

  it('given: answered without a payment', async () => {
    upstream.says(200, '{"value":1}');
    const answer = await fetch(`${shop.url}/given`);
    expect([answer.status, await answer.json()]).to.deep.equal([200, { value: 1 }]);
  });
});
