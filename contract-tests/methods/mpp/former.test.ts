import type { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { Doors } from '../../support/doors.js';
import { sqlitePlace } from '../../support/ledger-places.js';
import { mppPayment, readChallenge, type MppPayment } from '../../support/mpp-payment.js';
import { fundedKey } from '../../support/own-facilitator.js';
import { SUMMARIZE, TestChain } from '../../support/test-chain.js';
import { TestCluster, type TestServer } from '../../support/test-server.js';
import { call, type Answer } from '../../support/world.js';

const BODY = { text: 'a text' };

// Runs on SQLite only: on PostgreSQL, a dead server's lease outlasts the blockhashes of this fast chain.
describe('mpp: a shop that used to accept MPP', () => {
  let testChain: TestChain;
  let key: Keypair;
  const closers: (() => Promise<unknown>)[] = [];

  before(async () => {
    testChain = await TestChain.open();
    key = await fundedKey(testChain);
  });
  after(() => testChain.close());
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  const open = async (testServer: TestServer): Promise<Doors> => {
    const work = async (): Promise<{ status: 200; body: { summary: string } }> => ({
      status: 200,
      body: { summary: 'done' },
    });
    const doors = await Doors.open(testServer, work);
    closers.unshift(doors.close);
    return doors;
  };
  const summarize = ({ url }: Doors, payment?: MppPayment): Promise<Answer> =>
    call(url + SUMMARIZE.path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(payment && { authorization: payment.authorization }),
      },
      body: JSON.stringify(BODY),
    });

  for (const sponsored of [true, false])
    it(`settles a payment that was stored but not sent when its server died, with the fee paid by ${sponsored ? 'the server' : 'the buyer'}`, async () => {
      const place = await sqlitePlace();
      const cluster = await TestCluster.open(testChain, place.url);
      closers.push(() => cluster.close(), place.remove);
      const own = sponsored ? { own: key } : {};
      const dying = await cluster.testServer({
        ...own,
        faults: method => (method === 'send' ? 'killBefore' : undefined),
      });
      const [payer] = (await testChain.payers(1)) as [Keypair];
      const first = await open(dying);
      const challenge = readChallenge((await summarize(first)).headers.get('www-authenticate'));
      const payment = mppPayment(challenge, payer);
      await summarize(first, payment).catch(() => undefined);
      expect(dying.dead).to.equal(true);
      await dying.close();

      const second = await cluster.testServer({ ...own, mpp: false });
      expect(await second.reader.find(payment.id)).to.include({ state: 'settling' });
      const doors = await open(second);
      let answer = await summarize(doors, payment);
      for (let n = 0; n < 100 && answer.status === 503; n++) {
        await new Promise(resolve => setTimeout(resolve, 100));
        answer = await summarize(doors, payment);
      }
      expect([answer.status, answer.json()]).to.deep.equal([200, { summary: 'done' }]);
      expect(answer.headers.get('payment-receipt')).not.to.equal(null);
      expect([...testChain.landed([payer])]).to.deep.equal([[payment.id, 1]]);

      const unpaid = await summarize(doors);
      expect([unpaid.status, unpaid.headers.get('www-authenticate')]).to.deep.equal([402, null]);
      const unknown = await summarize(doors, mppPayment(challenge, payer, { memo: 'other' }));
      expect([unknown.status, unknown.json().error]).to.deep.equal([
        402,
        'challenge: MPP is no longer offered here; pay as described in this answer',
      ]);
    });
});
