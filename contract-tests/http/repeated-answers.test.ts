import { expect } from 'chai';
import type { Methods } from '../../src/methods/methods.js';
import { randomBytes } from 'node:crypto';
import { PickUps } from '../../src/http/serve-pick-up.js';
import { AnswerKeys } from '../../src/http/answer-keys.js';
import { answerSecret } from '../support/answer-secret.js';
import { anotherText, callTool, paid, payloadOf } from '../support/mcp-call.js';
import { RELEASED } from '../support/sold.js';
import { openWorld, post, receiptOf, signFor, type Answer, type World } from '../support/world.js';

const TOO_OFTEN =
  'Paid, and the answer was sent too many times in a short time. It is kept: send the same payment again later.';

const GONE = { kind: 'nothing', error: 'gone' };

describe('a paid answer that is sent again', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(() => world.close());

  const sendings = async (
    path: string,
    count: number,
    asked: object,
    signed: Record<string, string>,
  ): Promise<Answer[]> =>
    Promise.all(Array.from({ length: count }, () => post(world.url + path, asked, signed)));

  it('is sent only a limited number of times if it is large; after that, a 503 says that it is paid for and stored', async function () {
    this.timeout(60_000);
    const asked = { text: 'The harbour bridge will close for repairs on Monday. '.repeat(3) };
    const signed = await signFor(world, '/v1/tts');
    const bought = await post(`${world.url}/v1/tts`, asked, signed);
    expect(bought.body.length).to.be.greaterThan(256 * 1024);
    const again = await sendings('/v1/tts', 120, asked, signed);
    const sent = again.filter(({ status }) => status === 200);
    expect(sent.length).to.be.within(20, 119);
    expect(sent.every(({ body }) => body.equals(bought.body))).to.equal(true);
    for (const answer of again.filter(({ status }) => status !== 200)) {
      expect(answer.status).to.equal(503);
      expect(answer.json().error).to.match(new RegExp(`^${TOO_OFTEN}`));
      expect(Number(answer.headers.get('retry-after'))).to.be.greaterThan(0);
      expect(receiptOf(answer)).to.deep.equal(receiptOf(bought));
    }
  });

  it('has the same limit if some copies are sent over MCP', async function () {
    this.timeout(60_000);
    const asked = { text: 'The harbour bridge is open on Sundays only, says the mayor. '.repeat(3) };
    const signed = await signFor(world, '/v1/tts');
    const bought = await post(`${world.url}/v1/tts`, asked, signed);
    const overMcp = () => callTool(world.url, 'textToSpeech', asked, paid(payloadOf(signed)));
    const called = Promise.all(Array.from({ length: 60 }, overMcp));
    const posted = await sendings('/v1/tts', 60, asked, signed);
    const refused = (await called).filter(({ isError }) => isError);
    const sent = posted.filter(({ status }) => status === 200).length + 60 - refused.length;
    expect(sent).to.be.within(20, 119);
    expect(refused.length).to.be.greaterThan(0);
    for (const { structuredContent, _meta } of refused) {
      expect(structuredContent).to.include({ status: 503 });
      expect(structuredContent?.error).to.match(new RegExp(`^${TOO_OFTEN}`));
      expect(_meta?.['x402/payment-response']).to.deep.equal(receiptOf(bought));
    }
  });

  it("does not count toward the limit on fetches with the buyer's keys, nor do fetches with strangers' keys", async () => {
    const [id, keys] = [
      randomBytes(32).toString('hex'),
      new AnswerKeys([answerSecret(randomBytes(32))], undefined),
    ];
    const charge = { pickUp: async () => ({ kind: 'nothing', error: 'gone' }) as const };
    const methods = { first: {}, named: () => ({}) } as unknown as Methods;
    const pickUps = new PickUps(RELEASED, keys, charge, methods);
    const pickedUp = (number: number) => pickUps.get(keys.linkOf({ id, number }).key);
    for (let copies = 0; copies < 20; copies++) expect(pickUps.takeAgain(id, 300_000)).to.equal(0);
    expect(pickUps.takeAgain(id, 300_000)).to.be.greaterThan(0);
    for (let times = 0; times < 20; times++) expect(await pickedUp(0)).to.include(GONE);
    expect(await pickedUp(0)).to.include({ kind: 'found' });
    for (let times = 0; times < 20; times++) expect(await pickedUp(1 + (times % 3))).to.include(GONE);
    expect(await pickedUp(1), "all of the buyer's keys together").to.include({ kind: 'found' });
  });

  it('is not limited if it is small: hundreds of copies that arrive during the first delivery all get it', async () => {
    const [asked, signed] = [anotherText(), await signFor(world, '/v1/summarize')];
    const bought = await post(`${world.url}/v1/summarize`, asked, signed);
    const copies = await sendings('/v1/summarize', 300, asked, signed);
    expect(copies.map(({ status }) => status)).to.deep.equal(copies.map(() => 200));
    expect(copies.every(({ body }) => body.equals(bought.body))).to.equal(true);
  });

  it('is not limited for requests that came before it was delivered, however large it is', async function () {
    this.timeout(60_000);
    const asked = { text: 'The harbour bridge will open again on Friday, says the mayor. '.repeat(3) };
    const copies = await sendings('/v1/tts', 40, asked, await signFor(world, '/v1/tts'));
    expect(copies.map(({ status }) => status)).to.deep.equal(copies.map(() => 200));
  });
});
