import { createKeyPairSignerFromBytes } from '@solana/kit';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expect } from 'chai';
import { sellingOf } from '../support/selling.js';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Contract, PricedOperation } from '../../src/contract/contract.js';
import { loadContract } from '../../src/contract/parse-contract.js';
import { checkPayment } from '../../src/sale/check-payment.js';
import type { Rail } from '../../src/rails/rail.js';
import { TransactionChecker } from '../../src/rails/solana/transaction.js';
import { exampleCall } from '../support/example-call.js';
import { call, openWorld, post, signFor, TEXT, type Answer, type World } from '../support/world.js';
import { noPrism, prismVersion, startMock, startProxy, type Prism } from './prism.js';
import { record } from './record.js';

const CONTRACT = new URL('../../../openapi.yaml', import.meta.url);
const contract: Contract = loadContract(CONTRACT);
const skipped = noPrism ? ` (skipped: ${noPrism})` : '';

/** A suite's result for the table of conformance.md, whether or not tests failed. */
function resultOf(context: Mocha.Context): string {
  const failed = context.test?.parent?.tests.filter(test => test.state !== 'passed').length ?? 1;
  return failed === 0 ? 'no violation' : `${failed} failures`;
}

/** Prism never answers some requests, so every call has its own deadline. */
const within = (init: RequestInit = {}): RequestInit => ({ ...init, signal: AbortSignal.timeout(20_000) });

function callExample(
  url: string,
  operation: PricedOperation,
  headers: Record<string, string>,
): Promise<Answer> {
  const { query, init } = exampleCall(operation);
  const all = { ...(init.headers as Record<string, string>), ...headers };
  return call(url + operation.examplePath + query, within({ ...init, headers: all }));
}

type Violation = { location: string[]; severity: string; code: string; message: string };

function violations(answer: Answer, side: 'request' | 'response'): Violation[] {
  const header = answer.headers.get('sl-violations');
  return header ? (JSON.parse(header) as Violation[]).filter(({ location: [where] }) => where === side) : [];
}

function send(
  url: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const all = { 'content-type': 'application/json', ...headers };
  return call(url + path, within({ method: 'POST', headers: all, body: text }));
}

describe(`The contract behind Prism's mock${skipped}`, function () {
  this.timeout(60_000);

  it('is served unchanged, without added examples', async function () {
    if (noPrism) return this.skip();
    const plain = await startMock(CONTRACT);
    try {
      for (const operation of contract.paid) {
        const answer = await callExample(plain.url, operation, { prefer: 'code=402' });
        expect(answer.status, operation.id).to.equal(402);
        expect(violations(answer, 'response'), operation.id).to.deep.equal([]);
      }
    } finally {
      await plain.close();
    }
  });
});

describe(`A mock of the description that a server serves${skipped}`, function () {
  this.timeout(120_000);
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-mock-'));
  let world: World;
  let mock: Prism;

  before(async function () {
    if (noPrism) return this.skip();
    world = await openWorld();
    const file = join(folder, 'openapi.json');
    writeFileSync(file, (await call(`${world.url}/openapi.json`)).body);
    mock = await startMock(pathToFileURL(file));
  });

  after(async () => {
    await mock?.close();
    await world?.close();
    rmSync(folder, { recursive: true });
  });

  for (const operation of contract.paid) {
    it(`${operation.id}: the official client pays its 402, with a payment that a server would accept`, async () => {
      const { network, v1Network, usdcMint: asset, payTo } = world.sandbox.info;
      let paid: Headers | undefined;
      const demandPayment = (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
        const request = new Request(input, { ...init, signal: AbortSignal.timeout(20_000) });
        if (request.headers.has('payment-signature')) paid = request.headers;
        else request.headers.set('prefer', 'code=402');
        return fetch(request);
      };
      const signer = await createKeyPairSignerFromBytes(world.buyer);
      const scheme = new ExactSvmScheme(signer, { rpcUrl: world.sandbox.rpc.url });
      const pay = wrapFetchWithPayment(demandPayment, new x402Client().register('solana:*', scheme));
      const { query, init } = exampleCall(operation);
      const answer = await pay(mock.url + operation.examplePath + query, init);
      // Prism can't serve the WAV, but reports this only after it has taken the payment.
      if (operation.answers[0].mimeType === 'application/json') expect(answer.status).to.equal(200);
      const terms = { network, v1Network, asset, payTo, publicUrl: world.url };
      const check: Rail['check'] = (transaction, amount) =>
        new TransactionChecker().check(transaction, { ...terms, amount });
      const { methods } = sellingOf(terms);
      const carrier = { headers: Object.fromEntries(paid ?? []) };
      const checkedPayment = await checkPayment(methods, { check }, carrier, operation);
      expect(checkedPayment, JSON.stringify(checkedPayment)).to.have.property('kind', 'payment');
    });
  }
});

describe(`The server behind Prism's proxy${skipped}`, function () {
  this.timeout(120_000);
  let world: World;
  let proxy: Prism;
  let answers = 0;

  before(async function () {
    if (noPrism) return this.skip();
    world = await openWorld();
    proxy = await startProxy(CONTRACT, world.url);
  });

  after(async function () {
    if (noPrism) return;
    await proxy.close();
    await world.close();
    record('prism-proxy', {
      tool: 'Prism, proxy',
      version: prismVersion(),
      checks: 'answers of the running server, paid and unpaid, conform to the contract',
      cases: `${answers} answers`,
      result: resultOf(this),
    });
  });

  function expectSound(answer: Answer, status: number): void {
    expect(answer.status, answer.body.toString('utf8').slice(0, 300)).to.equal(status);
    expect(violations(answer, 'response')).to.deep.equal([]);
    answers += 1;
  }

  for (const { id, path, request } of contract.paid) {
    it(`${id}: unpaid, wrongly paid and invalid calls get answers that conform`, async () => {
      expectSound(await send(proxy.url, path, request!.example), 402);
      expectSound(await send(proxy.url, `${path}?x402Version=1`, request!.example), 402);
      expectSound(await send(proxy.url, path, request!.example, { 'x-payment': 'bm9uc2Vuc2U' }), 402);
      expectSound(await send(proxy.url, path, {}, await signFor(world, path)), 400);
    });
  }

  it('the JSON operations answer a payment of either version', async () => {
    const { classic } = world.sandbox.info.mints;
    const bodies: [string, object][] = [
      ['/v1/summarize', { text: TEXT }],
      ['/v1/sol-token-brief', { mint: classic }],
      ['/v1/sol-mint-info', { mint: classic }],
      ['/brand-feedback', { brand: 'Harbour Coffee', question: 'What do you think of the new cup?', n: 2 }],
    ];
    for (const [path, body] of bodies) {
      for (const version of path === '/brand-feedback' ? ([2] as const) : ([1, 2] as const)) {
        expectSound(await send(proxy.url, path, body, await signFor(world, path, version)), 200);
      }
    }
  });

  it('the answer of speech conforms, although Prism does not forward its bytes unchanged', async () => {
    const answer = await send(proxy.url, '/v1/tts', { text: 'One coin.' }, await signFor(world, '/v1/tts'));
    expectSound(answer, 200);
  });

  it('the answers of the free operations conform', async () => {
    const paths = contract.free.map(({ path }) => path);
    const [answers = ''] = paths.filter(path => path.includes('{'));
    for (const path of paths.filter(each => each !== answers))
      expectSound(await call(proxy.url + path, within()), 200);
    const bought = await post(
      `${world.url}/v1/summarize`,
      { text: TEXT },
      await signFor(world, '/v1/summarize'),
    );
    const { pathname } = new URL(bought.headers.get('location') ?? '', world.url);
    expectSound(await call(proxy.url + pathname, within()), 200);
    expectSound(await call(proxy.url + answers.replace('{key}', 'a'.repeat(86)), within()), 404);
    const { headers } = await call(world.url);
    const known = { 'if-none-match': headers.get('etag') ?? '' };
    expectSound(await call(`${proxy.url}/`, within({ headers: known })), 304);
  });

  it('a request that violates the contract is reported as such', async () => {
    const answer = await post(`${proxy.url}/v1/tts`, { text: 7 }, { 'x-payment': 'bm9uc2Vuc2U' });
    expect(violations(answer, 'request').map(({ location }) => location.join('.'))).to.include(
      'request.body.text',
    );
  });
});
