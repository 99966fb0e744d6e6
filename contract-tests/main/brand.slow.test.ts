import { expect } from 'chai';
import { setTimeout as pause } from 'node:timers/promises';
import { v2Header } from '../support/craft.js';
import { BRAND_PATH, BRAND_PRICE, signedIn } from '../support/respondent.js';
import { call, challengeOf, post, receiptOf, signFor } from '../support/world.js';
import {
  aBody,
  allInOneWorld,
  errorOf,
  feedbackOf,
  openServer,
  send,
  sign,
  world,
} from '../support/brand-servers.js';

describe('brandFeedback, paid first and answered later', function () {
  this.timeout(90_000);
  allInOneWorld();

  describe('in the sandbox', () => {
    it('is answered by sample respondents, is marked as mock, and costs exactly the price', async () => {
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

    it('promise 6: two equal purchases whose callers are both still connected are two sales', async () => {
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

  describe('with nobody on the panel', () => {
    it('is not sold: the answer is a 503 before money moves, health says why, and the payment stays valid until a respondent comes', async () => {
      const testServer = await openServer('empty', {});
      const before = await world.earned();
      const payment = await sign(testServer);
      const body = aBody(1);
      const nobody = await send(testServer, payment, body, 0);
      expect(nobody.status, nobody.body.toString()).to.equal(503);
      expect(errorOf(nobody)).to.match(/No respondents are present.*You were not charged/);
      expect(Number(nobody.headers.get('retry-after'))).to.be.greaterThan(0);
      expect(nobody.headers.has('payment-response')).to.equal(false);
      expect(
        (await testServer.reader.list()).filter(({ state, leased }) => state !== 'claimed' || leased),
      ).to.deep.equal([]);
      expect(await world.earned()).to.equal(before);
      const { upstreams } = (await call(`${testServer.url}/brand/health`)).json() as {
        upstreams: { people: { status: string; detail: string } };
      };
      expect(upstreams.people.status).to.equal('degraded');
      expect(upstreams.people.detail).to.match(/no respondent has opened the panel page/);

      const someone = await signedIn(testServer.url);
      const held = send(testServer, payment, body, 30);
      await someone.answer(payment.id, 'Here I am.');
      expect((await held).status).to.equal(200);
      expect(await world.earned()).to.equal(before + BRAND_PRICE);
    });
  });
});
