import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  createBuyer,
  PurchaseFault,
  type BuyerOptions,
  type ShopBuyer,
} from '../../src/wallet/shop-buyer.js';
import { repeated } from '../support/extent.js';
import { pause } from '../support/faults.js';
import { harmfulProxy, type Harm, type HarmfulProxy } from '../support/harmful-proxy.js';
import { SeededRandom } from '../support/seeded-random.js';
import { priceOf } from '../support/sold.js';
import { openWorld, post, TEXT, type World } from '../support/world.js';

const PRICE = priceOf('summarize');
const ATTEMPT_MS = 2_000;
const PATH = '/v1/summarize';
/** How many calls go through a proxy that disrupts them, and how many of them run concurrently. */
const CALLS = repeated(10_000, 40);
const AT_ONCE = 8;
/** A long limit, so that a busy machine does not look like a slow shop. */
const PATIENT_MS = 10_000;
const HARMS: [number, Harm][] = [
  [70, 'none'],
  [8, 'cut before'],
  [8, 'cut after'],
  [6, 'repeat'],
  [1, 'late'],
  [7, '503'],
];

describe('the buyer library', function () {
  this.timeout(120_000);
  let world: World;
  let proxy: HarmfulProxy;
  let folder: string;
  let tests = 0;
  let texts = 0;
  const buyers: ShopBuyer[] = [];
  const servers: Server[] = [];
  before(async () => {
    world = await openWorld();
    proxy = await harmfulProxy(world.url, ATTEMPT_MS + 1_000);
  });
  after(async () => {
    proxy.close();
    await world.close();
  });
  beforeEach(() => {
    folder = join(world.stateDir, `buyer-${(tests += 1)}`);
    proxy.harm(() => 'none');
    proxy.payments.length = 0;
    proxy.done.clear();
  });
  afterEach(() => {
    for (const buyer of buyers.splice(0)) buyer.close();
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });

  async function open(more: Partial<BuyerOptions> = {}): Promise<ShopBuyer> {
    const own = { keypair: world.buyer, rpcUrl: world.rpc.url, folder, attemptMs: ATTEMPT_MS };
    const buyer = await createBuyer({ ...own, ...more });
    buyers.push(buyer);
    return buyer;
  }
  const another = (): RequestInit => ({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text: `${TEXT} Edition ${(texts += 1)}.` }),
  });
  const faultOf = (answer: Promise<Response>): Promise<unknown> =>
    answer.then(
      () => undefined,
      (error: unknown) => error,
    );
  const sold = async (answer: Response): Promise<void> => {
    expect(answer.status).to.equal(200);
    expect(await answer.json()).to.have.property('summary');
  };
  /** The number of calls that the shop sells while `work` runs. */
  const salesDuring = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await world.earned();
    await work();
    return Number((await world.earned()) - before) / Number(PRICE);
  };

  it('pays within its limits, gives each purchase an id, and keeps a statement', async () => {
    const buyer = await open({ budget: '0.02' });
    const sales = await salesDuring(async () => sold(await buyer.fetch(proxy.url + PATH, another())));
    expect(sales).to.equal(1);
    const { lines, leftToday, withoutAnswer, payer } = buyer.statement();
    expect(lines.map(({ event }) => event)).to.deep.equal(['signed', 'answered']);
    expect([leftToday, withoutAnswer, payer]).to.deep.equal(['0.01', [], buyer.address]);
    const payment = JSON.parse(Buffer.from(proxy.payments[0] ?? '', 'base64').toString()) as {
      extensions: Record<string, { info: { id: string } }>;
    };
    expect(payment.extensions['payment-identifier']?.info.id).to.match(/^buy-/);
    const free = await buyer.fetch(`${proxy.url}/tts/v1/voices`);
    expect(free.status).to.equal(200);
  });

  it('pays nothing above a limit, and its error says why', async () => {
    const dear = await open({ maxPrice: '0.009999' });
    const fault = await faultOf(dear.fetch(proxy.url + PATH, another()));
    expect(fault).to.be.instanceOf(PurchaseFault).and.include({ kind: 'unpaid' });
    expect(String(fault)).to.match(/more than your limit of 0\.009999 USDC.*Nothing was paid/);
    const poor = await open({ budget: '0.005' });
    expect(String(await faultOf(poor.fetch(proxy.url + PATH, another())))).to.match(/budget is left/);
    expect(String(await faultOf(poor.fetch('http://shop.example/v1', another())))).to.match(/no TLS/);
    expect(proxy.payments).to.deep.equal([]);
  });

  it('writes the payment to disk before sending it', async () => {
    const kept: string[] = [];
    proxy.harm(({ payment }) => {
      if (payment !== undefined) kept.push(readFileSync(join(folder, 'wallet.json'), 'utf8'));
      return 'none';
    });
    await sold(await (await open()).fetch(proxy.url + PATH, another()));
    expect(kept).to.have.lengthOf(1);
    const { pending } = JSON.parse(kept[0] ?? '') as { pending: { payment: unknown }[] };
    const sent = JSON.parse(Buffer.from(proxy.payments[0] ?? '', 'base64').toString()) as unknown;
    expect(pending.map(({ payment }) => payment)).to.deep.equal([sent]);
  });

  for (const harm of ['503', 'cut before', 'cut after', 'late', 'repeat'] as const)
    it(`sends the same payment again until it is answered: ${harm}`, async () => {
      let left = harm === 'late' ? 1 : 2;
      proxy.harm(({ payment }) => (payment !== undefined && left-- > 0 ? harm : 'none'));
      const buyer = await open();
      const sales = await salesDuring(async () => sold(await buyer.fetch(proxy.url + PATH, another())));
      expect(sales).to.equal(1);
      expect(proxy.payments.length).to.be.greaterThan(harm === 'repeat' ? 0 : 1);
      expect(new Set(proxy.payments).size).to.equal(1);
    });

  it('continues with the payment of a call that ended without an answer, even in another process', async () => {
    proxy.harm(({ payment }) => (payment === undefined ? 'none' : 'cut after'));
    const request = another();
    const first = await open({ timeoutMs: 6_000 });
    const sales = await salesDuring(async () => {
      const fault = await faultOf(first.fetch(proxy.url + PATH, request));
      expect(fault).to.be.instanceOf(PurchaseFault).and.include({ kind: 'kept' });
      expect(first.statement().withoutAnswer).to.have.lengthOf(1);
      first.close();
      buyers.length = 0;
      proxy.harm(() => 'none');
      await sold(await (await open()).fetch(proxy.url + PATH, request));
    });
    expect(sales).to.equal(1);
    expect(new Set(proxy.payments).size).to.equal(1);
  });

  describe('at a shop that has been paid and is still working', () => {
    let asked: string[];
    let location: string;
    let shopUrl: string;
    beforeEach(async () => {
      asked = [];
      const { body } = await post(world.url + PATH, { text: TEXT });
      const shop: RequestListener = ({ method, url, headers }, response) => {
        asked.push(`${method} ${url}${headers['payment-signature'] ? ' paid' : ''}`);
        const transaction = { success: true, transaction: 'signature', network: 'solana' };
        const receipt = Buffer.from(JSON.stringify(transaction)).toString('base64');
        if (method === 'GET')
          return void response.writeHead(200, { 'payment-response': receipt }).end('done');
        if (!headers['payment-signature']) return void response.writeHead(402).end(body);
        response.writeHead(503, { 'payment-response': receipt, location, 'retry-after': '60' }).end();
      };
      const server = createServer(shop).listen(0, '127.0.0.1');
      servers.push(server);
      await once(server, 'listening');
      shopUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });

    it('fetches the answer from its Location, without the payment', async () => {
      location = '/answers/key';
      const buyer = await open({ timeoutMs: 6_000 });
      const request = { method: 'POST', body: 'order' };
      expect(await faultOf(buyer.fetch(`${shopUrl}/order`, request))).to.include({ kind: 'kept' });
      const answer = await buyer.fetch(`${shopUrl}/order`, request);
      expect(await answer.text()).to.equal('done');
      expect(asked).to.deep.equal(['POST /order', 'POST /order paid', 'GET /answers/key']);
      expect(buyer.statement().withoutAnswer).to.deep.equal([]);
    });

    it('does not fetch the answer from another origin', async () => {
      const seen: string[] = [];
      const other = createServer(({ url }, response) => {
        seen.push(String(url));
        response.end();
      }).listen(0, '127.0.0.1');
      servers.push(other);
      await once(other, 'listening');
      location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/stolen`;
      const buyer = await open({ timeoutMs: 6_000 });
      const request = { method: 'POST', body: 'order' };
      for (let times = 0; times < 2; times++)
        expect(await faultOf(buyer.fetch(`${shopUrl}/order`, request))).to.include({ kind: 'kept' });
      expect(seen).to.deep.equal([]);
    });
  });

  it('gives models the tools of a shop, and pays for them', async () => {
    const buyer = await open();
    const tools = await buyer.tools(world.url);
    const summarize = tools.find(({ name }) => name === 'summarize');
    expect(summarize?.inputSchema).to.have.property('type', 'object');
    const sales = await salesDuring(async () => {
      const text = await summarize?.call({ text: `${TEXT} For a model.` });
      expect(text)
        .to.match(/"summary"/)
        .and.match(/Paid 0\.01 USDC \(transaction \w+\)\. 0\.99 of 1\.00/);
    });
    expect(sales).to.equal(1);
  });

  it(`${CALLS} calls through a proxy that cuts, delays and repeats cost exactly the price of each answer`, async function () {
    this.timeout(CALLS * 400 + 300_000);
    const random = new SeededRandom(39);
    const slow = await harmfulProxy(world.url, PATIENT_MS + 1_000);
    slow.harm(({ number }) => random.pick(HARMS, number));
    const buyer = await open({ budget: String(CALLS), attemptMs: PATIENT_MS });
    let answers = 0;
    const started = performance.now();
    const one = async (): Promise<void> => {
      const request = another();
      // A payment whose blockhash expired is replaced when the chain has proven that it never landed.
      for (const end = Date.now() + 240_000; Date.now() < end;) {
        const answer = await buyer.fetch(slow.url + PATH, request).catch((error: unknown) => error);
        if (answer instanceof Response && answer.status === 200) {
          await sold(answer);
          return void (answers += 1);
        }
        // A call that was unpaid, or whose payment is kept, is repeated. A closed payment has cost money, so the test fails.
        if (answer instanceof PurchaseFault && answer.kind === 'closed') throw answer;
        if (!(answer instanceof Response) && !(answer instanceof PurchaseFault)) throw answer;
        if (answer instanceof PurchaseFault) await pause(1_000);
      }
    };
    let begun = 0;
    const sales = await salesDuring(async () => {
      const worker = async (): Promise<void> => {
        while (begun++ < CALLS) await one();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
    });
    expect(answers).to.equal(CALLS);
    expect(sales).to.equal(CALLS);
    const { leftToday, budget, withoutAnswer } = buyer.statement();
    expect(withoutAnswer).to.deep.equal([]);
    expect((Number(budget) - Number(leftToday)).toFixed(2)).to.equal((CALLS / 100).toFixed(2));
    const seconds = Math.round((performance.now() - started) / 1000);
    const harmed = [...slow.done].map(([harm, times]) => `${harm} ${times}`).join(', ');
    process.stdout.write(`      ${slow.payments.length} paid requests in ${seconds} s; ${harmed}\n`);
    slow.close();
  });
});
