import type { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { LedgerFaults } from '../support/faults.js';
import { until } from '../support/faults.js';
import { onEachEngine, type LedgerPlace } from '../support/ledger-places.js';
import { fundedKey } from '../support/own-facilitator.js';
import { CUT, signed, TestCluster, type TestServer } from '../support/test-server.js';
import { SUMMARIZE, TestChain } from '../support/test-chain.js';

/** Long enough that a blockhash outlives the lease of a dead server. */
const SLOW_SLOTS_MS = 200;

onEachEngine('a server that dies between storing the row and sending the transaction', make => {
  let testChain: TestChain;
  let place: LedgerPlace;
  let cluster: TestCluster;
  let payer: Keypair;
  let own: Keypair;

  async function open(slotMs?: number): Promise<void> {
    testChain = await TestChain.open(slotMs);
    place = await make();
    cluster = await TestCluster.open(testChain, place.url);
    [payer] = (await testChain.payers(1)) as [Keypair];
    own = await fundedKey(testChain);
  }
  afterEach(async () => {
    await cluster.close();
    await place.remove();
    await testChain.close();
  });

  const landings = (): number[] => [...testChain.landed([payer]).values()];

  /** Sells with a server that dies at its first `send`. @returns another server, and the payment */
  async function dieAtSending(): Promise<{ other: TestServer; payment: ReturnType<typeof signed> }> {
    const faults: LedgerFaults = method => (method === 'send' ? 'killBefore' : undefined);
    const first = await cluster.testServer({ own, faults });
    const payment = signed(testChain, first, { payer, text: 'a call' });
    expect(await first.send({ payment: payment.payment, text: 'a call' })).to.equal(CUT);
    await first.close();
    const other = await cluster.testServer({ own });
    const row = await other.reader.find(payment.id);
    expect(row).to.include({ state: 'settling', asks: 1 });
    expect(row?.settlement).to.be.a('string').with.length.above(80);
    expect(row?.evidence, 'fully signed').to.not.equal(payment.transaction);
    expect(cluster.rpc.count('sendTransaction')).to.equal(0);
    expect(landings()).to.deep.equal([]);
    return { other, payment };
  }

  it('leaves behind a transaction that another server sends as soon as a buyer waits for it', async function () {
    this.timeout(60_000);
    await open(SLOW_SLOTS_MS);
    const { other, payment } = await dieAtSending();
    const { settlement } = (await other.reader.find(payment.id))!;
    await other.reconciler.reconcile();
    await other.reconciler.reconcile();
    expect(cluster.rpc.count('sendTransaction'), 'nobody waits').to.equal(0);
    const { header } = payment;
    await until(
      'the same payment is answered',
      async () => {
        const sent = await other.receive({ header, operation: SUMMARIZE, text: 'a call' });
        return sent.kind === 'sold';
      },
      40_000,
    );
    expect(landings()).to.deep.equal([1]);
    expect(testChain.sandbox.chain.find(settlement!)?.err).to.equal(null);
    expect(await other.reader.find(payment.id)).to.include({ state: 'delivered', settlement });
  });

  it('leaves nothing to send if the buyer does not come back: the chain decides', async function () {
    this.timeout(60_000);
    await open();
    const { other, payment } = await dieAtSending();
    await until(
      'the payment is released',
      async () => (await other.reader.find(payment.id))?.state === 'released',
      40_000,
    );
    expect(cluster.rpc.count('sendTransaction')).to.equal(0);
    expect(landings()).to.deep.equal([]);
  });
});
