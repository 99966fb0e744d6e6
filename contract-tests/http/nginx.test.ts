import { expect } from 'chai';
import { STATUS_CODES } from 'node:http';
import { exampleCall } from '../support/example-call.js';
import { noProxy, openNginx } from '../support/proxies.js';
import { refusedSettlement } from '../support/refused-settlement.js';
import { SOLD } from '../support/sold.js';
import { call, openWorld, receiptOf, signFor, type Answer, type World } from '../support/world.js';

/** The size of nginx's buffers, with pages of 4 KB. */
const ROOM = 4_096;
const REFUSED = refusedSettlement('invalid_exact_svm_payload_memo_mismatch');

/** The bytes from the status line to the empty line, as nginx forwards them. */
function headBytes({ status, headers }: Answer): number {
  const lines = [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`.length + lines + 2;
}

/** An answer whose head fits into one page of nginx's buffers. */
const roomFor = (answer: Answer): Answer => {
  expect(headBytes(answer)).to.be.at.most(ROOM);
  return answer;
};

describe('behind nginx with its defaults', function () {
  this.timeout(60_000);
  let world: World;
  let nginx: Awaited<ReturnType<typeof openNginx>>;

  before(async function () {
    if (noProxy('nginx')) return this.skip();
    world = await openWorld();
    nginx = await openNginx(world.url);
  });
  after(async () => {
    await nginx?.close();
    await world?.close();
  });

  for (const operation of SOLD.paid) {
    const { query, init } = exampleCall(operation);
    const path = `${operation.examplePath}${query}`;
    const unpaid = (): Promise<Answer> => call(nginx.url + path, init);
    const paying = async (payment?: Record<string, string>): Promise<Answer> => {
      const signed = payment ?? (await signFor(world, operation.path, 2, await unpaid()));
      return call(nginx.url + path, { ...init, headers: { ...init.headers, ...signed } });
    };

    it(`${operation.id}: the price and a refusal arrive`, async () => {
      expect(roomFor(await unpaid()).status).to.equal(402);
      expect((await paying({ 'PAYMENT-SIGNATURE': 'bm90IGEgcGF5bWVudA==' })).status).to.equal(402);
    });

    it(`${operation.id}: a refusal with a receipt arrives`, async () => {
      world.facilitator.intervene(async ({ path: asked, forward, respond }) => {
        if (asked === '/settle') return respond(200, REFUSED);
        const { status, body } = await forward();
        respond(status, body);
      });
      const refused = roomFor(await paying());
      world.facilitator.intervene(undefined);
      expect(refused.status).to.equal(402);
      expect(receiptOf(refused).success).to.equal(false);
    });

    it(`${operation.id}: a 503 arrives`, async () => {
      const payment = await signFor(world, operation.path, 2, await unpaid());
      world.facilitator.intervene(({ respond }) => respond(500, '{}'));
      const outage = roomFor(await paying(payment));
      world.facilitator.intervene(undefined);
      expect([outage.status, outage.headers.has('retry-after')]).to.deep.equal([503, true]);
    });

    it(`${operation.id}: the answer arrives with its receipt`, async () => {
      const payment = await signFor(world, operation.path, 2, await unpaid());
      const answer = roomFor(await paying({ ...payment, prefer: 'respond-async' }));
      expect(answer.status).to.be.lessThan(300);
      expect(receiptOf(answer).success).to.equal(true);
    });
  }
});
