import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openLedger } from '../../src/ledger/store.js';
import { toBase58 } from '../../src/sandbox/base58.js';
import { aRefund, paymentIn } from '../support/ledger-places.js';
import { countingProxy, type CountingProxy } from '../support/proxy.js';
import { BRAND_PRICE, signedIn, type BrandPayment, type Respondent } from '../support/respondent.js';
import { callTool, paid, payloadOf } from '../support/mcp-call.js';
import { call, receiptOf, type Answer } from '../support/world.js';
import {
  SAME_PAYMENT,
  aBody,
  allInOneWorld,
  errorOf,
  feedbackOf,
  fileUrl,
  openServer,
  send,
  sign,
  type BrandServer,
  world,
} from '../support/brand-servers.js';

const settledAs = (transaction: string): string =>
  JSON.stringify({
    success: true,
    transaction,
    network: world.sandbox.info.network,
    payer: world.sandbox.info.buyer,
  });

describe('brandFeedback, paid first and answered later', function () {
  this.timeout(90_000);
  let lying:
    | undefined
    | { testServer: BrandServer; facilitator: CountingProxy; answer: Promise<Answer>; payment: BrandPayment };

  let lies = 0;
  allInOneWorld();

  before(async () => {
    const facilitator = await countingProxy(world.sandbox.facilitator.url);
    const testServer = await openServer('lying', { FACILITATOR_URL: facilitator.url });
    facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/settle') lies += 1;
      if (path === '/settle') return respond(200, settledAs(toBase58(randomBytes(64))));
      const { status, body } = await forward();
      respond(status, body);
    });
    await signedIn(testServer.url);
    const payment = await sign(testServer);
    // The server's own search for the transfer takes half a minute; other tests run meanwhile.
    lying = { testServer, facilitator, payment, answer: send(testServer, payment, aBody(1), 60) };
    lying.answer.catch(() => {});
  });
  after(() => lying?.facilitator.close());

  describe('at the deadline', () => {
    const ORDER_MS = 3_000;
    let testServer: BrandServer;
    let someone: Respondent;
    before(async () => {
      testServer = await openServer('short', {}, { orderMs: ORDER_MS });
      someone = await signedIn(testServer.url);
    });

    it('with some replies, the answer is a 200 with those replies, and its summary says how many are missing', async () => {
      const payment = await sign(testServer);
      const body = aBody(3);
      const held = send(testServer, payment, body);
      await someone.answer(payment.id, 'I am the only one here.', 'neutral');
      const answer = await held;
      expect(answer.status, answer.body.toString()).to.equal(200);
      const { n, responses, aggregate } = feedbackOf(answer);
      expect(n).to.equal(3);
      expect(responses).to.have.lengthOf(1);
      expect(aggregate).to.include({ positive: 0, neutral: 1, negative: 0 });
      expect(aggregate.summary).to.match(/^Only 1 of 3 people/);
    });

    it('with no replies, the answer is a 503, the order stays owed, and the same payment starts another attempt', async () => {
      const before = await world.earned();
      const payment = await sign(testServer);
      const body = aBody(1);
      const failed = await send(testServer, payment, body);
      expect(failed.status, failed.body.toString()).to.equal(503);
      expect(errorOf(failed)).to.match(/stays owed.*send the same payment again/i);
      expect(errorOf(failed)).not.to.match(/not charged/i);
      expect(receiptOf(failed)).to.include({ success: true });
      const owed = await testServer.reader.list({ state: 'owed' });
      expect(owed.map(({ id }) => id)).to.deep.equal([payment.id]);
      expect(await someone.reply(payment.id, 'Too late.')).to.equal('closed');
      await pause(2_500);
      expect(
        await testServer.reader.order(payment.id),
        'nothing begins by itself after one extension',
      ).to.include({
        attempts: 2,
      });

      expect((await send(testServer, payment, body)).status, 'before the next attempt is due').to.equal(503);
      await pause(Number(failed.headers.get('retry-after')) * 1_000 - 2_500);
      const held = send(testServer, payment, body);
      await someone.answer(payment.id, 'The second time.');
      const answer = await held;
      expect(answer.status, answer.body.toString()).to.equal(200);
      expect(feedbackOf(answer).responses[0]?.text).to.equal('The second time.');
      expect(await testServer.reader.order(payment.id)).to.include({ attempts: 3 });
      expect(await testServer.reader.list({ state: 'owed' })).to.deep.equal([]);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });

    it('once the operator has recorded a refund, the answer is a 502 that reports the refund, and no more respondents are asked', async () => {
      const payment = await sign(testServer);
      const body = aBody(1);
      const failed = await send(testServer, payment, body);
      expect(failed.status).to.equal(503);
      await pause(Number(failed.headers.get('retry-after')) * 1_000);
      const second = await send(testServer, payment, body, 0);
      expect(errorOf(second), 'a second attempt').to.match(/in progress/);
      const location = second.headers.get('location') ?? '';
      const signature = `nobody-was-there-${payment.id}`;
      expect(await testServer.reader.refund(payment.id, aRefund({ signature }))).to.equal('refunded');
      const refunded = await send(testServer, payment, body);
      expect(refunded.status).to.equal(502);
      expect(errorOf(refunded)).to.include(`refunded (transaction ${signature})`);
      expect(receiptOf(refunded)).to.include({ success: false, errorReason: 'refunded' });
      const fetched = await call(location);
      expect([fetched.status, errorOf(fetched)]).to.deep.equal([502, errorOf(refunded)]);
      expect(receiptOf(fetched)).to.deep.equal(receiptOf(refunded));
      const picked = await callTool(testServer.url, 'pick_up', { key: location });
      const meta = paid(payloadOf(payment.headers));
      for (const result of [picked, await callTool(testServer.url, 'brandFeedback', { ...body }, meta)]) {
        expect(result.isError).to.equal(true);
        expect(result._meta?.['x402/payment-response']).to.deep.equal(receiptOf(refunded));
      }
      expect(await someone.reply(payment.id, 'Too late.')).to.equal('closed');
      await pause(ORDER_MS);
      expect((await send(testServer, payment, body)).status).to.equal(502);
      expect(await testServer.reader.find(payment.id)).to.include({ state: 'refunded' });
    });
  });

  // Last, because its call has been waiting since the beginning.
  describe('without money or people', () => {
    it('if too many questions are already waiting, the answer is a 503 before money moves, and the payment stays valid', async () => {
      await mkdir(join(world.stateDir, 'full'));
      const url = fileUrl(join(world.stateDir, 'full', 'ledger.db'));
      const { payTo, network } = world.sandbox.info;
      const ledger = await openLedger({ url, payTo, network });
      const owed = await Promise.all(
        Array.from({ length: 200 }, () => paymentIn(ledger, 'owed', { request: JSON.stringify(aBody(1)) })),
      );
      const deadline = Date.now() + 600_000;
      await Promise.all(
        owed.map(payment =>
          ledger.openOrder({ payment, request: JSON.stringify(aBody(1)), wanted: 1, deadline }),
        ),
      );
      await ledger.close();
      const testServer = await openServer('full', {});
      const someone = await signedIn(testServer.url);
      const before = await world.earned();
      const payment = await sign(testServer);
      const body = aBody(1);
      const full = await send(testServer, payment, body, 0);
      expect(full.status).to.equal(503);
      expect(Number(full.headers.get('retry-after'))).to.be.greaterThan(0);
      expect(errorOf(full)).to.match(/too many questions/i);
      expect(full.headers.has('payment-response')).to.equal(false);
      expect(await world.earned()).to.equal(before);
      await someone.answer(owed[0] ?? '', 'One question less.');
      let answer = full;
      for (
        const end = Date.now() + 10_000;
        !answer.headers.has('payment-response') && Date.now() < end;
        await pause(200)
      )
        answer = await send(testServer, payment, body, 0);
      expect(errorOf(answer)).to.match(SAME_PAYMENT);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });

    it('promise 9: after a false report from the facilitator, the payment stays pending, nobody is asked, and nothing is delivered', async () => {
      const { testServer, payment, facilitator, answer } = lying ?? expect.fail('not asked');
      const someone = await signedIn(testServer.url);
      const told = await answer;
      const pending = async (heard: Answer, id: string): Promise<void> => {
        expect(heard.status, heard.body.toString()).to.equal(503);
        expect(receiptOf(heard)).to.include({ success: false, errorReason: 'settlement_pending' });
        expect(await testServer.reader.find(id)).to.include({ state: 'settling' });
        expect(await testServer.reader.order(id)).to.equal(undefined);
        expect(await someone.reply(id, 'Is anybody there?')).to.equal('closed');
      };
      await pending(told, payment.id);

      const before = await world.earned();
      const { usdcMint, payTo } = world.sandbox.info;
      const till = getAssociatedTokenAddressSync(new PublicKey(usdcMint), new PublicKey(payTo), true);
      const [real] = await world.connection.getSignaturesForAddress(till, { limit: 1 });
      facilitator.intervene(async ({ path, forward, respond }) => {
        if (path === '/settle') return respond(200, settledAs(real?.signature ?? ''));
        const { status, body } = await forward();
        respond(status, body);
      });
      const other = await sign(testServer);
      await pending(await send(testServer, other, aBody(1), 5), other.id);
      expect(lies).to.be.within(1, 2);
      expect(await someone.page()).to.include('No questions are open');
      expect(await world.earned()).to.equal(before);
    });
  });
});
