import type { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Observer } from '../../../src/observe/observer.js';
import { UNOBSERVED } from '../../../src/observe/observer.js';
import type { Recipe } from '../../support/craft.js';
import { Doors } from '../../support/doors.js';
import { until } from '../../support/faults.js';
import { onEachEngine } from '../../support/ledger-places.js';
import { callTool } from '../../support/mcp-call.js';
import {
  credentialOf,
  madeCredential,
  mppPayment,
  readChallenge,
  signatureOf,
  type MppPayment,
  type ReadChallenge,
} from '../../support/mpp-payment.js';
import { BRAND, LONG_SLOT_MS, SUMMARIZE, TestChain } from '../../support/test-chain.js';
import { TestCluster, type TestServer } from '../../support/test-server.js';
import { call, type Answer } from '../../support/world.js';

const FUNDS = 20_000_000n;
const PRICE = SUMMARIZE.price.atomic;
const BRAND_PRICE = BRAND.price.atomic;
const ORDER = { brand: 'Acme', question: 'Do you like it?' };
const STILL_OWED = /paid and stays owed: send the same payment again/;

onEachEngine('mpp: payments that their buyers made before the request', (makePlace, engine) => {
  let testChain: TestChain;
  let servers: TestServer[];
  let doors: Doors[];
  let payer: Keypair;
  let runs = 0;
  let fails = false;
  let orders: string[] = [];
  let orderFails: string | undefined;
  const falseSettlements: unknown[] = [];
  const blocked = new Set<string>();
  const closers: (() => Promise<unknown>)[] = [];
  const observer: Observer = {
    ...UNOBSERVED,
    tell: event => void (event.kind === 'false settlement' && falseSettlements.push(event)),
  };

  before(async () => {
    testChain = await TestChain.open(LONG_SLOT_MS);
    const place = await makePlace();
    const cluster = await TestCluster.open(testChain, place.url);
    const ordered = (request: string): string | undefined => {
      orders.push(request);
      return orderFails;
    };
    const options = { observer, ordered, blocked };
    // SQLite allows one server for a ledger, so there the same server is used as both.
    const first = await cluster.testServer(options);
    servers = [first, engine === 'SQLite' ? first : await cluster.testServer(options)];
    const work = async (): Promise<{ status: 200; body: { summary: string } }> => {
      if (fails) throw new Error('no');
      return { status: 200, body: { summary: `run ${++runs}` } };
    };
    doors = [await Doors.open(servers[0]!, work), await Doors.open(servers[1]!, work)];
    closers.push(...doors.map(each => each.close), () => cluster.close(), place.remove);
  });
  after(async () => {
    for (const close of closers.splice(0)) await close();
    await testChain.close();
  });
  beforeEach(async () => {
    [runs, fails, orders, orderFails] = [0, false, [], undefined];
    [payer] = (await testChain.payers(1)) as [Keypair];
  });

  const post = (path: string, body: object, headers: Record<string, string> = {}, at = 0): Promise<Answer> =>
    call(doors[at]!.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const summarize = (text: string, { authorization }: { authorization?: string } = {}, at = 0) =>
    post(SUMMARIZE.path, { text }, authorization ? { authorization } : {}, at);
  const order = ({ authorization }: { authorization?: string } = {}, body: object = ORDER, at = 0) =>
    post(BRAND.path, body, authorization ? { authorization } : {}, at);
  /** Sends a payment again while it is in progress. */
  const patiently = async (send: () => Promise<Answer>): Promise<Answer> => {
    let answer = await send();
    const sendAgain = async (): Promise<boolean> => answer.status !== 503 || !(answer = await send());
    await until('it is answered', sendAgain);
    return answer;
  };
  const challengeIn = ({ headers }: Answer): ReadChallenge => readChallenge(headers.get('www-authenticate'));
  const balance = async (): Promise<bigint> => {
    const { value } = await testChain.connection.getTokenAccountBalance(
      testChain.tokenAccount(payer.publicKey),
    );
    return BigInt(value.amount);
  };
  const receiptIn = ({ headers }: Answer): Record<string, string> =>
    JSON.parse(Buffer.from(String(headers.get('payment-receipt')), 'base64url').toString()) as Record<
      string,
      string
    >;
  const row = (id: string) => servers[0]!.reader.find(id);

  /** Uses a blockhash other than the challenge's, which may be too old on a slow machine. */
  const sign = (asked: ReadChallenge, bend: Recipe = {}): MppPayment => {
    const { blockhash } = testChain.sandbox.chain.latestBlockhash('processed');
    return mppPayment(asked, payer, { blockhash, ...bend });
  };

  /** Sends a payment as its buyer does. Resolves once both servers have seen a later slot, so that it landed before their claims. */
  const make = async ({ transaction }: MppPayment): Promise<void> => {
    const bytes = Buffer.from(transaction, 'base64');
    await testChain.connection.sendRawTransaction(bytes, { skipPreflight: true });
    const signature = signatureOf(transaction);
    await until('it has landed', () => testChain.sandbox.chain.find(signature) !== null);
    const { slot } = testChain.sandbox.chain.find(signature)!;
    await until('the servers are past it', () => servers.every(server => server.slot() > slot));
  };

  describe('and send as a credential of type transaction', () => {
    it('buy once, with a receipt, and pass the later audit', async () => {
      const asked = challengeIn(await summarize('before'));
      const payment = sign(asked);
      await make(payment);
      const answer = await patiently(() => summarize('before', payment));
      expect([answer.status, answer.json()]).to.deep.equal([200, { summary: 'run 1' }]);
      expect(receiptIn(answer)).to.include({ challengeId: asked.wire['id'], status: 'success' });
      expect((await summarize('before', payment, 1)).json()).to.deep.equal({ summary: 'run 1' });
      expect([runs, await balance()]).to.deep.equal([1, FUNDS - PRICE]);
      await until('it is audited', async () => (await row(payment.id))?.auditedAt !== null);
      expect(falseSettlements).to.deep.equal([]);
    });

    it('are owed their answer while the work fails, and the error reports this', async () => {
      const payment = sign(challengeIn(await summarize('owed')));
      await make(payment);
      fails = true;
      const failed = await patiently(() => summarize('owed', payment));
      expect(failed.status).to.equal(502);
      expect(failed.json().error).to.match(STILL_OWED);
      expect(await row(payment.id)).to.include({
        state: 'owed',
        settlement: signatureOf(payment.transaction),
      });
      fails = false;
      expect((await patiently(() => summarize('owed', payment, 1))).status).to.equal(200);
      expect([runs, await balance()]).to.deep.equal([1, FUNDS - PRICE]);
    });

    it('get no answer that says “not charged” before the chain has been searched', async () => {
      const payment = sign(challengeIn(await summarize('unseen')));
      await make(payment);
      const wrong = await post(SUMMARIZE.path, {}, { authorization: payment.authorization });
      blocked.add(payer.publicKey.toBase58());
      const turnedAway = await summarize('unseen', payment);
      blocked.clear();
      expect([wrong.status, turnedAway.status]).to.deep.equal([400, 402]);
      for (const { body } of [wrong, turnedAway])
        expect(body.toString())
          .to.include('no money has moved, unless you have sent it yourself')
          .and.not.match(/not charged/i);
      expect((await patiently(() => summarize('unseen', payment))).status).to.equal(200);
    });

    it('are two sales if there are two of them for one call: both have moved their money', async () => {
      const payments = [];
      for (let n = 0; n < 2; n++) payments.push(sign(challengeIn(await summarize('twice'))));
      for (const payment of payments) await make(payment);
      fails = true;
      for (const payment of payments)
        expect((await patiently(() => summarize('twice', payment))).json().error).to.match(STILL_OWED);
      fails = false;
      for (const payment of payments)
        expect((await patiently(() => summarize('twice', payment))).status).to.equal(200);
      for (const { id } of payments) expect(await row(id)).to.include({ state: 'delivered', aliasOf: null });
      expect([runs, await balance()]).to.deep.equal([2, FUNDS - 2n * PRICE]);
    });

    it('buy nothing if the transfer failed on the chain', async () => {
      const payment = sign(challengeIn(await summarize('failed')));
      await testChain.spendAll(payer);
      await make(payment);
      const answer = await summarize('failed', payment);
      expect([answer.status, runs, await row(payment.id)]).to.deep.equal([402, 0, undefined]);
    });
  });

  describe('and name by signature', () => {
    const challenged = async (): Promise<ReadChallenge> => challengeIn(await order());
    const made = async (asked: ReadChallenge) => {
      const payment = sign(asked);
      await make(payment);
      return { ...payment, ...madeCredential(asked, payment) };
    };
    const delivered = (id: string): Promise<void> =>
      until('the order is delivered', async () => (await row(id))?.state === 'delivered');

    it('buy an order once over HTTP, and the same credential gets its answer at the other server', async () => {
      const asked = await challenged();
      const credential = await made(asked);
      const first = await order(credential);
      expect(first.status, first.body.toString()).to.be.oneOf([200, 503]);
      await delivered(credential.id);
      for (const at of [0, 1]) {
        const answer = await order(credential, ORDER, at);
        expect(answer.status, answer.body.toString()).to.equal(200);
        expect(receiptIn(answer)).to.include({
          challengeId: asked.wire['id'],
          reference: signatureOf(credential.transaction),
        });
      }
      expect([orders.length, await balance()]).to.deep.equal([1, FUNDS - BRAND_PRICE]);
    });

    it('buy an order over MCP', async () => {
      const credential = await made(await challenged());
      await callTool(doors[0]!.url, BRAND.id, ORDER, credential.meta);
      await delivered(credential.id);
      const sold = await callTool(doors[1]!.url, BRAND.id, ORDER, credential.meta);
      expect(sold._meta?.['org.paymentauth/receipt'], JSON.stringify(sold)).to.include({ status: 'success' });
      expect([orders.length, await balance()]).to.deep.equal([1, FUNDS - BRAND_PRICE]);
    });

    it('buy one order, even if they are sent to two servers over both transports as both types', async () => {
      const asked = await challenged();
      const credential = await made(asked);
      const asTransaction = credentialOf(asked, credential.transaction);
      const copies = Array.from({ length: 40 }, (_, n) => {
        const at = n % 2;
        if (n % 4 < 2) return callTool(doors[at]!.url, BRAND.id, ORDER, credential.meta);
        return order(n % 8 < 4 ? credential : asTransaction, ORDER, at);
      });
      await Promise.all(copies);
      await delivered(credential.id);
      for (const form of [credential, asTransaction]) expect((await order(form)).status).to.equal(200);
      expect([orders.length, await balance()]).to.deep.equal([1, FUNDS - BRAND_PRICE]);
    });

    it('buy one order for their buyer, even if they are also sent with another body, and by a stranger, to both servers', async () => {
      const [asked, own] = [await challenged(), await challenged()];
      const credential = await made(asked);
      const stranger = madeCredential(own, credential);
      const other = { ...ORDER, brand: 'Other' };
      const sent = async (by: typeof stranger, body: typeof ORDER, n: number): Promise<string> => {
        const at = n % 2;
        if (n % 4 < 2) return JSON.stringify(await callTool(doors[at]!.url, BRAND.id, body, by.meta));
        return (await order(by, body, at)).body.toString();
      };
      const copies = Array.from({ length: 24 }, (_, n) => n);
      const [mine, others] = await Promise.all([
        Promise.all(copies.map(n => sent(credential, n % 8 < 4 ? ORDER : other, n))),
        Promise.all(copies.map(n => sent(stranger, n % 8 < 4 ? ORDER : other, n))),
      ]);
      await delivered(credential.id);
      expect([orders.length, await balance()]).to.deep.equal([1, FUNDS - BRAND_PRICE]);
      expect(mine.join()).to.match(/was sent for another call/);
      for (const each of others) expect(each).to.match(/memo must be the externalId/);
      const kept = await Promise.all([ORDER, other].map(body => order(credential, body)));
      expect(kept.map(({ status }) => status).toSorted()).to.deep.equal([200, 402]);
      for (const body of [ORDER, other]) expect((await order(stranger, body)).status).to.equal(402);
      expect(orders.length).to.equal(1);
    });

    it('stay unused when the body is wrong, and the answer reports this', async () => {
      const credential = await made(await challenged());
      const wrong = await order(credential, { brand: 'Acme' });
      expect(wrong.status).to.equal(400);
      expect(wrong.json().error).to.match(
        /transfer has moved the money, but has bought nothing yet; correct/,
      );
      expect(await row(credential.id)).to.equal(undefined);
      await order(credential);
      await delivered(credential.id);
      expect(orders.length).to.equal(1);
    });

    it('stay owed when the work fails, and the answer says so', async () => {
      const credential = await made(await challenged());
      orderFails = 'Nobody answered.';
      let said: Answer | undefined;
      await until('the failure is told', async () => {
        said = await order(credential);
        return /Nobody answered/.test(said.body.toString());
      });
      expect(said?.status).to.be.oneOf([502, 503]);
      expect(await row(credential.id)).to.include({ state: 'owed' });
      orderFails = undefined;
      await until('it is delivered after all', async () => (await order(credential)).status === 200);
      expect(await balance()).to.equal(FUNDS - BRAND_PRICE);
    });

    it('buy nothing else: with another body, another operation, or a second time', async () => {
      const credential = await made(await challenged());
      await order(credential);
      await delivered(credential.id);
      const other = await order(credential, { ...ORDER, brand: 'Other' });
      expect([other.status, other.json().error]).to.satisfy(
        ([status, error]: [number, string]) => status === 402 && /was sent for another call/.test(error),
      );
      expect((await summarize('text', credential)).status).to.equal(402);
      expect([orders.length, runs]).to.deep.equal([1, 0]);
    });

    it('buy nothing for a stranger who names the transfer of another buyer and answers a real challenge or an invented one', async () => {
      const [asked, own] = [await challenged(), await challenged()];
      const victim = await made(asked);
      // The chain shows the amount that the challenge names, but not the challenge's id.
      const forged = { ...asked, wire: { ...asked.wire, id: 'of-a-stranger' } };
      const attacks = (): Promise<Answer[]> =>
        Promise.all([own, forged].map(asked => order(madeCredential(asked, victim))));
      for (const answer of await attacks()) expect(answer.status, answer.body.toString()).to.equal(402);
      expect([orders.length, await row(victim.id)]).to.deep.equal([0, undefined]);
      await order(victim);
      await delivered(victim.id);
      for (const answer of await attacks()) {
        expect(answer.status, answer.body.toString()).to.equal(402);
        expect(answer.headers.get('payment-receipt')).to.equal(null);
      }
      expect(orders.length).to.equal(1);
    });

    it('buy nothing with less than the price, and the answer says what happened to the money', async () => {
      const asked = await challenged();
      const payment = sign(asked, { amount: BRAND_PRICE - 1n });
      await make(payment);
      const answer = await order(madeCredential(asked, payment));
      expect(answer.status).to.equal(402);
      expect(answer.json().error, answer.body.toString()).to.match(
        /pays 0\.499999 USDC, must be exactly 0\.5.* can pay it back/,
      );
      expect([orders.length, await row(payment.id)]).to.deep.equal([0, undefined]);
    });

    it('buy nothing with a transfer that failed, and get a 503 until the transfer has landed', async () => {
      const [failing, late] = [await challenged(), await challenged()];
      const unsent = sign(late);
      const early = await order(madeCredential(late, unsent));
      expect([early.status, early.headers.get('retry-after')]).to.deep.equal([503, '2']);
      expect(early.json().error).to.match(/do not pay again: send the same credential again/);
      await make(unsent);
      await order(madeCredential(late, unsent));
      await delivered(unsent.id);
      await testChain.spendAll(payer);
      const failed = await made(failing);
      const answer = await order(failed);
      expect([answer.status, answer.json().error]).to.satisfy(
        ([status, error]: [number, string]) => status === 402 && /moved no money/.test(error),
      );
      expect(orders.length).to.equal(1);
    });

    it('buy one order if they answer one challenge, even if there are two transfers', async () => {
      const asked = await challenged();
      const first = await made(asked);
      await order(first);
      await delivered(first.id);
      const second = sign(asked);
      await make(second);
      const answer = await patiently(() => order(madeCredential(asked, second)));
      expect(answer.status, answer.body.toString()).to.equal(200);
      expect(receiptIn(answer)['reference']).to.equal(signatureOf(first.transaction));
      expect([orders.length, await row(second.id)]).to.deep.equal([1, undefined]);
    });

    it('are not accepted for work that is paid afterwards: the answer says how the transfer can still buy it', async () => {
      const asked = challengeIn(await summarize('a text'));
      const credential = await made(asked);
      const answer = await summarize('a text', credential);
      expect(answer.status).to.equal(402);
      expect(answer.json().error).to.match(
        /answer the same challenge with type transaction.* even if you have already sent it/,
      );
      const asTransaction = credentialOf(asked, credential.transaction);
      expect((await patiently(() => summarize('a text', asTransaction))).status).to.equal(200);
      expect(await balance()).to.equal(FUNDS - PRICE);
    });
  });
});
