import { expect } from 'chai';
import { toAtomic } from '../../src/price/amount.js';
import { buyAll, readOffers } from '../support/agent.js';
import { SOLD } from '../support/sold.js';
import { openWorld, type World } from '../support/world.js';

describe('An agent that knows only the address', function () {
  this.timeout(120_000);
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());

  it('learns from /llms.txt which operations are sold, and at what price', async () => {
    const offers = await readOffers(world.url);
    expect(offers.map(({ url, usdc, method }) => [method, url, usdc])).to.deep.equal(
      SOLD.paid.map(({ method, examplePath, price }) => [method, world.url + examplePath, price.amount]),
    );
  });

  it('buys every operation once, and pays the listed price', async () => {
    const wallet = { keypair: world.buyer, rpcUrl: world.sandbox.rpc.url };
    const earned = await world.earned();
    const bought = await buyAll(world.url, wallet, 100_000);
    expect(bought).to.have.length(SOLD.paid.length);
    for (const { title, status, type, bytes, receipt } of bought) {
      expect(status, title).to.equal(200);
      expect(bytes, title).to.be.above(20);
      expect(type, title).to.match(/^(application\/json|audio\/wav)/);
      expect(receipt, title).to.match(/^[1-9A-HJ-NP-Za-km-z]{80,90}$/);
    }
    const price = bought.reduce((sum, { usdc }) => sum + toAtomic(usdc), 0n);
    expect(await world.earned()).to.equal(earned + price);
    expect(new Set(bought.map(({ receipt }) => receipt)).size).to.equal(bought.length);
  });
});
