import type { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { adopt } from '../../../src/cli/ledger/adopt.js';
import { openLedgerReader } from '../../../src/ledger/store.js';
import { Doors } from '../../support/doors.js';
import { until } from '../../support/faults.js';
import { onEachEngine } from '../../support/ledger-places.js';
import { madeCredential, mppPayment, readChallenge, type MppPayment } from '../../support/mpp-payment.js';
import { BRAND, SUMMARIZE, TestChain } from '../../support/test-chain.js';
import { TestCluster } from '../../support/test-server.js';
import { call, type Answer } from '../../support/world.js';

const BODY = { text: 'lost' };
const ORDER = { brand: 'Acme', question: 'Well?' };

onEachEngine('ledger adopt: transfers of MPP that no ledger has', makePlace => {
  let testChain: TestChain;
  let cluster: TestCluster;
  let doors: Doors;
  let payer: Keypair;
  const closers: (() => Promise<unknown>)[] = [];

  before(async () => {
    testChain = await TestChain.open();
    const place = await makePlace();
    cluster = await TestCluster.open(testChain, place.url);
    const work = async (): Promise<{ status: 200; body: { summary: string } }> => ({
      status: 200,
      body: { summary: 'done' },
    });
    doors = await Doors.open(await cluster.testServer(), work);
    closers.push(
      doors.close,
      () => cluster.close(),
      place.remove,
      () => testChain.close(),
    );
    [payer] = (await testChain.payers(1)) as [Keypair];
  });
  after(async () => {
    for (const close of closers.splice(0)) await close();
  });

  const post = (path: string, body: object, authorization?: string): Promise<Answer> =>
    call(doors.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
      body: JSON.stringify(body),
    });
  const paymentFor = async (path: string, bend = {}): Promise<MppPayment & { made: string }> => {
    const challenge = readChallenge((await post(path, {})).headers.get('www-authenticate'));
    const { blockhash } = testChain.sandbox.chain.latestBlockhash('processed');
    const payment = mppPayment(challenge, payer, { blockhash, ...bend });
    return { ...payment, made: madeCredential(challenge, payment).authorization };
  };
  const send = ({ transaction }: { transaction: string }): Promise<string> =>
    testChain.connection.sendRawTransaction(Buffer.from(transaction, 'base64'), { skipPreflight: true });

  it("takes in transfers that paid a challenge, whoever paid the fee, and ignores a wallet's other transfers", async () => {
    const own = await paymentFor(SUMMARIZE.path);
    const order = await paymentFor(BRAND.path);
    const { feePayer } = testChain.sandbox.info;
    const sponsored = await paymentFor(SUMMARIZE.path, { feePayer });
    const gift = await paymentFor(SUMMARIZE.path, { memo: 'a gift' });
    await send(own);
    await send(order);
    await send(gift);
    const last = await testChain.sendAsFacilitator(sponsored.transaction);
    await until('all is final', async () => {
      const { value } = await testChain.connection.getSignatureStatuses([last], {
        searchTransactionHistory: true,
      });
      return value[0]?.confirmationStatus === 'finalized';
    });
    const reader = await openLedgerReader({ url: cluster.ledgerUrl });
    closers.unshift(() => reader.close());
    const { data } = await adopt(reader, {
      rpcUrls: [testChain.sandbox.rpc.url],
      maxTransactions: 1_000,
      now: Date.now(),
      payTo: testChain.terms.payTo,
      from: 0,
      own: [],
    });
    const { adopted, left } = data as { adopted: { payment: string }[]; left: { payment: string }[] };
    const ids = (found: { payment: string }[]): string[] => found.map(({ payment }) => payment).sort();
    expect(ids(adopted)).to.deep.equal([own.id, order.id, sponsored.id].sort());
    expect(ids(left)).to.deep.equal([gift.id]);

    const bought = async (path: string, body: object, authorization: string): Promise<unknown> => {
      let answer: Answer | undefined;
      await until('it is answered', async () => {
        answer = await post(path, body, authorization);
        return answer.status !== 503;
      });
      return answer?.json();
    };
    expect(await bought(SUMMARIZE.path, BODY, own.authorization)).to.deep.equal({ summary: 'done' });
    expect(await bought(BRAND.path, ORDER, order.made)).to.have.property('brand');
    const landed = [...testChain.landed([payer])].map(([, count]) => count);
    expect(landed).to.deep.equal([1, 1, 1, 1]);
  });
});
