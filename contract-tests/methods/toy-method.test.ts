import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { Methods } from '../../src/methods/methods.js';
import { x402Methods } from '../../src/methods/x402/x402.js';
import { RECIPE, TERMS } from '../support/charge-world.js';
import { craftPayment } from '../support/craft.js';
import { callTool } from '../support/mcp-call.js';
import { toyMethod } from '../support/toy-method.js';
import { TestUpstream, UpstreamShop } from '../support/upstream-shop.js';

describe('A payment method that the server was not written for', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;

  before(async () => {
    upstream = await TestUpstream.open();
    upstream.says(200, '{"value":7}');
    const operations = [
      { id: 'one', path: '/one', upstream: { url: `${upstream.url}/one` } },
      { id: 'two', path: '/two', upstream: { url: `${upstream.url}/two` } },
    ];
    const methods = new Methods([...x402Methods(TERMS), toyMethod()]);
    shop = await UpstreamShop.open(operations, {}, { methods });
  });
  after(async () => {
    await shop.close();
    upstream.close();
  });

  const challengeOf = async (path: string): Promise<string> =>
    (await shop.call(path, {})).headers.get('toy-challenge') ?? '';
  const numberIn = (challenge: string): string => challenge.split(' ')[0] ?? '';
  const signed = (payer = Keypair.generate()): string =>
    craftPayment({ ...RECIPE, payer, amount: 10_000n }).transaction;

  it('is offered alongside x402, with a different number in each challenge', async () => {
    const answer = await shop.call('/one', {});
    expect(answer.status).to.equal(402);
    expect(answer.json().accepts).to.have.length(1);
    expect(answer.headers.get('payment-required')).to.equal(answer.body.toString('base64'));
    expect(answer.headers.get('access-control-expose-headers')).to.include('Toy-Challenge');
    expect(answer.headers.get('toy-challenge')).to.match(/^one\./);
    expect(await challengeOf('/one')).not.to.equal(await challengeOf('/one'));
  });

  it('sells over HTTP with its own receipt, once for the same payment, and its answer is fetched with that receipt', async () => {
    const payer = Keypair.generate();
    const toy = `${numberIn(await challengeOf('/one'))} ${signed(payer)}`;
    const settled = shop.facilitator.settles;
    const [first, again] = [await shop.call('/one', { toy }), await shop.call('/one', { toy })];
    for (const answer of [first, again]) {
      expect([answer.status, answer.json()]).to.deep.equal([200, { value: 7 }]);
      expect(answer.headers.get('toy-receipt')).to.equal(payer.publicKey.toBase58());
      expect(answer.headers.get('payment-response')).to.equal(null);
    }
    expect(shop.facilitator.settles - settled).to.equal(1);
    const [row] = (await shop.ledger.list({ limit: 100 })).filter(
      each => each.payer === payer.publicKey.toBase58(),
    );
    expect(row).to.include({ method: 'toy', state: 'delivered' });
    const { pathname } = new URL(first.headers.get('location') ?? '');
    const fetched = await shop.call(pathname, {});
    expect([fetched.status, fetched.headers.get('toy-receipt')]).to.deep.equal([
      200,
      payer.publicKey.toBase58(),
    ]);
  });

  it('refuses numbers that it never offered, and numbers offered for another call, with the error in its own header', async () => {
    for (const [number, error] of [
      ['one.unknown', /toy: one\.unknown was never offered/],
      [numberIn(await challengeOf('/two')), /toy: of another operation/],
    ] as const) {
      const refused = await shop.call('/one', { toy: `${number} ${signed()}` });
      expect(refused.status).to.equal(402);
      expect(refused.headers.get('toy-challenge')).to.match(error);
      expect(refused.json().error).to.match(error);
    }
  });

  it('sells over MCP', async () => {
    const price = await callTool(shop.url, 'one', {});
    expect(price._meta).to.include.keys('x402/error', 'toy/challenge');
    const payer = Keypair.generate();
    const toy = `${numberIn(String(price._meta?.['toy/challenge']))} ${signed(payer)}`;
    const bought = await callTool(shop.url, 'one', {}, { toy });
    expect(bought.structuredContent).to.deep.equal({ value: 7 });
    expect(bought._meta).to.include({ 'toy/receipt': payer.publicKey.toBase58() });
  });

  it('is in the documents', () => {
    expect(shop.openapi)
      .to.include('"protocols":[{"x402":{}},{"toy":{}}]')
      .and.include('by x402 on Solana or toys');
    expect(shop.openapi).to.include('Or send the header Toy.');
  });
});
