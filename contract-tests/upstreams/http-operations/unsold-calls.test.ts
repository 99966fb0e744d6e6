import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { setTimeout as pause } from 'node:timers/promises';
import { TestUpstream, UpstreamShop, type OperationForSale } from '../../support/upstream-shop.js';
import type { Answer } from '../../support/world.js';

const TIMEOUT_MS = 500;
const REST_MS = 60_000;

/** What one caller saw: the number of answers by status. */
type Seen = Map<number, number>;

describe('Calls of an API that end unsold', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;

  const item = (): OperationForSale => ({
    id: 'getItem',
    path: '/items/{id}',
    parameters: [{ name: 'id', in: 'path' }],
    upstream: { url: `${upstream.url}/items/{id}`, timeoutMs: TIMEOUT_MS },
  });

  beforeEach(async () => {
    upstream = await TestUpstream.open();
    upstream.answer = ({ url = '' }, response) => {
      const status = Number(/^\/items\/(\d{3})$/.exec(url)?.[1] ?? 200);
      if (url.startsWith('/items/late')) return;
      response.writeHead(status, { 'Content-Type': 'application/json' }).end('{"value":1}');
    };
  });
  afterEach(async () => {
    await shop.close();
    upstream.close();
  });

  const open = async (breaker = {}): Promise<void> => {
    shop = await UpstreamShop.open([item()], {}, { breaker });
  };
  const buy = (payer: Keypair, id: string): Promise<Answer> =>
    shop.call(`/items/${id}`, shop.pay('getItem', payer));
  const asked = (id: string): number => upstream.calls.filter(({ url }) => url === `/items/${id}`).length;

  async function calls(payer: Keypair, id: string, count: number, together = 8): Promise<Seen> {
    const seen: Seen = new Map();
    for (let done = 0; done < count; done += together) {
      const answers = await Promise.all(Array.from({ length: together }, () => buy(payer, id)));
      for (const { status } of answers) seen.set(status, (seen.get(status) ?? 0) + 1);
    }
    return seen;
  }

  it('failing orders pause only their payer', async () => {
    const order = { ...item(), id: 'order', path: '/orders/{id}', flow: 'upfront' } as const;
    shop = await UpstreamShop.open(
      [item(), order],
      {},
      { breaker: { restMs: REST_MS, quietMs: 0, failures: 3 } },
    );
    const payer = Keypair.generate();
    for (const id of ['502', '503', '504'])
      expect((await shop.call(`/orders/${id}`, shop.pay('order', payer))).status).to.equal(503);
    expect(upstream.calls).to.have.length(3);
    expect((await buy(payer, '1')).status, 'the payer').to.equal(503);
    expect((await buy(Keypair.generate(), '1')).status, 'another payer').to.equal(200);
  });

  it('a wallet that buys nothing has ten of four hundred calls done, then gets an error with the reason, and is not charged', async () => {
    await open();
    const payer = Keypair.generate();
    const seen = await calls(payer, '404', 400);
    expect(upstream.calls.length).to.be.within(1, 11);
    expect((seen.get(400) ?? 0) + (seen.get(503) ?? 0)).to.equal(400);
    const answer = await buy(payer, '404');
    expect(answer.status).to.equal(503);
    expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 300);
    expect(answer.json().error).to.match(/calls from this wallet ended without a sale.*You were not charged/);
    expect((await buy(Keypair.generate(), '1')).status, 'others are served').to.equal(200);
    expect(shop.facilitator.settles).to.equal(1);
  });

  it('one buyer’s failures pause that buyer only', async () => {
    await open({ restMs: REST_MS });
    const payer = Keypair.generate();
    await calls(payer, '503', 8, 1);
    expect(asked('503')).to.equal(5);
    expect((await buy(payer, '1')).json().error).to.match(/keeps failing/);
    for (let n = 0; n < 20; n++) expect((await buy(Keypair.generate(), '1')).status).to.equal(200);
  });

  it('the failures of two buyers pause no other buyer, but those of three pause all buyers until a call by another buyer succeeds', async () => {
    await open({ restMs: 300, quietMs: 0 });
    for (const payer of [Keypair.generate(), Keypair.generate()]) await calls(payer, '503', 4, 1);
    expect((await buy(Keypair.generate(), '1')).status).to.equal(200);
    const failing = [Keypair.generate(), Keypair.generate(), Keypair.generate()] as const;
    for (const payer of failing) await calls(payer, '503', 2, 1);
    const before = upstream.calls.length;
    expect((await buy(Keypair.generate(), '1')).json().error).to.match(/keeps failing/);
    await pause(310);
    for (const payer of failing) expect((await buy(payer, '1')).status, 'no probe').to.equal(503);
    expect(upstream.calls.length).to.equal(before);
    expect((await buy(Keypair.generate(), '1')).status, 'the probe').to.equal(200);
    expect((await buy(failing[2], '1')).status).to.equal(200);
  });

  it('buyers whose failures have lasted less than ten seconds pause no other buyer', async () => {
    await open({ restMs: REST_MS });
    for (let n = 0; n < 5; n++) await calls(Keypair.generate(), '503', 2, 1);
    expect((await buy(Keypair.generate(), '1')).status).to.equal(200);
  });

  it('an upstream that fails for all buyers is paused, and every buyer is served once it works again', async () => {
    await open({ restMs: 200, maxRestMs: 400, quietMs: 0 });
    upstream.says(503, '');
    const payers = Array.from({ length: 12 }, () => Keypair.generate());
    for (let round = 0; round < 10; round++) await Promise.all(payers.map(payer => buy(payer, '1')));
    expect(upstream.calls.length, 'of 120 calls').to.be.below(60);
    upstream.says(200, '{"value":1}');
    await pause(410);
    await shop.probe();
    for (const payer of payers) {
      const answer = await buy(payer, '1');
      expect(answer.status, answer.body.toString()).to.equal(200);
    }
  });

  it('a dead upstream soon gets no more calls, even if there is only one buyer', async () => {
    await open({ restMs: REST_MS });
    upstream.says(502, '');
    const payer = Keypair.generate();
    const seen = await calls(payer, '1', 30, 1);
    expect(upstream.calls.length).to.equal(5);
    expect([...seen]).to.deep.equal([
      [502, 5],
      [503, 25],
    ]);
  });

  for (const [how, id] of [
    ['fail', '502'],
    ['never end', 'late'],
    ['ask for what is not there', '404'],
  ] as const)
    it(`ten funded wallets whose calls all ${how}: an honest buyer is served in at least 95 of 100 calls`, async function () {
      this.timeout(60_000);
      await open({ restMs: 300 });
      const over = new AbortController();
      const attack = async (payer: Keypair): Promise<void> => {
        while (!over.signal.aborted) {
          await buy(payer, id);
          await pause(100);
        }
      };
      const attacks = Array.from({ length: 10 }, () => attack(Keypair.generate()));
      let served = 0;
      const honest = [Keypair.generate(), Keypair.generate()];
      for (let n = 0; n < 100; n++) {
        const { status } = await buy(honest[n % 2] as Keypair, `${n % 10}`);
        if (status === 200) served += 1;
        await pause(n % 10 === 0 ? 100 : 5);
      }
      over.abort();
      await Promise.all(attacks);
      expect(served).to.be.at.least(95);
    });
});
