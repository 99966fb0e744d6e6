import { UNOBSERVED, type Event } from '../../src/observe/observer.js';
import { expect } from 'chai';
import { EXPIRED_AFTER_BLOCKS } from '../../src/rails/solana/blocks.js';
import { createTransferCheckedInstruction } from '@solana/spl-token';
import { PublicKey, type Keypair } from '@solana/web3.js';
import type { Ledger } from '../../src/ledger/store.js';
import { findTransfer } from '../../src/rails/solana/find-transfer.js';
import { facilitatorName } from '../../src/facilitators/http-facilitator.js';
import { loadFacilitatorTrust } from '../../src/facilitators/facilitator-trust.js';
import { TestCluster, signed } from '../support/test-server.js';
import { askedFor, pause, rpcFault, settleFault, until } from '../support/faults.js';
import { TestChain } from '../support/test-chain.js';
import { PLACES } from '../support/ledger-places.js';
import { countingProxy, type CountingProxy } from '../support/proxy.js';
import {
  again,
  allOnOneStage,
  answerOf,
  buy,
  cluster,
  expectPending,
  land,
  landed,
  openServer,
  payer,
  rowOf,
  testServer,
  testChain,
  stateBecomes,
} from '../support/one-chain.js';

/** Whether this server distrusts its facilitator. */
const lied = (): boolean => testServer.trust.lied(testServer.feePayer);

describe('reconciler: the chain decides unresolved payments', function () {
  this.timeout(60_000);
  allOnOneStage();

  for (const kind of ['dropAfter', 'errorAfter', 'garbled', 'duplicate', 'sendThrew'] as const) {
    it(`a payment that landed although the facilitator answers with ${kind} is found on the chain and delivered, and a resend gets the saved answer`, async () => {
      cluster.onSettle(settleFault(kind));
      const bought = await buy();
      expectPending(bought.sent);
      await stateBecomes(bought.id, 'delivered');
      expect(answerOf(await again(bought))).to.equal('{"summary":"run 1"}');
      expect(landed(bought.id)).to.equal(1);
      expect(cluster.facilitator.count('/settle')).to.be.at.most(2);
    });
  }

  it('a payment that landed although the facilitator answers that it would fail is found on the chain, and the buyer gets the answer', async () => {
    cluster.onSettle(settleFault('simulationFailed'));
    const bought = await buy();
    expect(answerOf(bought.sent)).to.equal('{"summary":"run 1"}');
    expect((await rowOf(bought.id)).state).to.equal('delivered');
    expect(landed(bought.id)).to.equal(1);
  });

  it('a payment that was never sent is requested once more when the buyer comes back, delivered, and settled once', async () => {
    let asks = 0;
    cluster.onSettle(ask => settleFault(++asks === 1 ? 'dropBefore' : 'none')(ask));
    const bought = await buy();
    expectPending(bought.sent);
    await pause(1_000);
    expect(asks, 'nobody waits').to.equal(1);
    await until('it is answered', async () => (await again(bought)).kind === 'sold');
    expect(answerOf(await again(bought))).to.equal('{"summary":"run 1"}');
    expect(landed(bought.id)).to.equal(1);
    expect(asks).to.equal(2);
    expect((await rowOf(bought.id)).asks).to.equal(2);
  });

  it('a payment that never reaches the facilitator is requested at most twice, gets 503 until the height proves it absent, and 402 from then on', async () => {
    cluster.onSettle(settleFault('dropBefore'));
    const bought = await buy();
    const { position: claimHeight } = await rowOf(bought.id);
    while ((await rowOf(bought.id)).state === 'settling') {
      const sent = await again(bought);
      if ((await rowOf(bought.id)).state === 'settling') expectPending(sent);
      await pause(200);
    }
    expect(testChain.sandbox.chain.slot('finalized')).to.be.greaterThan(claimHeight + EXPIRED_AFTER_BLOCKS);
    expect(await rowOf(bought.id)).to.include({
      state: 'released',
      asks: 2,
      reason: 'the transaction never landed',
    });
    expect(await again(bought)).to.include({ kind: 'refused', because: 'used' });
    expect(landed(bought.id)).to.equal(0);
    await until('nothing is left to watch', async () => (await rowOf(bought.id)).auditedAt !== null);
  });

  it('a payment released because an RPC server hid its transfer is still watched and found', async () => {
    let hiding = true;
    cluster.onSettle(settleFault('dropAfter'));
    cluster.rpc.intervene(async ({ method, forward, respond }) => {
      const answer = await forward();
      const hidden = hiding && method === 'getSignaturesForAddress';
      respond(answer.status, hidden ? '{"jsonrpc":"2.0","id":"1","result":[]}' : answer.body);
    });
    const bought = await buy();
    await stateBecomes(bought.id, 'released');
    hiding = false;
    await until('it is found', async () => (await rowOf(bought.id)).state !== 'released');
    await until('there is an answer', async () => (await again(bought)).kind === 'sold');
    expect(landed(bought.id)).to.equal(1);
  });

  it('a payment that failed on the chain is released as not charged, once the failure is final', async () => {
    const [poor] = (await testChain.payers(1, 10_000n)) as [Keypair];
    cluster.onSettle(async ({ body, drop }) => {
      // The wallet is emptied while the transaction is on its way.
      const [from, to] = [poor, payer].map(({ publicKey }) => testChain.tokenAccount(publicKey)) as [
        PublicKey,
        PublicKey,
      ];
      const mint = new PublicKey(testChain.terms.asset);
      if (landed(bought.id, poor) === 0 && !sentToChain) {
        sentToChain = true;
        await testChain.send(
          [createTransferCheckedInstruction(from, mint, to, poor.publicKey, 10_000, 6)],
          [poor],
        );
        const { paymentPayload } = JSON.parse(body.toString()) as {
          paymentPayload: { payload: { transaction: string } };
        };
        await testChain.sendAsFacilitator(paymentPayload.payload.transaction);
      }
      drop();
    });
    let sentToChain = false;
    const text = 'an emptied wallet';
    const bought = { text, ...signed(testChain, testServer, { payer: poor, text }) };
    expectPending(await again(bought));
    await stateBecomes(bought.id, 'released');
    expect((await rowOf(bought.id)).reason).to.equal('the transaction failed on chain');
    expect(landed(bought.id, poor)).to.equal(0);
    expect(await again(bought)).to.include({ kind: 'refused' });
  });

  it('a payment that was refused on the first request but lands later is found, delivered when the buyer sends it again, and charged once', async () => {
    cluster.onSettle(({ respond }) =>
      respond(200, JSON.stringify({ success: false, errorReason: 'insufficient_funds', transaction: '' })),
    );
    const bought = await buy();
    expect(bought.sent).to.include({ kind: 'refused' });
    expect(await rowOf(bought.id)).to.include({ state: 'released', auditedAt: null });
    await land(bought.transaction);
    await until('the late landing is found', async () => (await rowOf(bought.id)).state !== 'released');
    // The work must be done again, because the refusal dropped its answer.
    let sent = await again(bought);
    await until('there is an answer', async () => (sent = await again(bought)).kind === 'sold', 5_000);
    expect(answerOf(sent)).to.match(/run \d/);
    expect(answerOf(await again(bought))).to.equal(answerOf(sent));
    expect((await rowOf(bought.id)).state).to.equal('delivered');
    expect(landed(bought.id)).to.equal(1);
  });

  it('a payment stays unresolved while a transaction is missing from the history or a server lags behind, and is found afterwards', async () => {
    cluster.onSettle(settleFault('dropAfter'));
    for (const fault of ['noRow', 'lag'] as const) {
      const broken = rpcFault(fault, testChain);
      cluster.rpc.intervene(ask =>
        // The height comes from an up-to-date server, as if two servers shared one address.
        ask.method === 'getLatestBlockhash' ? rpcFault('none', testChain)(ask) : broken(ask),
      );
      const bought = await buy();
      expectPending(bought.sent);
      const dead = (await rowOf(bought.id)).position + EXPIRED_AFTER_BLOCKS;
      await until('it is dead by height', () => testChain.sandbox.chain.slot('finalized') > dead + 60);
      expect((await rowOf(bought.id)).state).to.equal('settling');
      cluster.rpc.intervene(undefined);
      await stateBecomes(bought.id, 'delivered');
    }
  });

  it('an RPC server of another cluster proves nothing, and its height has no effect: money that moved is found when our server is back', async () => {
    const foreign = await foreignCluster();
    try {
      await testServer.close();
      await openServer({ moreRpcUrls: [foreign.url] });
      cluster.onSettle(settleFault('dropAfter'));
      cluster.rpc.intervene(({ drop }) => drop());
      const bought = await buy();
      expectPending(bought.sent);
      const { position: claimHeight } = await rowOf(bought.id);
      await until(
        'it would be dead',
        () => testChain.sandbox.chain.slot('finalized') > claimHeight + EXPIRED_AFTER_BLOCKS + 100,
      );
      expect((await rowOf(bought.id)).state).to.equal('settling');
      expect(foreign.count()).to.equal(foreign.count('getGenesisHash')).and.to.be.greaterThan(0);
      cluster.rpc.intervene(undefined);
      await stateBecomes(bought.id, 'delivered');
      expect(landed(bought.id)).to.equal(1);
      cluster.onSettle(undefined);
      expect((await buy()).sent.kind, 'and sales go on').to.equal('sold');
    } finally {
      await foreign.close();
    }
  });

  it('a height far in the future proves nothing: money that moved is found, and sales continue', async () => {
    cluster.onSettle(settleFault('dropAfter'));
    cluster.rpc.intervene(async ({ method, forward, respond }) => {
      const answer = await forward();
      if (method === 'getSignaturesForAddress') return respond(200, '{"jsonrpc":"2.0","id":1,"result":[]}');
      if (method !== 'getLatestBlockhash') return respond(answer.status, answer.body);
      const json = JSON.parse(answer.body.toString()) as {
        result: { context: { slot: number }; value: { lastValidBlockHeight: number } };
      };
      json.result.context.slot += 1_000_000;
      json.result.value.lastValidBlockHeight += 1_000_000;
      respond(200, JSON.stringify(json));
    });
    const bought = await buy();
    expectPending(bought.sent);
    await pause(1_500);
    expect((await rowOf(bought.id)).state).to.equal('settling');
    cluster.rpc.intervene(undefined);
    await stateBecomes(bought.id, 'delivered');
    expect(landed(bought.id)).to.equal(1);
    cluster.onSettle(undefined);
    expect((await buy()).sent.kind).to.equal('sold');
  });

  it('a height that does not change proves nothing, however long it takes', async () => {
    cluster.onSettle(settleFault('dropBefore'));
    const bought = await buy();
    const { position: claimHeight, after: claimSlot } = await rowOf(bought.id);
    cluster.rpc.intervene(async ({ method, forward, respond }) => {
      const answer = await forward();
      if (method !== 'getLatestBlockhash') return respond(answer.status, answer.body);
      const json = JSON.parse(answer.body.toString()) as {
        result: { context: { slot: number }; value: object };
      };
      json.result.context.slot = claimSlot;
      json.result.value = { ...json.result.value, lastValidBlockHeight: claimHeight + 150 };
      respond(200, JSON.stringify(json));
    });
    await until(
      'the real chain is far ahead',
      () => testChain.sandbox.chain.slot('finalized') > claimHeight + EXPIRED_AFTER_BLOCKS + 60,
    );
    expect((await rowOf(bought.id)).state).to.equal('settling');
    cluster.rpc.intervene(undefined);
    await stateBecomes(bought.id, 'released');
  });

  it('a transfer that landed before the claim does not count for it, and a success reported with it is a false report', async () => {
    const made = signed(testChain, testServer, { payer, text: 'old' });
    await land(made.transaction);
    await pause(200);
    cluster.facilitator.intervene(({ path, respond }) => {
      // The facilitator reports success and names the older transfer.
      const [entry] = testChain.sandbox.chain.ofAddress(
        testChain.tokenAccount(payer.publicKey).toBase58(),
        { limit: 1 },
        'processed',
      );
      const ok = path === '/verify' ? { isValid: true } : { success: true, transaction: entry?.signature };
      respond(200, JSON.stringify(ok));
    });
    expect((await testServer.send({ payment: made.payment, text: 'old' })).kind).to.equal('sold');
    await until('the facilitator is distrusted', lied);
    expect((await rowOf(made.id)).after).to.be.greaterThan(0);
    const finding = await findTransfer(
      fakeChain({ slot: 10, id: made.id }),
      { id: made.id, evidence: made.transaction, after: 10 },
      { finality: 'finalized' },
      AbortSignal.timeout(1_000),
    );
    expect(finding).to.deep.equal({ kind: 'absent' });
  });

  it('after an audit finds a false report, later successes are checked before the answer, at every server and after a restart', async () => {
    const told: Event[] = [];
    await testServer.close();
    await openServer({ observer: { ...UNOBSERVED, tell: event => void told.push(event) } });
    cluster.onSettle(settleFault('lie'));
    const first = await buy();
    expect(first.sent.kind, 'a word that is still believed').to.equal('sold');
    await until('the facilitator is distrusted', lied);
    expect(told.map(event => [event.kind, 'payment' in event && event.payment])).to.deep.equal([
      ['false settlement', first.id],
    ]);
    const second = await buy();
    expectPending(second.sent);
    await testServer.close();
    await openServer();
    expect(lied()).to.equal(true);
    expectPending((await buy()).sent);
    cluster.onSettle(undefined);
    const honest = await buy();
    expect(honest.sent.kind).to.equal('sold');
    expect(landed(honest.id)).to.equal(1);
  });

  it("a false report that can't be recorded is found again", async () => {
    const kept = new Map<string, string>();
    let broken = true;
    const notes = {
      getMeta: async (key: string) => kept.get(key),
      setMeta: async (key: string, value: string) => {
        if (broken) throw new Error('the disk is full');
        kept.set(key, value);
      },
    };
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const names = ['https://user:secret@facilitator.example/x402', 'https://other.example/'].map(
      facilitatorName,
    );
    const facilitators = {
      names,
      nameOf: (feePayer: string) => names[feePayer === 'its own' ? 0 : 1],
      findName: async () => undefined,
    };
    const trust = await loadFacilitatorTrust(notes, facilitators, log);
    await trust.distrust('its own').then(
      () => expect.fail('it was not recorded'),
      () => {},
    );
    expect(trust.lied('its own')).to.equal(true);
    broken = false;
    await trust.distrust('its own');
    expect([...kept.keys()]).to.deep.equal(['facilitator-lied facilitator.example/x402']);
    const later = await loadFacilitatorTrust(notes, facilitators, log);
    expect(later.lied('its own')).to.equal(true);
    expect(later.lied('another’s'), 'each facilitator’s lie concerns only itself').to.equal(false);
  });

  it('work that is paid in advance begins only once this server has seen the transfer; after a false report, the payment is released', async () => {
    cluster.onSettle(settleFault('lie'));
    const bought = await buy(testServer, { upfront: true });
    expectPending(bought.sent);
    await stateBecomes(bought.id, 'released');
    expect(await testServer.reader.order(bought.id)).to.equal(undefined);
  });

  it('a payment-identifier keeps its answer for a day even if the chain had to decide', async () => {
    cluster.onSettle(settleFault('dropAfter'));
    const bought = await buy(testServer, { identifier: `day-${Date.now()}-000001` });
    await stateBecomes(bought.id, 'delivered');
    expect((await rowOf(bought.id)).answerExpiresAt).to.be.greaterThan(Date.now() + 23 * 3_600_000);
  });

  it('an unreadable row does not delay the others, and is left unchanged', async () => {
    const unreadable = 'f'.repeat(64);
    const claimed = await testServer.reader.claim({
      id: unreadable,
      operation: 'summarize',
      requestHash: 'x',
      payer: 'p',
      amount: 10_000n,
      network: testChain.terms.network,
      method: 'x402-v2',
      evidence: 'AAAA',
      flow: 'authorization',
      after: 1,
      position: 1,
      leaseMs: 1_000,
      limits: { maxUnsettledPerPayer: 9, maxUnsettledAmountPerPayer: 10n ** 9n, maxRuns: 3 },
    });
    if (claimed.kind !== 'claimed') throw new Error(claimed.kind);
    await testServer.reader.settle(unreadable, claimed.claim, { newestLocal: 1 });
    await testServer.reader.extendLease(unreadable, claimed.claim, 0);
    cluster.onSettle(settleFault('dropAfter'));
    const bought = await buy();
    await stateBecomes(bought.id, 'delivered');
    expect((await rowOf(unreadable)).state).to.equal('settling');
  });
});

for (const { name, make } of PLACES) {
  const test = make ? it : it.skip;
  describe(`reconciler on ${name}`, function () {
    this.timeout(90_000);
    test('several servers hold one lease per payment, so they make one more request and one decision', async () => {
      const [testChain2, place2] = [await TestChain.open(), await make!()];
      const cluster2 = await TestCluster.open(testChain2, place2.url);
      try {
        const servers = name === 'PostgreSQL' ? 3 : 1;
        const testServers = await Promise.all(Array.from({ length: servers }, () => cluster2.testServer()));
        const asks = new Map<string, number>();
        cluster2.onSettle(async ask => {
          const id = askedFor(ask.body);
          asks.set(id, (asks.get(id) ?? 0) + 1);
          await pause(100);
          ask.drop();
        });
        // Two payers, because the number of calls that may end unsold is limited for each payer.
        const buyers = await testChain2.payers(2);
        const made = Array.from({ length: 12 }, (_, n) => ({
          text: `one of many ${n}`,
          ...signed(testChain2, testServers[0]!, { payer: buyers[n % 2]!, text: '' }),
        }));
        await Promise.all(made.map((one, n) => testServers[n % servers]!.send(one)));
        const reader: Ledger = testServers[0]!.reader;
        const stateOf = async ({ id }: { id: string }) => (await reader.find(id))?.state;
        await until(
          'all are released',
          async () => (await Promise.all(made.map(stateOf))).every(state => state === 'released'),
          45_000,
        );
        expect(
          [...asks.values()].every(count => count <= 2),
          JSON.stringify([...asks.values()]),
        ).to.equal(true);
        for (const { id } of made) expect((await reader.find(id))?.asks).to.equal(asks.get(id));
      } finally {
        await cluster2.close();
        await place2.remove();
        await testChain2.close();
      }
    });
  });
}

/** An RPC server of another cluster, which is far ahead of ours and has none of our payments. */
async function foreignCluster(): Promise<CountingProxy> {
  const proxy = await countingProxy(testChain.sandbox.rpc.url);
  const slot = testChain.sandbox.chain.slot('processed') + 100_000_000;
  const results: Record<string, unknown> = {
    getGenesisHash: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
    getLatestBlockhash: {
      context: { slot },
      value: { blockhash: 'EkSnNWid2cvwEVnVx9aBqawnmiCNiDgp3gUdkDPTKN1N', lastValidBlockHeight: slot + 150 },
    },
    getSignaturesForAddress: [],
    getTransaction: null,
  };
  proxy.intervene(({ method = '', respond }) =>
    respond(200, JSON.stringify({ jsonrpc: '2.0', id: 1, result: results[method] })),
  );
  return proxy;
}

/** A chain that shows one landed payment at a slot. */
function fakeChain({ slot, id }: { slot: number; id: string }): Parameters<typeof findTransfer>[0] {
  return {
    latestBlockhash: async () => ({ slot: 1_000, lastValidBlockHeight: 1_150 }),
    signaturesFor: async () => [{ signature: id, slot, failed: false }],
    transaction: async () => null,
  };
}
