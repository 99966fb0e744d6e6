import { createKeyPairSignerFromBytes } from '@solana/kit';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { withIdentifier } from '../support/craft.js';
import { BRAND_PATH, BRAND_PRICE, Respondent, signedIn, type BrandPayment } from '../support/respondent.js';
import { call, challengeOf, post, receiptOf, signFor, type Answer } from '../support/world.js';
import {
  SAME_PAYMENT,
  aBody,
  allInOneWorld,
  errorOf,
  feedbackOf,
  openServer,
  send,
  sign,
  type Feedback,
  type BrandServer,
  world,
} from '../support/brand-servers.js';

const WEEK_MS = 7 * 24 * 60 * 60_000;

describe('brandFeedback, paid first and answered later', function () {
  this.timeout(90_000);
  allInOneWorld();

  describe('with people on the panel', () => {
    let testServer: BrandServer;
    let people: Respondent[];
    before(async () => {
      testServer = await openServer('panel', { HOLD_SECONDS: '1' });
      people = await Promise.all([
        signedIn(testServer.url),
        signedIn(testServer.url),
        signedIn(testServer.url),
      ]);
    });
    const person = (index = 0): Respondent => people[index] ?? expect.fail('nobody');

    /** Sends the same payment again until the answer is not a 503. */
    async function untilAnswered(payment: BrandPayment, body: unknown): Promise<Answer> {
      for (const end = Date.now() + 20_000; ;) {
        const answer = await send(testServer, payment, body);
        if (answer.status !== 503 || Date.now() > end) return answer;
      }
    }

    it('only the right token opens the page, and the answer is what people wrote, and is not marked as mock', async () => {
      const stranger = new Respondent(testServer.url);
      expect(await stranger.signIn('a-token-that-is-wrong')).to.equal(401);
      const before = await world.earned();
      const payment = await sign(testServer);
      const body = aBody(2);
      const held = send(testServer, payment, body, 30);
      await person(0).answer(payment.id, 'I love the new cup.', 'positive');
      expect(await person(0).reply(payment.id, 'Once more.')).to.equal('duplicate');
      expect(await stranger.page()).not.to.include(body.question);
      await person(1).answer(payment.id, 'It is a terrible, awful cup.', 'negative');
      const answer = await held;
      expect(answer.status, answer.body.toString()).to.equal(200);
      const feedback = feedbackOf(answer);
      expect(feedback).to.include({ ...body });
      expect(feedback).not.to.have.property('mock');
      expect(feedback.responses).to.deep.equal([
        { text: 'I love the new cup.', sentiment: 'positive' },
        { text: 'It is a terrible, awful cup.', sentiment: 'negative' },
      ]);
      expect(feedback.aggregate).to.include({ positive: 1, neutral: 0, negative: 1 });
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
      expect(await person(2).reply(payment.id, 'Too late.')).to.equal('closed');
    });

    it('promise 5: a caller who waits too long gets a 503 that says “paid and in progress”, and the same payment gets the answer later', async () => {
      const before = await world.earned();
      const payment = await sign(testServer);
      const body = aBody(1);
      for (const wait of [0, 1, undefined]) {
        const answer = await send(testServer, payment, body, wait);
        expect(answer.status, answer.body.toString()).to.equal(503);
        expect(Number(answer.headers.get('retry-after'))).to.be.greaterThan(0);
        expect(receiptOf(answer)).to.include({ success: true });
        expect(errorOf(answer)).to.match(SAME_PAYMENT);
      }
      await person().answer(payment.id, 'Fine.');
      const answer = await untilAnswered(payment, body);
      expect(answer.status, answer.body.toString()).to.equal(200);
      const row = await testServer.reader.find(payment.id);
      expect(row).to.include({ state: 'delivered', asks: 1 });
      expect((row?.answerExpiresAt ?? 0) - Date.now()).to.be.within(WEEK_MS - 60_000, WEEK_MS);
      const again = await send(testServer, payment, body);
      expect(again.status).to.equal(200);
      expect(again.body.equals(answer.body)).to.equal(true);
      expect(receiptOf(again)).to.deep.equal(receiptOf(answer));
      const other = await send(testServer, payment, { ...body, n: 2 });
      expect(other.status).to.equal(402);
      expect(challengeOf(other).error).to.include('another body');
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });

    it('promise 5: at most four callers are held for one payment, and a fifth is answered at once', async () => {
      const payment = await sign(testServer);
      const body = aBody(1);
      expect((await send(testServer, payment, body, 0)).status).to.equal(503);
      const answered = new Set<number>();
      const held = Array.from({ length: 4 }, async (_, index) => {
        const answer = await send(testServer, payment, body, 60);
        answered.add(index);
        return answer;
      });
      await pause(500);
      const fifth = await send(testServer, payment, body, 60);
      expect(fifth.status).to.equal(503);
      expect(errorOf(fifth)).to.match(SAME_PAYMENT);
      expect([...answered]).to.deep.equal([]);
      await person().answer(payment.id, 'All four of you get this.');
      const answers = await Promise.all(held);
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
      expect(new Set(answers.map(answer => answer.body.toString()))).to.have.lengthOf(1);
    });

    it('promise 5: a caller who hangs up makes room and loses nothing', async () => {
      const payment = await sign(testServer);
      const body = aBody(1);
      const leaving = new AbortController();
      const headers = { ...payment.headers, Prefer: 'wait=60', 'content-type': 'application/json' };
      const init = { method: 'POST', body: JSON.stringify(body), headers, signal: leaving.signal };
      const gone = Array.from({ length: 4 }, () =>
        call(testServer.url + BRAND_PATH, init).catch(() => 'gone'),
      );
      for (const end = Date.now() + 10_000; !(await testServer.reader.order(payment.id)) && Date.now() < end;)
        await pause(100);
      await pause(500);
      leaving.abort();
      expect(await Promise.all(gone)).to.deep.equal(['gone', 'gone', 'gone', 'gone']);
      await pause(1_500);
      const held = send(testServer, payment, body, 30);
      await person().answer(payment.id, 'Here I am.');
      expect((await held).status).to.equal(200);
    });

    it('promise 6: a stock client that signs again after every 503 pays once, orders once and gets its answer', async () => {
      const before = await world.earned();
      const signer = await createKeyPairSignerFromBytes(world.buyer);
      const scheme = new ExactSvmScheme(signer, { rpcUrl: world.sandbox.rpc.url });
      const paidFetch = wrapFetchWithPayment(fetch, new x402Client().register('solana:*', scheme));
      const body = aBody(1);
      const init = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      };
      const mine = async () =>
        (await testServer.reader.list({ operation: 'brandFeedback' })).filter(({ request }) =>
          request?.includes(body.question),
        );
      const statuses: number[] = [];
      let feedback: unknown;
      for (const end = Date.now() + 30_000; Date.now() < end;) {
        const response = await paidFetch(testServer.url + BRAND_PATH, init);
        statuses.push(response.status);
        feedback = await response.json();
        if (response.status !== 503) break;
        const order = (await mine()).find(({ aliasOf }) => aliasOf === null);
        if (statuses.length === 3) await person().answer(order?.id ?? '', 'Worth waiting for.', 'positive');
      }
      expect(statuses.slice(0, 3)).to.deep.equal([503, 503, 503]);
      expect(statuses.at(-1)).to.equal(200);
      expect((feedback as Feedback).responses).to.deep.equal([
        { text: 'Worth waiting for.', sentiment: 'positive' },
      ]);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
      const payments = await mine();
      expect(payments).to.have.lengthOf(statuses.length);
      expect(payments.filter(({ aliasOf }) => aliasOf === null)).to.have.lengthOf(1);
      const orders = await Promise.all(payments.map(({ id }) => testServer.reader.order(id)));
      expect(orders.filter(order => order !== undefined)).to.have.lengthOf(1);
    });

    it('promise 11: a new payment-identifier makes a new sale; a repeated one belongs to the same sale, or gets a 400 if the body is different', async () => {
      const before = await world.earned();
      const body = aBody(1);
      const [one, other] = [randomBytes(12).toString('hex'), randomBytes(12).toString('hex')];
      const first = await sign(testServer, withIdentifier(one));
      const second = await sign(testServer, withIdentifier(other));
      expect((await send(testServer, first, body, 0)).status).to.equal(503);
      expect((await send(testServer, second, body, 0)).status).to.equal(503);
      expect(await world.earned()).to.equal(before + 2n * BRAND_PRICE);
      const renewed = await sign(testServer, withIdentifier(one));
      const waiting = await send(testServer, renewed, body, 0);
      expect(waiting.status).to.equal(503);
      expect(receiptOf(waiting)).to.include({ success: true });
      const conflict = await send(testServer, await sign(testServer, withIdentifier(one)), aBody(1), 0);
      expect(conflict.status).to.equal(400);
      expect(errorOf(conflict)).to.match(/not charged/);
      await person().answer(first.id, 'The first sale.');
      await person().answer(second.id, 'The second sale.');
      for (const [payment, text] of [
        [first, 'The first sale.'],
        [renewed, 'The first sale.'],
        [second, 'The second sale.'],
      ] as const) {
        const answer = await untilAnswered(payment, body);
        expect(answer.status, answer.body.toString()).to.equal(200);
        expect(feedbackOf(answer).responses[0]?.text).to.equal(text);
      }
      expect(await world.earned()).to.equal(before + 2n * BRAND_PRICE);
    });

    it('markup, control and direction characters and long texts are passed on as text and nothing else', async () => {
      const odd =
        '<script>alert(1)</script>"\'&amp; \u202Egnihtemos\u202C \u200F \0 \u0007 \ud83d\ude00 ${x} {brand}';
      const body = { brand: odd, question: `${odd} ${'long '.repeat(300)}`, n: 1 };
      const payment = await sign(testServer);
      const held = send(testServer, payment, body, 30);
      const reply = `<img src=x onerror=alert(1)> \u202Eabc\u202C "'&lt; \u{1F600} مرحبا`;
      await person(1).answer(payment.id, `${reply}\0`, 'neutral');
      const answer = await held;
      expect(answer.status, answer.body.toString().slice(0, 300)).to.equal(200);
      const feedback = feedbackOf(answer);
      expect(feedback.brand).to.equal(body.brand);
      expect(feedback.question).to.equal(body.question);
      expect(feedback.responses).to.deep.equal([{ text: `${reply}\ufffd`, sentiment: 'neutral' }]);
      expect(answer.headers.get('content-type')).to.match(/^application\/json/);
    });

    it('the page shows hostile text exactly as it was written, and refuses a reply of 10 000 characters', async () => {
      const payment = await sign(testServer);
      const body = {
        brand: '<b onclick=x>"Bold"</b>',
        question: 'Is </textarea><script>alert(2)</script> ok?\0',
        n: 1,
      };
      expect((await send(testServer, payment, body, 0)).status).to.equal(503);
      for (let tries = 0; tries < 50 && !(await testServer.reader.order(payment.id)); tries++)
        await pause(100);
      const page = await person(2).page();
      expect(page).to.include('&lt;b onclick=x&gt;&quot;Bold&quot;&lt;/b&gt;');
      expect(page).to.include('&lt;/textarea&gt;&lt;script&gt;alert(2)');
      expect(page).not.to.include('<script>alert').and.not.to.include('<b onclick').and.not.to.include('\0');
      expect(await person(2).reply(payment.id, 'x'.repeat(10_000))).to.equal('fault');
      await person(2).answer(payment.id, 'Short enough.');
      expect((await untilAnswered(payment, body)).status).to.equal(200);
    });

    it('a blank question is a 400 before any money moves', async () => {
      const before = await world.earned();
      for (const body of [
        { brand: 'Harbour', question: '  \n ' },
        { brand: '\u200b', question: 'Any good?' },
      ]) {
        const answer = await post(world.url + BRAND_PATH, body, await signFor(world, BRAND_PATH));
        expect(answer.status, answer.body.toString()).to.equal(400);
        expect(answer.json().error).to.include('You were not charged');
      }
      expect(await world.earned()).to.equal(before);
    });

    it('a question that the page could not show in full is a 400 before any money moves', async () => {
      const before = await world.earned();
      const payment = await sign(testServer);
      const long = await send(testServer, payment, { ...aBody(1), question: 'x'.repeat(2_001) }, 0);
      expect(long.status).to.equal(400);
      expect(errorOf(long)).to.include('2000');
      for (const bad of [
        { brand: 'x' },
        { brand: '', question: 'x' },
        { ...aBody(), n: 0 },
        { ...aBody(), n: 51 },
      ])
        expect((await send(testServer, payment, bad, 0)).status).to.equal(400);
      expect(await world.earned()).to.equal(before);
      const body = aBody(1);
      expect((await send(testServer, payment, body, 0)).status, 'the payment is untouched').to.equal(503);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
      await person().answer(payment.id, 'Done.');
    });
  });
});
