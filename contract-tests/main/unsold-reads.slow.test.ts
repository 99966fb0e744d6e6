import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { openWorld, post, receiptOf, signFor, type Answer, type World } from '../support/world.js';

const PATH = '/v1/sol-mint-info';

describe('Reads of the chain for calls that are not sold', function () {
  this.timeout(120_000);
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());

  const buy = async (mint: string): Promise<Answer> =>
    post(world.url + PATH, { mint }, await signFor(world, PATH));

  it('are limited: a wallet that asks for forty invalid mints has ten of them read', async () => {
    const sold = await buy(world.sandbox.info.mints.classic);
    expect([sold.status, receiptOf(sold).success]).to.deep.equal([200, true]);
    const before = world.rpc.count('getMultipleAccounts');
    const statuses = new Map<number, number>();
    let last = sold;
    for (let n = 0; n < 40; n++) {
      last = await buy(Keypair.generate().publicKey.toBase58());
      statuses.set(last.status, (statuses.get(last.status) ?? 0) + 1);
    }
    expect(world.rpc.count('getMultipleAccounts') - before).to.be.within(10, 14);
    expect(statuses.get(503)).to.be.within(26, 30);
    expect(last.json().error).to.match(/ended without a sale.*You were not charged; try again in \d+ s/);
    expect(Number(last.headers.get('retry-after'))).to.be.within(1, 15);
    expect(await world.earned()).to.equal(BigInt(SOLD_ONCE));
  });
});

/** The price of the one call that was sold, in atomic units. */
const SOLD_ONCE = 10_000;
