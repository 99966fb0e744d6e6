import { createKeyPairSignerFromBytes } from '@solana/kit';
import { Keypair } from '@solana/web3.js';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expect } from 'chai';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { PricedOperation } from '../../../src/contract/contract.js';
import { loadContract } from '../../../src/contract/parse-contract.js';
import { exampleCall } from '../../support/example-call.js';
import { call, challengeOf, type Answer } from '../../support/world.js';
import { noPrism, prismVersion } from '../../tools/prism.js';
import { record } from '../../tools/record.js';

const execFileAsync = promisify(execFile);
const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url));
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const contract = loadContract(new URL('../../../../openapi.yaml', import.meta.url));
const skipped = noPrism ? ` (skipped: ${noPrism})` : '';

const within = (init: RequestInit = {}): RequestInit => ({ ...init, signal: AbortSignal.timeout(20_000) });

async function startMock(): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, [MAIN, 'mock', '--port', '0'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  for await (const chunk of child.stdout) {
    said += String(chunk);
    const url = /at (http:\S+);/.exec(said)?.[1];
    if (url) return { url, child };
  }
  throw new Error(`the mock ended: ${said}`);
}

function responsesOf(path: string): object {
  const paths = contract.document['paths'] as Record<string, Record<string, { responses: object }>>;
  return paths[path]?.['get']?.responses ?? {};
}

function violations(answer: Answer): { location: string[] }[] {
  return JSON.parse(answer.headers.get('sl-violations') ?? '[]') as { location: string[] }[];
}

describe(`make mock${skipped}`, function () {
  this.timeout(60_000);
  let url: string;
  let child: ChildProcess;
  let answers = 0;

  before(async function () {
    if (noPrism) return this.skip();
    ({ url, child } = await startMock());
  });

  after(async function () {
    if (noPrism) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await ended).to.deep.equal([0, null]);
    const failed = this.test?.parent?.tests.filter(test => test.state !== 'passed').length ?? 1;
    record('prism-mock', {
      tool: 'Prism, mock',
      version: prismVersion(),
      checks:
        'every status of every operation can be requested and conforms to the contract; the official client buys every operation',
      cases: `${answers} answers`,
      result: failed === 0 ? 'no violation' : `${failed} failures`,
    });
  });

  async function ask(
    operation: PricedOperation,
    headers: Record<string, string>,
    more = '',
  ): Promise<Answer> {
    const { query, init } = exampleCall(operation);
    const all = { ...(init.headers as Record<string, string>), ...headers };
    answers += 1;
    return call(url + operation.examplePath + (query || more), within({ ...init, headers: all }));
  }

  for (const operation of contract.paid) {
    it(`${operation.id}: without a payment, returns a 402 in either version, with its price, this mock's address and no receipt`, async () => {
      for (const version of [1, 2]) {
        const answer = await ask(operation, {}, version === 1 ? '?x402Version=1' : '');
        expect(answer.status).to.equal(402);
        const challenge = version === 1 ? answer.json() : challengeOf(answer);
        expect(challenge.x402Version).to.equal(version);
        const [offer] = challenge.accepts as { amount: string; resource: string; network: string }[];
        expect(offer).to.include({
          amount: operation.price.atomic.toString(),
          resource: url + operation.examplePath,
        });
        expect(answer.headers.has('payment-required')).to.equal(version === 2);
        expect(answer.headers.has('payment-response')).to.equal(false);
        expect(answer.headers.has('x-payment-response')).to.equal(false);
      }
    });

    it(`${operation.id}: any payment buys an example, with one receipt, which says that it comes from a mock`, async () => {
      for (const [header, receipt] of [
        ['payment-signature', 'payment-response'],
        ['x-payment', 'x-payment-response'],
      ] as const) {
        const answer = await ask(operation, { [header]: 'bm9uc2Vuc2U' });
        expect(answer.status).to.equal(200);
        expect(answer.headers.get('content-type')).to.contain(operation.answers[0].mimeType);
        expect(violations(answer)).to.deep.equal([]);
        const { success, transaction } = decodePaymentResponseHeader(answer.headers.get(receipt) ?? '');
        expect(success).to.equal(true);
        expect(transaction).to.match(/^mock/);
        const other = receipt === 'payment-response' ? 'x-payment-response' : 'payment-response';
        expect(answer.headers.has(other)).to.equal(false);
        // The header is sent only if the contract declares it.
        const location = answer.headers.get('location');
        if (location !== null) expect(new URL(location).origin).to.equal(url);
      }
    });

    it(`${operation.id}: every status can be requested by Prefer`, async () => {
      for (const status of [200, 400, 402, 502, 503]) {
        const answer = await ask(operation, { prefer: `code=${status}` });
        expect(answer.status).to.equal(status);
        expect(violations(answer)).to.deep.equal([]);
        if (status === 503) expect(Number(answer.headers.get('retry-after'))).to.be.at.least(1);
        if (status >= 500 || status === 400) expect(answer.json().error).to.be.a('string').and.not.equal('');
      }
    });

    it(`${operation.id}: the official client buys it, without money and without an RPC server`, async () => {
      const signer = await createKeyPairSignerFromBytes(Keypair.generate().secretKey);
      const scheme = new ExactSvmScheme(signer, { rpcUrl: `${url}/.mock/rpc` });
      const pay = wrapFetchWithPayment(fetch, new x402Client().register('solana:*', scheme));
      const { query, init } = exampleCall(operation);
      const answer = await pay(url + operation.examplePath + query, within(init));
      expect(answer.status).to.equal(200);
      const receipt = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');
      expect(receipt).to.include({ success: true, payer: signer.address });
      answers += 1;
    });
  }

  it('returns a playable WAV: mono, 22.05 kHz, 16 bits, with correct sizes', async function () {
    const speech = contract.paid.find(({ answers: [form] }) => form.mimeType === 'audio/wav');
    if (!speech) return this.skip();
    const { body } = await ask(speech, { 'x-payment': 'bm9uc2Vuc2U' });
    expect(body.toString('latin1', 0, 4) + body.toString('latin1', 8, 16)).to.equal('RIFFWAVEfmt ');
    expect([body.readUInt16LE(20), body.readUInt16LE(22), body.readUInt32LE(24)]).to.deep.equal([
      1, 1, 22_050,
    ]);
    expect(body.readUInt32LE(4)).to.equal(body.length - 8);
    expect(body.readUInt32LE(40)).to.equal(body.length - 44);
  });

  it('answers 400 to an invalid body, and also to one that is not JSON', async function () {
    const operation = contract.paid.find(({ request }) => request?.required);
    if (!operation) return this.skip();
    for (const body of ['{}', '{"text":', 'null']) {
      const headers = { 'content-type': 'application/json', 'x-payment': 'bm9uc2Vuc2U' };
      const answer = await call(url + operation.examplePath, within({ method: 'POST', headers, body }));
      expect(answer.status, body).to.equal(400);
    }
  });

  it('generates an answer from the schema if the call has the header Prefer: dynamic=true', async function () {
    const operation = contract.paid.find(({ answers: [form] }) => form.kind === 'json');
    if (!operation) return this.skip();
    const usual = await ask(operation, { 'x-payment': 'bm9uc2Vuc2U' });
    const made = await ask(operation, { 'x-payment': 'bm9uc2Vuc2U', prefer: 'dynamic=true' });
    expect(made.status).to.equal(200);
    expect(violations(made)).to.deep.equal([]);
    expect(made.json()).not.to.deep.equal(usual.json());
  });

  for (const operation of contract.free) {
    it(`${operation.id} returns an example that matches the contract, and 304 if that is preferred and declared`, async () => {
      const answer = await call(url + operation.path, within());
      expect(answer.status).to.equal(200);
      expect(violations(answer)).to.deep.equal([]);
      const known = await call(url + operation.path, within({ headers: { prefer: 'code=304' } }));
      expect(known.status).to.equal('304' in responsesOf(operation.path) ? 304 : 404);
      answers += 2;
    });
  }

  it('names one network and one server in all its documents', async () => {
    const { body } = await call(`${url}/openapi.json`, within());
    const text = body.toString('utf8');
    expect(text).to.contain(url).and.not.contain('shop.example');
    expect(new Set(text.match(/solana:\w{32}/g))).to.have.property('size', 1);
    expect((JSON.parse(text) as { info: object }).info).to.have.nested.property(
      'x-mock.rpcUrl',
      `${url}/.mock/rpc`,
    );
  });

  it('is recognized as a mock by npm run buy, which then needs no key pair', async () => {
    const [operation] = contract.paid;
    const folder = mkdtempSync(join(tmpdir(), 'coinslot-mock-'));
    const words = [
      MAIN,
      'buy',
      operation?.id ?? '',
      JSON.stringify(operation?.request?.example ?? {}),
      '--url',
      url,
      '--json',
    ];
    const { stdout } = await execFileAsync(process.execPath, words, { cwd: folder, timeout: 30_000 });
    const { mock, receipt, answer } = JSON.parse(stdout) as {
      mock: boolean;
      receipt: string;
      answer: unknown;
    };
    expect(mock).to.equal(true);
    expect(receipt).to.match(/^mock/);
    expect(answer).not.to.equal(undefined);
    rmSync(folder, { recursive: true });
  });

  it('sends nothing to a chain', async () => {
    const init = {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sendTransaction', params: [] }),
    };
    const { error } = (await call(`${url}/.mock/rpc`, within(init))).json() as { error: { message: string } };
    expect(error.message).to.contain('nothing can be sent to it');
  });
});
