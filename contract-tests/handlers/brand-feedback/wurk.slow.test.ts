import { expect } from 'chai';
import { setTimeout as pause } from 'node:timers/promises';
import { MARK_REQUEST } from '../../../handlers/brand-feedback/opinion-mark.js';
import type { People } from '../../../handlers/brand-feedback/people.js';
import { createWurkPeople, type WurkOptions } from '../../../handlers/brand-feedback/wurk.js';
import type { Payer } from '../../../src/shop/payer.js';
import { createPayer } from '../../../src/wallet/single-payer.js';
import { failureOf } from '../../support/failure.js';
import { aQuestion, createMemoryBook, type MemoryReplyStore } from '../../support/memory-reply-store.js';
import { allInOneSandbox, buyer, sandbox, usdcOf } from '../../support/one-sandbox.js';
import { startFakeWurk, type FakeWurk } from '../../support/wurk.js';

const NEVER = new AbortController().signal;
const REWARD = 25_000n;

describe('people of WURK', () => {
  allInOneSandbox();
  let fake: FakeWurk;
  let replyStore: MemoryReplyStore;
  let payer: Payer;
  let earlier: bigint;
  const all: People[] = [];

  const payerWith = (feePayer?: string): Promise<Payer> => {
    const { network } = sandbox.info;
    return createPayer({ secretKey: buyer.secretKey, network, rpcUrl: sandbox.rpc.url, feePayer });
  };
  function create(change: Partial<WurkOptions> = {}): People {
    const people = createWurkPeople({
      ...{ replyStore, payer, url: fake.url, reward: '0.025', maxPrice: '0.05', budget: '0.40' },
      ...{ pollMs: 20, leastMs: 0, requestMs: 10_000 },
      ...change,
    });
    all.push(people);
    return people;
  }
  const earned = async (): Promise<bigint> => (await usdcOf(sandbox.info.payTo)) - earlier;
  const answering = (...texts: string[]): void => {
    fake.onJob = ({ jobId }) => fake.submissions.set(jobId, texts);
  };

  beforeEach(async () => {
    const { network, usdcMint: asset, payTo, feePayer } = sandbox.info;
    fake = await startFakeWurk({ facilitatorUrl: sandbox.facilitator.url, network, asset, payTo, feePayer });
    replyStore = createMemoryBook();
    payer = await payerWith();
    earlier = await usdcOf(payTo);
  });
  afterEach(async () => {
    await Promise.all(all.splice(0).map(people => people.close()));
    await fake.close();
  });

  it('are paid once, by the documented challenge, and their replies are read for free', async () => {
    answering('+ I like it.', '- Too small.', 'It is a cup.');
    const question = replyStore.put(aQuestion({ wanted: 3 }));
    const people = create();
    await people.ready(3, question);
    await people.ask(question, NEVER);
    const replies = await replyStore.replies(question.id);
    expect(replies.map(({ text, sentiment }) => [text, sentiment])).to.deep.equal([
      ['I like it.', 'positive'],
      ['Too small.', 'negative'],
      ['It is a cup.', 'unknown'],
    ]);
    expect(await earned()).to.equal(3n * REWARD);
    expect([fake.paid, fake.jobs.length, fake.jobs[0]?.winners]).to.deep.equal([1, 1, 3]);
    expect(fake.jobs[0]?.description).to.contain(
      `About Harbour Coffee: What do you think of the new cup? ${MARK_REQUEST}`,
    );
    expect(await replyStore.intent(question.id)).to.contain('"secret":"secret-of-1"');
    expect(await people.health()).to.deep.equal({ status: 'ok' });
  });

  it("are paid although the challenge names no fee payer, if the operator's settings name one", async () => {
    fake.namesFeePayer = false;
    answering('+ Good.');
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    const refused = create();
    expect((await failureOf(refused.ready(1))).kind).to.equal('unavailable');
    expect((await refused.health()).detail).to.match(
      /names no fee payer \(extra\.feePayer\), and none is set/,
    );
    await create({ payer: await payerWith(sandbox.info.feePayer) }).ask(question, NEVER);
    expect(await earned()).to.equal(REWARD);
  });

  describe('are not paid', () => {
    const cases: [string, () => void, Partial<WurkOptions>][] = [
      ['more for a reply than the operator allows', () => (fake.amount = '150001'), {}],
      ['more for an order than its budget', () => {}, { budget: '0.07' }],
      [
        'on another network',
        () => (fake.option = { network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' }),
        {},
      ],
      [
        'in another token',
        () => (fake.option = { asset: 'So11111111111111111111111111111111111111112' }),
        {},
      ],
      [
        "if the operator's wallet would have to pay the network fee",
        () => (fake.option = { extra: { feePayer: payer.address } }),
        {},
      ],
    ];
    for (const [what, arrange, options] of cases)
      it(`${what}: no call is sold, and nothing is bought for an order that is already sold`, async () => {
        arrange();
        const people = create(options);
        const question = replyStore.put(aQuestion({ wanted: 3, deadline: Date.now() + 2_000 }));
        expect((await failureOf(people.ready(3))).kind).to.equal('unavailable');
        expect(await failureOf(people.ask(question, NEVER)))
          .to.have.property('kind')
          .that.is.oneOf(['failed', 'unavailable']);
        expect([fake.paid, await earned()]).to.deep.equal([0, 0n]);
      });

    it('for replacing replies that do not count, beyond the budget', async () => {
      answering('asdf asdf', 'hhhhhh');
      const question = replyStore.put(aQuestion({ wanted: 2, deadline: Date.now() + 4_000 }));
      await create({ budget: '0.11' }).ask(question, NEVER);
      expect([fake.jobs.length, await earned()]).to.deep.equal([2, 4n * REWARD]);
      expect(await replyStore.replies(question.id)).to.deep.equal([]);
      expect(await replyStore.held(question.id)).to.have.length(4);
    });
  });

  describe('are paid once although', () => {
    /** A server that dies at a given moment, and another one that takes over. */
    async function takenOver(die: (crash: () => never) => void, secondOptions: Partial<WurkOptions> = {}) {
      answering('+ Good.', '- Bad.');
      const question = replyStore.put(aQuestion({ wanted: 2, deadline: Date.now() + 20_000 }));
      const ended = new AbortController();
      die(() => {
        const error = new Error('crash');
        ended.abort(error);
        throw error;
      });
      const first = create();
      await first.ask(question, ended.signal).catch(() => {});
      expect(ended.signal.aborted, 'it crashed').to.equal(true);
      await first.close();
      replyStore.onIntent = undefined;
      await create(secondOptions).ask(question, NEVER);
      expect(await replyStore.replies(question.id)).to.have.length(2);
      expect([fake.jobs.length, await earned()]).to.deep.equal([1, 2n * REWARD]);
    }

    it('the server dies after signing a payment, before storing it: the payment never left', () =>
      takenOver(crash => {
        const save = replyStore.saveIntent.bind(replyStore);
        replyStore.saveIntent = async () => {
          replyStore.saveIntent = save;
          await Promise.resolve();
          crash();
        };
      }));

    it('the server dies after the payment is stored, before it is sent', () =>
      takenOver(crash => {
        replyStore.onIntent = () => crash();
      }));

    it('the server dies after the payment was settled, before the job is stored', () =>
      takenOver(crash => {
        let written = '';
        const save = replyStore.saveIntent.bind(replyStore);
        replyStore.saveIntent = async (id, intent) => {
          if (!intent.includes('"jobId"')) return save(id, (written = intent));
          replyStore.saveIntent = save;
          await save(id, written);
          crash();
        };
      }));

    it('the server dies when the job is stored', () =>
      takenOver(crash => {
        replyStore.onIntent = intent => {
          if (intent.includes('"jobId"')) crash();
        };
      }));

    for (const cut of ['before', 'after'] as const)
      it(`the connection is lost ${cut} the payment is settled`, async () => {
        answering('+ Good.');
        fake.cut = cut;
        const question = replyStore.put(aQuestion({ wanted: 1, deadline: Date.now() + 20_000 }));
        await create().ask(question, NEVER);
        expect([fake.paid, fake.jobs.length, await earned()]).to.deep.equal([2, 1, REWARD]);
      });

    it('the marketplace forgets its payment: the operator sees where the money is, and nothing more is paid', async () => {
      answering('+ Good.');
      fake.cut = 'after';
      fake.remembers = false;
      const question = replyStore.put(aQuestion({ wanted: 1, deadline: Date.now() + 4_000 }));
      const people = create();
      await people.ask(question, NEVER);
      const { status, detail } = await people.health();
      expect(status).to.equal('degraded');
      expect(detail).to.match(
        /^WURK was paid 0\.025 USDC for order \w{16} \(transfer \w{80,}\) and returned no job: recover the job/,
      );
      const second = replyStore.put({ ...question, attempt: 2, deadline: Date.now() + 2_000 });
      await people.ask(second, NEVER);
      expect([fake.jobs.length, await earned()]).to.deep.equal([1, REWARD]);
    });

    it('a payment is refused: another one is signed only when the chain shows that the first is dead', async () => {
      answering('+ Good.');
      let dead = false;
      const fates = {
        ...payer,
        fate: async () => (dead ? { kind: 'dead' as const } : { kind: 'open' as const, why: '' }),
      };
      const question = replyStore.put(aQuestion({ wanted: 1, deadline: Date.now() + 30_000 }));
      // The marketplace now wants something other than what it offered, so it refuses the signed payment.
      let asked = 0;
      const option = fake.option;
      Object.defineProperty(fake, 'option', {
        get: () =>
          fake.jobs.length === 0 && asked++ % 2 === 1 && !dead ? { resource: 'http://other/' } : option,
      });
      const done = create({ payer: fates }).ask(question, NEVER);
      while (fake.paid < 3) await pause(10);
      const kept = JSON.parse((await replyStore.intent(question.id)) ?? '') as { tasks: object[] };
      expect(kept.tasks, 'the same payment is sent again').to.have.length(1);
      dead = true;
      await done;
      expect([fake.jobs.length, await earned()]).to.deep.equal([1, REWARD]);
    });
  });
});
