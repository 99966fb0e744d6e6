import { createKeyPairSignerFromBytes } from '@solana/kit';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { PublicKey } from '@solana/web3.js';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig, type Config } from '../src/config.js';
import { openBooks, openLedger, type Archive, type Books } from '../src/ledger/store.js';
import { compose } from '../src/compose.js';
import { toBase58 } from '../src/sandbox/base58.js';
import { withIdentifier, v2Header } from './support/craft.js';
import { aRefund, paymentIn } from './support/places.js';
import { countingProxy, type CountingProxy } from './support/proxy.js';
import {
  BRAND_PATH,
  BRAND_PRICE,
  PANEL_TOKEN,
  Respondent,
  signBrand,
  signedIn,
  type BrandPayment,
} from './support/respondent.js';
import {
  call,
  challengeOf,
  openWorld,
  post,
  receiptOf,
  signFor,
  type Answer,
  type World,
} from './support/world.js';

type Body = { brand: string; question: string; n?: number };
type Feedback = {
  brand: string;
  question: string;
  n: number;
  responses: { text: string; sentiment: string }[];
  aggregate: { positive: number; neutral: number; negative: number; summary: string };
  mock?: boolean;
};
/** A further server on the same chain, with a ledger of its own. */
type Shop = { url: string; books: Books & Archive; stop(): Promise<void> };

const WEEK_MS = 7 * 24 * 60 * 60_000;
const SAME_PAYMENT = /paid.*in progress.*send the same payment again/i;

let asked = 0;
/** No two are equal: a new payment for an equal call that is not answered yet would attach to it. */
const aBody = (n?: number): Body => ({
  brand: 'Harbour Coffee',
  question: `What do you think of cup number ${++asked}?`,
  ...(n === undefined ? {} : { n }),
});

const feedbackOf = (answer: Answer): Feedback => answer.json() as Feedback;
const errorOf = (answer: Answer): string => String(answer.json()['error']);
const fileUrl = (path: string): string => `file:${path}`;

describe('brandFeedback, paid first and answered later', function () {
  this.timeout(90_000);
  let world: World;
  let lying:
    undefined | { shop: Shop; facilitator: CountingProxy; answer: Promise<Answer>; payment: BrandPayment };
  const shops: Shop[] = [];

  async function openShop(
    name: string,
    env: Record<string, string>,
    config: Partial<Config> = {},
  ): Promise<Shop> {
    const stateDir = join(world.stateDir, name);
    const environment = { ...world.env, PEOPLE: 'panel', PANEL_TOKEN, STATE_DIR: stateDir, ...env };
    const running = await compose({ ...readConfig(environment), ...config });
    const books = await openBooks({ url: fileUrl(join(stateDir, 'ledger.db')) });
    const shop: Shop = {
      url: running.url,
      books,
      stop: async () => {
        await books.close();
        await running.stop();
      },
    };
    shops.push(shop);
    return shop;
  }

  const sign = (shop: { url: string }, extensions?: object): Promise<BrandPayment> =>
    signBrand(shop.url, world.buyer, extensions);
  const send = (
    shop: { url: string },
    payment: BrandPayment,
    body: unknown,
    wait?: number,
  ): Promise<Answer> =>
    post(shop.url + BRAND_PATH, body, {
      ...payment.headers,
      ...(wait === undefined ? {} : { Prefer: `wait=${wait}` }),
    });

  let lies = 0;
  before(async () => {
    world = await openWorld();
    const facilitator = await countingProxy(world.sandbox.facilitator.url);
    const shop = await openShop('lying', { FACILITATOR_URL: facilitator.url });
    facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/settle') lies += 1;
      if (path === '/settle') return respond(200, settledAs(toBase58(randomBytes(64))));
      const { status, body } = await forward();
      respond(status, body);
    });
    await signedIn(shop.url);
    const payment = await sign(shop);
    // Our own look for the transfer takes half a minute; other tests run meanwhile.
    lying = { shop, facilitator, payment, answer: send(shop, payment, aBody(1), 60) };
    lying.answer.catch(() => {});
  });
  after(async () => {
    for (const shop of shops) await shop.stop();
    await lying?.facilitator.close();
    await world.close();
  });

  const settledAs = (transaction: string): string =>
    JSON.stringify({
      success: true,
      transaction,
      network: world.sandbox.info.network,
      payer: world.sandbox.info.buyer,
    });

  describe('in the sandbox', () => {
    it('is answered by house respondents, marked as mock, and exactly the price moves', async () => {
      const before = await world.earned();
      const body = aBody();
      const answer = await post(world.url + BRAND_PATH, body, await signFor(world, BRAND_PATH));
      expect(answer.status, answer.body.toString()).to.equal(200);
      const feedback = feedbackOf(answer);
      expect(feedback).to.include({ ...body, n: 5, mock: true });
      expect(feedback.responses).to.have.lengthOf(5);
      const { positive, neutral, negative } = feedback.aggregate;
      expect(positive + neutral + negative).to.equal(5);
      expect(receiptOf(answer)).to.include({ success: true });
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });

    it('a v1 payment buys it, too', async () => {
      const body = aBody(1);
      const answer = await post(world.url + BRAND_PATH, body, await signFor(world, BRAND_PATH, 1));
      expect(answer.status, answer.body.toString()).to.equal(200);
      expect(answer.headers.has('x-payment-response')).to.equal(true);
      expect(feedbackOf(answer).mock).to.equal(true);
    });

    it('promise 6: two equal purchases whose callers are both still there are two sales', async () => {
      const before = await world.earned();
      const body = aBody(1);
      const buy = async () => post(world.url + BRAND_PATH, body, await signFor(world, BRAND_PATH));
      const first = buy();
      await pause(1_500);
      const answers = await Promise.all([first, buy()]);
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200]);
      expect(await world.earned()).to.equal(before + 2n * BRAND_PRICE);
    });

    it('the challenge names the flow, and a payment that accepted another flow is refused', async () => {
      const before = await world.earned();
      const { accepts } = challengeOf(await post(world.url + BRAND_PATH, {}));
      for (const { extra } of accepts) expect(extra).to.include({ paymentFlow: 'upfront' });
      const { offer, transaction } = await sign(world);
      const { extra, ...rest } = offer as { extra: Record<string, unknown> };
      for (const bent of [
        { ...extra, paymentFlow: undefined },
        { ...extra, paymentFlow: 'authorization' },
      ]) {
        const header = v2Header({ ...rest, extra: bent }, transaction);
        const answer = await post(world.url + BRAND_PATH, aBody(), { 'PAYMENT-SIGNATURE': header });
        expect(answer.status).to.equal(402);
        expect(challengeOf(answer).error).to.match(/paymentFlow: .* must be upfront/);
      }
      expect(await world.earned()).to.equal(before);
    });

    it('twenty orders of fifty replies at once are all delivered, and the server stays responsive', async function () {
      const before = await world.earned();
      const bodies = Array.from({ length: 20 }, () => aBody(50));
      let done = false;
      const watching = (async () => {
        for (let looks = 0; ; looks++, await pause(200)) {
          if (done) return looks;
          const health = await call(`${world.url}/health`, { signal: AbortSignal.timeout(5_000) });
          expect(health.status).to.equal(200);
        }
      })();
      const answers = await Promise.all(
        bodies.map(async body => send(world, await sign(world), body)),
      ).finally(() => (done = true));
      expect(await watching).to.be.greaterThan(5);
      answers.forEach((answer, index) => {
        expect(answer.status, answer.body.toString().slice(0, 300)).to.equal(200);
        const { responses, question } = feedbackOf(answer);
        expect(question).to.equal(bodies[index]?.question);
        expect(responses).to.have.lengthOf(50);
      });
      expect(await world.earned()).to.equal(before + 20n * BRAND_PRICE);
    });
  });

  describe('with people on the panel', () => {
    let shop: Shop;
    let people: Respondent[];
    before(async () => {
      shop = await openShop('panel', { HOLD_SECONDS: '1' });
      people = await Promise.all([signedIn(shop.url), signedIn(shop.url), signedIn(shop.url)]);
    });
    const person = (index = 0): Respondent => people[index] ?? expect.fail('nobody');

    /** Sends the same payment again until there is something else than 503. */
    async function untilAnswered(payment: BrandPayment, body: unknown): Promise<Answer> {
      for (const end = Date.now() + 20_000; ;) {
        const answer = await send(shop, payment, body);
        if (answer.status !== 503 || Date.now() > end) return answer;
      }
    }

    it('only the right token opens the page, and the answer is what they wrote, without mock', async () => {
      const stranger = new Respondent(shop.url);
      expect(await stranger.signIn('a-token-that-is-wrong')).to.equal(401);
      const before = await world.earned();
      const payment = await sign(shop);
      const body = aBody(2);
      const held = send(shop, payment, body, 30);
      await person(0).answer(payment.id, 'I love the new cup.', 'positive');
      expect(await person(0).reply(payment.id, 'Once more.')).to.equal('duplicate');
      expect(await stranger.page()).not.to.include(body.question);
      await person(1).answer(payment.id, 'It is a terrible, awful cup.');
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

    it('promise 5: who waits too long hears that it is paid and in progress, and the same payment gets the answer later', async () => {
      const before = await world.earned();
      const payment = await sign(shop);
      const body = aBody(1);
      for (const wait of [0, 1, undefined]) {
        const answer = await send(shop, payment, body, wait);
        expect(answer.status, answer.body.toString()).to.equal(503);
        expect(Number(answer.headers.get('retry-after'))).to.be.greaterThan(0);
        expect(receiptOf(answer)).to.include({ success: true });
        expect(errorOf(answer)).to.match(SAME_PAYMENT);
      }
      await person().answer(payment.id, 'Fine.');
      const answer = await untilAnswered(payment, body);
      expect(answer.status, answer.body.toString()).to.equal(200);
      const row = await shop.books.find(payment.id);
      expect(row).to.include({ state: 'delivered', asks: 1 });
      expect((row?.answerExpiresAt ?? 0) - Date.now()).to.be.within(WEEK_MS - 60_000, WEEK_MS);
      const again = await send(shop, payment, body);
      expect(again.status).to.equal(200);
      expect(again.body.equals(answer.body)).to.equal(true);
      expect(receiptOf(again)).to.deep.equal(receiptOf(answer));
      const other = await send(shop, payment, { ...body, n: 2 });
      expect(other.status).to.equal(402);
      expect(challengeOf(other).error).to.include('another body');
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });

    it('promise 5: at most four callers are held for one payment, the fifth is sent away at once', async () => {
      const payment = await sign(shop);
      const body = aBody(1);
      expect((await send(shop, payment, body, 0)).status).to.equal(503);
      const answered = new Set<number>();
      const held = Array.from({ length: 4 }, async (_, index) => {
        const answer = await send(shop, payment, body, 60);
        answered.add(index);
        return answer;
      });
      await pause(500);
      const fifth = await send(shop, payment, body, 60);
      expect(fifth.status).to.equal(503);
      expect(errorOf(fifth)).to.match(SAME_PAYMENT);
      expect([...answered]).to.deep.equal([]);
      await person().answer(payment.id, 'All four of you get this.');
      const answers = await Promise.all(held);
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
      expect(new Set(answers.map(answer => answer.body.toString()))).to.have.lengthOf(1);
    });

    it('promise 5: a caller who hangs up makes room and loses nothing', async () => {
      const payment = await sign(shop);
      const body = aBody(1);
      const leaving = new AbortController();
      const headers = { ...payment.headers, Prefer: 'wait=60', 'content-type': 'application/json' };
      const init = { method: 'POST', body: JSON.stringify(body), headers, signal: leaving.signal };
      const gone = Array.from({ length: 4 }, () => call(shop.url + BRAND_PATH, init).catch(() => 'gone'));
      for (const end = Date.now() + 10_000; !(await shop.books.order(payment.id)) && Date.now() < end;)
        await pause(100);
      await pause(500);
      leaving.abort();
      expect(await Promise.all(gone)).to.deep.equal(['gone', 'gone', 'gone', 'gone']);
      await pause(1_500);
      const held = send(shop, payment, body, 30);
      await person().answer(payment.id, 'Here I am.');
      expect((await held).status).to.equal(200);
    });

    it('promise 6: a stock client that signs anew after every 503 pays once, orders once and gets its answer', async () => {
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
        (await shop.books.list({ operation: 'brandFeedback' })).filter(({ request }) =>
          request?.includes(body.question),
        );
      const statuses: number[] = [];
      let feedback: unknown;
      for (const end = Date.now() + 30_000; Date.now() < end;) {
        const response = await paidFetch(shop.url + BRAND_PATH, init);
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
      const orders = await Promise.all(payments.map(({ id }) => shop.books.order(id)));
      expect(orders.filter(order => order !== undefined)).to.have.lengthOf(1);
    });

    it('promise 11: another payment-identifier is a new sale, the same one the same sale, with another body 400', async () => {
      const before = await world.earned();
      const body = aBody(1);
      const [one, other] = [randomBytes(12).toString('hex'), randomBytes(12).toString('hex')];
      const first = await sign(shop, withIdentifier(one));
      const second = await sign(shop, withIdentifier(other));
      expect((await send(shop, first, body, 0)).status).to.equal(503);
      expect((await send(shop, second, body, 0)).status).to.equal(503);
      expect(await world.earned()).to.equal(before + 2n * BRAND_PRICE);
      const renewed = await sign(shop, withIdentifier(one));
      const waiting = await send(shop, renewed, body, 0);
      expect(waiting.status).to.equal(503);
      expect(receiptOf(waiting)).to.include({ success: true });
      const conflict = await send(shop, await sign(shop, withIdentifier(one)), aBody(1), 0);
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

    it('markup, controls, direction marks and long texts pass through as text and nothing else', async () => {
      const odd =
        '<script>alert(1)</script>"\'&amp; \u202Egnihtemos\u202C \u200F \0 \u0007 \ud83d\ude00 ${x} {brand}';
      const body = { brand: odd, question: `${odd} ${'long '.repeat(300)}`, n: 1 };
      const payment = await sign(shop);
      const held = send(shop, payment, body, 30);
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

    it('the page shows hostile texts as they were written, and refuses a reply of 10 000 characters', async () => {
      const payment = await sign(shop);
      const body = {
        brand: '<b onclick=x>"Bold"</b>',
        question: 'Is </textarea><script>alert(2)</script> ok?\0',
        n: 1,
      };
      expect((await send(shop, payment, body, 0)).status).to.equal(503);
      for (let tries = 0; tries < 50 && !(await shop.books.order(payment.id)); tries++) await pause(100);
      const page = await person(2).page();
      expect(page).to.include('&lt;b onclick=x&gt;&quot;Bold&quot;&lt;/b&gt;');
      expect(page).to.include('&lt;/textarea&gt;&lt;script&gt;alert(2)');
      expect(page).not.to.include('<script>alert').and.not.to.include('<b onclick').and.not.to.include('\0');
      expect(await person(2).reply(payment.id, 'x'.repeat(10_000))).to.equal('');
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
      const payment = await sign(shop);
      const long = await send(shop, payment, { ...aBody(1), question: 'x'.repeat(2_001) }, 0);
      expect(long.status).to.equal(400);
      expect(errorOf(long)).to.include('2000');
      for (const bad of [
        { brand: 'x' },
        { brand: '', question: 'x' },
        { ...aBody(), n: 0 },
        { ...aBody(), n: 51 },
      ])
        expect((await send(shop, payment, bad, 0)).status).to.equal(400);
      expect(await world.earned()).to.equal(before);
      const body = aBody(1);
      expect((await send(shop, payment, body, 0)).status, 'the payment is untouched').to.equal(503);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
      await person().answer(payment.id, 'Done.');
    });
  });

  describe('with nobody on the panel', () => {
    it('is not sold: 503 before money moves, health says so, and the payment stays good until somebody comes', async () => {
      const shop = await openShop('empty', {});
      const before = await world.earned();
      const payment = await sign(shop);
      const body = aBody(1);
      const nobody = await send(shop, payment, body, 0);
      expect(nobody.status, nobody.body.toString()).to.equal(503);
      expect(errorOf(nobody)).to.match(/No respondents are present.*You were not charged/);
      expect(Number(nobody.headers.get('retry-after'))).to.be.greaterThan(0);
      expect(nobody.headers.has('payment-response')).to.equal(false);
      expect(
        (await shop.books.list()).filter(({ state, leased }) => state !== 'claimed' || leased),
      ).to.deep.equal([]);
      expect(await world.earned()).to.equal(before);
      const { upstreams } = (await call(`${shop.url}/brand/health`)).json() as {
        upstreams: { people: { status: string; detail: string } };
      };
      expect(upstreams.people.status).to.equal('degraded');
      expect(upstreams.people.detail).to.match(/no respondent was ever seen/);

      const someone = await signedIn(shop.url);
      const held = send(shop, payment, body, 30);
      await someone.answer(payment.id, 'Here I am.');
      expect((await held).status).to.equal(200);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });
  });

  describe('at the deadline', () => {
    const ORDER_MS = 3_000;
    let shop: Shop;
    let someone: Respondent;
    before(async () => {
      shop = await openShop('short', {}, { orderMs: ORDER_MS });
      someone = await signedIn(shop.url);
    });

    it('with some replies: 200 with what came, and the summary says how many were missing', async () => {
      const payment = await sign(shop);
      const body = aBody(3);
      const held = send(shop, payment, body);
      await someone.answer(payment.id, 'I am the only one here.', 'neutral');
      const answer = await held;
      expect(answer.status, answer.body.toString()).to.equal(200);
      const { n, responses, aggregate } = feedbackOf(answer);
      expect(n).to.equal(3);
      expect(responses).to.have.lengthOf(1);
      expect(aggregate).to.include({ positive: 0, neutral: 1, negative: 0 });
      expect(aggregate.summary).to.match(/^Only 1 of the 3 people/);
    });

    it('with none: 502, the order stays owed, and the same payment starts an attempt that can be answered', async () => {
      const before = await world.earned();
      const payment = await sign(shop);
      const body = aBody(1);
      const failed = await send(shop, payment, body);
      expect(failed.status, failed.body.toString()).to.equal(502);
      expect(errorOf(failed)).to.match(/stays owed.*send the same payment again/i);
      expect(errorOf(failed)).not.to.match(/not charged/i);
      expect(receiptOf(failed)).to.include({ success: true });
      const owed = await shop.books.list({ state: 'owed' });
      expect(owed.map(({ id }) => id)).to.deep.equal([payment.id]);
      expect(await someone.reply(payment.id, 'Too late.')).to.equal('closed');
      await pause(2_500);
      expect(await shop.books.order(payment.id), 'nothing begins by itself').to.include({ attempts: 1 });

      const held = send(shop, payment, body);
      await someone.answer(payment.id, 'The second time.');
      const answer = await held;
      expect(answer.status, answer.body.toString()).to.equal(200);
      expect(feedbackOf(answer).responses[0]?.text).to.equal('The second time.');
      expect(await shop.books.order(payment.id)).to.include({ attempts: 2 });
      expect(await shop.books.list({ state: 'owed' })).to.deep.equal([]);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });

    it('once the operator recorded a refund: 502 that says so, and nobody is asked any more', async () => {
      const payment = await sign(shop);
      const body = aBody(1);
      expect((await send(shop, payment, body)).status).to.equal(502);
      expect((await send(shop, payment, body, 0)).status, 'a second attempt').to.equal(503);
      const signature = `nobody-was-there-${payment.id}`;
      expect(await shop.books.refund(payment.id, aRefund({ signature }))).to.equal('refunded');
      const refunded = await send(shop, payment, body);
      expect(refunded.status).to.equal(502);
      expect(errorOf(refunded)).to.include(`refunded (transaction ${signature})`);
      expect(await someone.reply(payment.id, 'Too late.')).to.equal('closed');
      await pause(ORDER_MS);
      expect((await send(shop, payment, body)).status).to.equal(502);
      expect(await shop.books.find(payment.id)).to.include({ state: 'refunded' });
    });
  });

  // Last, since its call has been waiting since the beginning.
  describe('without money or people', () => {
    it('when too many questions wait already: 503 before money moves, and the payment stays good', async () => {
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
      const shop = await openShop('full', {});
      const someone = await signedIn(shop.url);
      const before = await world.earned();
      const payment = await sign(shop);
      const body = aBody(1);
      const full = await send(shop, payment, body, 0);
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
        answer = await send(shop, payment, body, 0);
      expect(errorOf(answer)).to.match(SAME_PAYMENT);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });

    it('promise 9: a facilitator that lies gets nobody asked: pending, no question, nothing delivered', async () => {
      const { shop, payment, facilitator, answer } = lying ?? expect.fail('not asked');
      const someone = await signedIn(shop.url);
      const told = await answer;
      const pending = async (heard: Answer, id: string): Promise<void> => {
        expect(heard.status, heard.body.toString()).to.equal(503);
        expect(receiptOf(heard)).to.include({ success: false, errorReason: 'settlement_pending' });
        expect(await shop.books.find(id)).to.include({ state: 'settling' });
        expect(await shop.books.order(id)).to.equal(undefined);
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
      const other = await sign(shop);
      await pending(await send(shop, other, aBody(1), 5), other.id);
      expect(lies).to.be.within(1, 2);
      expect(await someone.page()).to.include('No question is open');
      expect(await world.earned()).to.equal(before);
    });
  });
});
