import { expect } from 'chai';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { Connection, PublicKey } from '@solana/web3.js';
import {
  openLedgerReader,
  openLedger,
  type LedgerReports,
  type LedgerReader,
} from '../../src/ledger/store.js';
import { OrderWorker, type OrderWork } from '../../src/sale/order-worker.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js';
import { rows } from '../support/extent.js';
import { paymentIn, sqlitePlace, forServer } from '../support/ledger-places.js';
import { countingProxy, type CountingProxy } from '../support/proxy.js';
import { BRAND_PATH, BRAND_PRICE, PANEL_TOKEN, Respondent, signBrand } from '../support/respondent.js';
import { refusedSettlement } from '../support/refused-settlement.js';
import { serve, type Served } from '../support/server-process.js';
import { post, receiptOf, type Answer } from '../support/world.js';

const ANSWERED_MS = 40_000;

type Scene = {
  id: string;
  kill: () => void;
  facilitator: CountingProxy;
  rpc: CountingProxy;
  people: Respondent[];
  /** Waits until a condition on the ledger holds. */
  until: (condition: (reader: LedgerReader & LedgerReports) => Promise<boolean>) => Promise<void>;
};
/** Kills the server at one moment of the sale, while the paid call is in progress. */
type Moment = (scene: Scene) => Promise<void> | void;

const killAt =
  (path: string, when: 'before' | 'after' | 'answered'): Moment =>
  ({ facilitator, kill }) =>
    facilitator.intervene(async ask => {
      if (ask.path !== path) {
        const answer = await ask.forward();
        return ask.respond(answer.status, answer.body);
      }
      if (when === 'before') {
        kill();
        return ask.drop();
      }
      const { status, body } = await ask.forward();
      if (when === 'answered') ask.respond(status, body);
      kill();
      if (when === 'after') ask.drop();
    });

/** Kills the server during its own search for the transfer, or right after it. */
const killAtLook =
  (answered: boolean): Moment =>
  ({ rpc, kill }) =>
    rpc.intervene(async ask => {
      const look = ask.method === 'getTransaction';
      if (look && !answered) {
        kill();
        return ask.drop();
      }
      const { status, body } = await ask.forward();
      ask.respond(status, body);
      if (look) kill();
    });

const stateIs =
  (id: string, state: string) =>
  async (reader: LedgerReader & LedgerReports): Promise<boolean> =>
    (await reader.find(id))?.state === state;

const answerBy = async ({ people, id }: Scene, count: number): Promise<void> => {
  for (const [index, person] of people.slice(0, count).entries())
    await person.answer(id, `I am number ${index + 1}.`, 'neutral');
};

/**
 * A short run tests only the first of these moments, because the fault schedules (sale/faults.slow.test.ts) interrupt sales at
 * every step.
 */
const MOMENTS: Record<string, Moment> = {
  'when the money moved and nobody was told': killAt('/settle', 'after'),
  'while the payment is verified': killAt('/verify', 'before'),
  'when it was verified': killAt('/verify', 'answered'),
  'before the facilitator gets the settle request': killAt('/settle', 'before'),
  'when the settlement was reported': killAt('/settle', 'answered'),
  'while the transfer is being searched for': killAtLook(false),
  'when the transfer was found, before it is owed': killAtLook(true),
  'when it is owed': async ({ until, id, kill }) => {
    await until(stateIs(id, 'owed'));
    kill();
  },
  'while people answer': async scene => {
    await answerBy(scene, 1);
    scene.kill();
  },
  'just before delivery': async scene => {
    await answerBy(scene, 2);
    scene.kill();
  },
  'after delivery': async scene => {
    await answerBy(scene, 2);
    await scene.until(stateIs(scene.id, 'delivered'));
    scene.kill();
  },
};

describe('brandFeedback on a server that is killed', function () {
  this.timeout(90_000);
  let folder: string;
  let sandbox: Sandbox;
  let rpc: CountingProxy;
  let facilitator: CountingProxy;
  let connection: Connection;
  let buyer: Uint8Array;
  let served: Served;
  let reader: (LedgerReader & LedgerReports) | undefined;
  const people = [new Respondent(''), new Respondent('')];
  let sales = 0;

  async function serveAgain(): Promise<void> {
    served = await serve({
      STATE_DIR: join(folder, 'server'),
      PORT: '0',
      SOLANA_RPC_URL: rpc.url,
      FACILITATOR_URL: facilitator.url,
      PAY_TO: sandbox.info.payTo,
      PEOPLE: 'panel',
      PANEL_TOKEN,
      HOLD_SECONDS: '1',
    });
    people.forEach(person => person.moveTo(served.url));
  }

  async function ended(): Promise<void> {
    const { child } = served;
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coinslot-brand-'));
    const stateDir = join(folder, 'chain');
    sandbox = await startSandbox({ stateDir, rpcPort: 0, facilitatorPort: 0 });
    rpc = await countingProxy(sandbox.rpc.url);
    facilitator = await countingProxy(sandbox.facilitator.url);
    connection = new Connection(sandbox.rpc.url, 'confirmed');
    buyer = Uint8Array.from(JSON.parse(await readFile(join(stateDir, 'buyer.json'), 'utf8')) as number[]);
    await serveAgain();
    // The respondents sign in once: their cookies must survive every crash.
    for (const person of people) expect(await person.signIn()).to.equal(303);
    reader = await openLedgerReader({ url: `file:${join(folder, 'server', 'ledger.db')}` });
  });
  after(async () => {
    await reader?.close();
    served?.child.kill('SIGKILL');
    await rpc?.close();
    await facilitator?.close();
    await sandbox?.close();
    await rm(folder, { recursive: true, force: true });
  });

  async function earned(): Promise<bigint> {
    const { usdcMint, payTo } = sandbox.info;
    const till = getAssociatedTokenAddressSync(new PublicKey(usdcMint), new PublicKey(payTo), true);
    return BigInt((await connection.getTokenAccountBalance(till)).value.amount);
  }

  async function until(condition: (reader: LedgerReader & LedgerReports) => Promise<boolean>): Promise<void> {
    for (const end = Date.now() + ANSWERED_MS; Date.now() < end; await pause(20))
      if (reader && (await condition(reader))) return;
    throw new Error('the moment never came');
  }

  /** From now on, the buyer's payments are verified before they are settled, like those of a buyer who has never paid. */
  async function loseStanding(): Promise<void> {
    facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/settle') return respond(200, refusedSettlement('insufficient_funds'));
      const { status, body } = await forward();
      respond(status, body);
    });
    const { headers } = await signBrand(served.url, buyer);
    const body = { brand: 'Harbour Coffee', question: 'Is this one refused?', n: 2 };
    expect((await post(served.url + BRAND_PATH, body, headers)).status).to.equal(402);
    facilitator.intervene(undefined);
  }

  /** Sends the same payment again, as an agent would, while people answer the question. */
  async function collect(id: string, send: () => Promise<Answer>): Promise<Answer> {
    for (const end = Date.now() + ANSWERED_MS; ; await pause(100)) {
      const answer = await send();
      if (answer.status !== 503 || Date.now() > end) return answer;
      // Nobody replies before the question is open: the panel slows down people who try too often.
      if (!(await reader?.order(id))) continue;
      for (const [index, person] of people.entries())
        await person.reply(id, `I am number ${index + 1}.`, 'neutral');
    }
  }

  for (const [name, moment] of rows(Object.entries(MOMENTS))) {
    it(`promises 5 and 10: a server killed ${name} makes one transfer and one order, and the answer arrives`, async () => {
      if (name.includes('verified')) await loseStanding();
      const before = await earned();
      const { id, headers } = await signBrand(served.url, buyer);
      const body = { brand: 'Harbour Coffee', question: `What of cup number ${++sales}?`, n: 2 };
      const send = (wait: number): Promise<Answer> =>
        post(served.url + BRAND_PATH, body, { ...headers, Prefer: `wait=${wait}` });
      const kill = (): void => void served.child.kill('SIGKILL');
      const scene: Scene = { id, kill, facilitator, rpc, people, until };
      // The kill is prepared before the call is sent.
      const killed = moment(scene);
      const cut = send(30).catch(() => undefined);
      await killed;
      await ended();
      await cut;
      facilitator.intervene(undefined);
      rpc.intervene(undefined);
      await serveAgain();
      const answer = await collect(id, () => send(1));
      expect(answer.status, answer.body.toString()).to.equal(200);
      expect(answer.json()['responses']).to.deep.equal(
        [1, 2].map(index => ({ text: `I am number ${index}.`, sentiment: 'neutral' })),
      );
      expect(answer.json()).not.to.have.property('mock');
      expect(receiptOf(answer)).to.include({ success: true });
      expect(await earned()).to.equal(before + BRAND_PRICE);
      expect(await reader?.order(id)).to.include({ attempts: 1 });
      expect((await send(1)).body.equals(answer.body), 'and again, byte for byte').to.equal(true);
    });
  }

  it('after all these kills, every paid call is delivered and none is owed', async () => {
    const rows = (await reader?.list({ operation: 'brandFeedback' })) ?? [];
    const paid = rows.filter(({ state }) => state !== 'released');
    expect(paid).to.have.lengthOf(sales);
    expect(paid.filter(({ state }) => state !== 'delivered')).to.deep.equal([]);
    expect(await earned()).to.equal(BigInt(sales) * BRAND_PRICE);
  });
});

describe('the worker of paid orders', () => {
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const terms = { payTo: 'Receiver', network: 'solana:test' };
  const answer = { status: 200 as const, headers: {}, body: Buffer.from('{}') };
  const attemptMs = 60_000;

  it('an order that was delivered before a crash is no longer open after it', async () => {
    const place = await sqlitePlace();
    const ledger = await openLedger({ ...forServer(place.url), ...terms });
    const id = await paymentIn(ledger, 'owed');
    await ledger.openOrder({ payment: id, request: '{}', wanted: 1, deadline: Date.now() + attemptMs });
    const row = await ledger.adopt(id, attemptMs);
    await ledger.saveAnswer(id, row?.claim ?? 0, answer);
    const how = { settlement: 'sig', answerExpiresAt: Date.now() + attemptMs };
    expect(await ledger.deliver(id, row?.claim ?? 0, how)).to.equal(true);
    const work: OrderWork = { wanted: () => 1, work: async () => ({ kind: 'answer', answer }) };
    const orders = new OrderWorker({ ledger, work, log, attemptMs });
    orders.start();
    for (const end = Date.now() + 5_000; (await ledger.openOrders()).length && Date.now() < end;)
      await pause(20);
    expect(await ledger.openOrders()).to.deep.equal([]);
    await orders.stop();
    await ledger.close();
    await place.remove();
  });

  it('many failed orders that stay owed do not hide a new one', async () => {
    const place = await sqlitePlace();
    const ledger = await openLedger({ ...forServer(place.url), ...terms });
    const failed = await Promise.all(Array.from({ length: 300 }, () => paymentIn(ledger, 'owed')));
    await Promise.all(
      failed.map(async payment => {
        await ledger.openOrder({ payment, request: '{}', wanted: 1, deadline: Date.now() });
        await ledger.finishOrder(payment);
      }),
    );
    await pause(5);
    const fresh = await paymentIn(ledger, 'owed');
    const worked: string[] = [];
    const work: OrderWork = {
      wanted: () => 1,
      work: async ({ id }) => {
        worked.push(id);
        return { kind: 'answer', answer };
      },
    };
    const orders = new OrderWorker({ ledger, work, log, attemptMs });
    orders.start();
    for (const end = Date.now() + 8_000; worked.length === 0 && Date.now() < end;) await pause(50);
    expect(worked).to.deep.equal([fresh]);
    await orders.stop();
    expect(await ledger.find(fresh)).to.include({ state: 'delivered' });
    await ledger.close();
    await place.remove();
  });

  it('never says that nothing was charged for an order whose backend failed', async () => {
    const place = await sqlitePlace();
    const ledger = await openLedger({ ...forServer(place.url), ...terms });
    const id = await paymentIn(ledger, 'owed');
    const work: OrderWork = { wanted: () => 1, work: async () => ({ kind: 'failed', error: 'It broke.' }) };
    const orders = new OrderWorker({ ledger, work, log, attemptMs });
    orders.start();
    const why = await orders.wait(id, 8_000, new AbortController().signal);
    expect(why?.error).to.match(/^It broke\. The order stays owed: send the same payment again/);
    await orders.stop();
    await ledger.close();
    await place.remove();
  });
});
