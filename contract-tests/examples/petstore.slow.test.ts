import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import { checkShop } from '../../src/cli/conformance/check-shop.js';
import { mppPayment, readChallenge } from '../support/mpp-payment.js';
import { call, openWorld, post, signFor, type Answer, type World } from '../support/world.js';
import { noPrism, startMock, type Prism } from '../tools/prism.js';

const ROOT = new URL('../../../', import.meta.url);
const SHOP = fileURLToPath(new URL('examples/petstore/', ROOT));
/** A third-party description of the API that is sold. */
const API = new URL('contract-tests/tools/node_modules/@readme/oas-examples/3.0/json/petstore.json', ROOT);
const KEY = 'the-key-of-the-pet-store';

describe(`examples/petstore${noPrism ? ` (skipped: ${noPrism})` : ''}`, function () {
  this.timeout(120_000);
  let api: Prism;
  let world: World;

  before(async function () {
    if (noPrism) return this.skip();
    api = await startMock(API);
    const upstream = {
      PETSTORE_URL: api.url,
      PETSTORE_KEY: KEY,
      ALLOW_PRIVATE_UPSTREAMS: 'true',
      METHODS: 'x402,mpp',
    };
    world = await openWorld({ SHOP_DIR: SHOP, ...upstream });
  });
  after(async () => {
    await world?.close();
    await api?.close();
  });

  it('keeps every promise of a shop to its buyers', async () => {
    const findings = await checkShop(world.url);
    const broken = findings.filter(({ fault }) => fault !== undefined);
    expect(broken.map(({ promise }) => promise)).to.deep.equal(['info.contact.email says who sells here']);
    const document = (await call(`${world.url}/openapi.json`)).body.toString('utf8');
    expect(document).not.to.contain(KEY).and.not.to.contain(api.url);
  });

  it('sells all three operations, each at its price, and does not reveal its key', async () => {
    const earned = await world.earned();
    const order = { petId: 25, quantity: 1 };
    const sold: [string, (headers: Record<string, string>) => Promise<Answer>][] = [
      ['/v1/pets/25', headers => call(`${world.url}/v1/pets/25`, { headers })],
      ['/v1/inventory', headers => call(`${world.url}/v1/inventory`, { headers })],
      ['/v1/orders', headers => post(`${world.url}/v1/orders`, order, headers)],
    ];
    for (const [path, buy] of sold) {
      const unpaid = await buy({});
      expect(unpaid.status, path).to.equal(402);
      const answer = await buy(await signFor(world, path, 2, unpaid));
      expect(answer.status, answer.body.toString('utf8')).to.equal(200);
      expect(answer.body.toString('utf8')).not.to.contain(KEY);
    }
    expect((await world.earned()) - earned).to.equal(65_000n);
  });

  it('sells an order at the price of its quantity, and refuses a payment for a smaller quantity', async () => {
    const unpaid = await post(`${world.url}/v1/orders`, { petId: 25, quantity: 3 });
    const [offer] = unpaid.json().accepts as { amount: string }[];
    expect(offer?.amount).to.equal('150000');
    const paid = await signFor(world, '/v1/orders', 2, unpaid);
    const larger = await post(`${world.url}/v1/orders`, { petId: 25, quantity: 4 }, paid);
    expect([larger.status, (larger.json().accepts as { amount: string }[])[0]?.amount]).to.deep.equal([
      402,
      '200000',
    ]);
    const earned = await world.earned();
    expect((await post(`${world.url}/v1/orders`, { petId: 25, quantity: 3 }, paid)).status).to.equal(200);
    expect((await world.earned()) - earned).to.equal(150_000n);
  });

  it('has a sandbox wallet that signs for the price of the call, if it is within the price range of the operation', async () => {
    const signed = (amount: string): Promise<Answer> =>
      post(
        `${world.url}/sandbox/wallet/payments`,
        { operation: 'placeOrder', amount },
        { origin: world.url },
      );
    for (const amount of ['49999', '500001'])
      expect((await signed(amount)).json().error).to.match(/^amount must be .* Nothing was signed\.$/);
    const paid = { 'PAYMENT-SIGNATURE': String((await signed('150000')).json().header) };
    const earned = await world.earned();
    expect((await post(`${world.url}/v1/orders`, { petId: 25, quantity: 4 }, paid)).status).to.equal(402);
    expect((await post(`${world.url}/v1/orders`, { petId: 25, quantity: 3 }, paid)).status).to.equal(200);
    expect((await world.earned()) - earned).to.equal(150_000n);
  });

  it('also sells by MPP, whose buyers pay the network fee, because the shop has no key', async () => {
    const order = (quantity: number, headers = {}): Promise<Answer> =>
      post(`${world.url}/v1/orders`, { petId: 25, quantity }, headers);
    const earned = await world.earned();
    const asked = readChallenge((await order(3)).headers.get('www-authenticate'));
    expect(asked.request.amount).to.equal('150000');
    const { authorization } = mppPayment(asked, Keypair.fromSecretKey(world.buyer));
    const larger = await order(4, { authorization });
    const { request } = readChallenge(larger.headers.get('www-authenticate'));
    expect([larger.status, request.amount]).to.deep.equal([402, '200000']);
    const sold = await order(3, { authorization });
    expect(sold.status, sold.body.toString('utf8')).to.equal(200);
    expect(sold.headers.get('payment-receipt')).not.to.equal(null);
    expect((await world.earned()) - earned).to.equal(150_000n);
    const page = await call(world.url, { headers: { accept: 'text/html' } });
    expect(page.body.toString('utf8')).to.include('Or pay by MPP on Solana');
  });
});
