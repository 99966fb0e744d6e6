import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { MARK_REQUEST } from '../../../handlers/brand-feedback/opinion-mark.js';
import type { People } from '../../../handlers/brand-feedback/people.js';
import { createRapidataPeople, type RapidataOptions } from '../../../handlers/brand-feedback/rapidata.js';
import { type FakeRapidata, type Labeler, SKIPPED, startFakeRapidata } from '../../support/rapidata.js';
import {
  aQuestion,
  aReply,
  createMemoryBook,
  type MemoryReplyStore,
} from '../../support/memory-reply-store.js';
import { failureOf } from '../../support/failure.js';

const NEVER = new AbortController().signal;

const say = (count: number, prefix = 'worker'): Labeler[] =>
  Array.from({ length: count }, (_, n) => ({
    answer: `I like it, number ${n}.`,
    id: `${prefix}-${n}`,
    age: '30-39',
  }));

describe('people of the marketplace', () => {
  let fake: FakeRapidata;
  let replyStore: MemoryReplyStore;
  let people: People;
  const all: People[] = [];

  function create(change: Partial<RapidataOptions> = {}): People {
    const made = createRapidataPeople({
      replyStore,
      apiUrl: fake.url,
      authUrl: fake.url,
      clientId: 'id',
      clientSecret: 'secret',
      budget: '0.40',
      pollMs: 15,
      retryMs: 5,
      settleMs: 60,
      graceMs: 200,
      quoteMs: 1_000,
      ...change,
    });
    all.push(made);
    return made;
  }

  const posts = () => fake.calls.filter(call => call === 'POST /job').length;
  const finishWith = (labelers: Labeler[]) => {
    fake.onJob = job => {
      job.labelers = labelers.slice(0, job.votes);
      job.state = 'Completed';
    };
  };

  beforeEach(async () => {
    fake = await startFakeRapidata();
    replyStore = createMemoryBook();
    people = create();
  });

  afterEach(async () => {
    await Promise.all(all.splice(0).map(made => made.close()));
    await fake.close();
  });

  it("are asked once, in the buyer's own words, and a reply's opinion is the word that it begins with", async () => {
    finishWith([
      { answer: '+ I love it!', id: 'a' },
      { answer: '- Terrible, I hate it.', id: 'b' },
      { answer: 'It is a cup.', id: 'c' },
    ]);
    const question = replyStore.put(aQuestion({ wanted: 3 }));
    await people.ask(question, NEVER);
    const replies = await replyStore.replies(question.id);
    expect(replies.map(({ text, sentiment }) => [text, sentiment])).to.deep.equal([
      ['I love it!', 'positive'],
      ['Terrible, I hate it.', 'negative'],
      ['It is a cup.', 'unknown'],
    ]);
    expect(replies.every(({ isSample }) => !isSample)).to.equal(true);
    const [definition] = fake.definitions.values();
    expect(definition).to.include({
      question: `Harbour Coffee: What do you think of the new cup? ${MARK_REQUEST}`,
      votes: 3,
    });
    expect(definition?.name).to.equal(`coinslot-${question.id}-1-1`);
    expect(posts()).to.equal(1);
  });

  it('deliver partial results while the job is running', async () => {
    const question = replyStore.put(aQuestion({ wanted: 2 }));
    const asked = people.ask(question, NEVER);
    while (fake.jobs.length === 0) await pause(5);
    fake.jobs[0]!.labelers = say(1);
    while ((await replyStore.replies(question.id)).length === 0) await pause(5);
    fake.jobs[0]!.labelers = say(2);
    await asked;
    expect(fake.jobs[0]!.state).to.equal('Paused');
  });

  it('are stopped at the deadline, and the replies received until then count', async () => {
    fake.onJob = job => (job.labelers = say(1));
    const question = replyStore.put(aQuestion({ wanted: 5, deadline: Date.now() + 900 }));
    await people.ask(question, NEVER);
    expect(fake.jobs[0]!.state).to.equal('Paused');
    expect(await replyStore.replies(question.id)).to.have.length(1);
  });

  it('have their replies fetched even if these arrive just before the deadline', async () => {
    const question = replyStore.put(aQuestion({ wanted: 5, deadline: Date.now() + 900 }));
    // The job shows these replies only once it is paused, as if they had arrived between two reads.
    fake.before = (call, job) => {
      if (call === 'POST /job/{jobId}/pause' && job) job.labelers = say(4);
      return undefined;
    };
    await people.ask(question, NEVER);
    expect(await replyStore.replies(question.id)).to.have.length(4);
  });

  it('who are minors, say nothing or answer twice do not count, and others are asked instead', async () => {
    let round = 0;
    fake.onJob = job => {
      job.labelers =
        round++ === 0
          ? [
              { answer: 'Grown up.', id: 'a', age: '18-29' },
              { answer: 'Child.', id: 'b', age: '0-17' },
              { answer: ' ', id: 'c' },
              { answer: SKIPPED, id: 'd' },
              { answer: 'Grown up twice.', id: 'a' },
            ]
          : say(job.votes);
      job.state = 'Completed';
    };
    const question = replyStore.put(aQuestion({ wanted: 5 }));
    await people.ask(question, NEVER);
    const texts = (await replyStore.replies(question.id)).map(({ text }) => text);
    expect(texts).to.have.length(5);
    expect(texts[0]).to.equal('Grown up.');
    expect(texts).to.not.include('Child.');
    expect([...fake.definitions.values()].map(({ votes }) => votes)).to.deep.equal([5, 4]);
  });

  it('who type gibberish have their replies held for the operator, and others are asked instead', async () => {
    let round = 0;
    fake.onJob = job => {
      job.labelers = round++ === 0 ? [{ answer: '+ asdf asdf', id: 'a' }] : say(job.votes);
      job.state = 'Completed';
    };
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    await people.ask(question, NEVER);
    expect((await replyStore.held(question.id)).map(({ text }) => text)).to.deep.equal(['asdf asdf']);
    expect(await replyStore.replies(question.id)).to.have.length(1);
  });

  it('are asked in at most three rounds and never beyond the budget', async () => {
    finishWith([{ answer: 'Always me.', id: 'a' }]);
    const question = replyStore.put(aQuestion({ wanted: 4, deadline: Date.now() + 1_500 }));
    await people.ask(question, NEVER);
    expect(fake.jobs).to.have.length(3);
    fake.jobs.length = 0;
    const dear = replyStore.put(aQuestion({ wanted: 4, deadline: Date.now() + 1_000 }));
    await create({ budget: '0.10' }).ask(dear, NEVER);
    expect(fake.jobs.filter(({ name }) => name.includes(dear.id))).to.have.length(1);
  });

  describe('cost no more than the budget', () => {
    it('because the quote is compared with it before anything is published', async () => {
      fake.pricePerResponse = 0.2;
      const failure = await failureOf(people.ask(replyStore.put(aQuestion({ wanted: 3 })), NEVER));
      expect(failure.kind).to.equal('failed');
      expect(posts()).to.equal(0);
    });

    it('and are unavailable before the caller pays if they would cost more', async () => {
      await people.ready(20);
      const failure = await failureOf(people.ready(21));
      expect(failure.kind).to.equal('unavailable');
      expect(failure.message).to.match(/21 people costs more/);
      expect(posts()).to.equal(0);
    });

    it('even if the quote comes late, because the server waits for it', async () => {
      fake.unpriced = 3;
      finishWith(say(3));
      const question = replyStore.put(aQuestion({ wanted: 3 }));
      await people.ask(question, NEVER);
      expect(posts()).to.equal(1);
    });

    it('which must be a valid amount', () => {
      for (const budget of ['', '-1', '0.4 USD', '1e3', '0.1234567'])
        expect(() => create({ budget }), budget).to.throw(RangeError);
    });
  });

  it('are not ready when too many questions are open, the text is too long, or the marketplace is down', async () => {
    await people.ready(5, { brand: 'Acme', question: 'Good?' });
    expect((await failureOf(people.ready(5, { brand: 'Acme', question: 'x'.repeat(600) }))).kind).to.equal(
      'invalid',
    );
    const busy = create({ maxOpen: 1 });
    replyStore.put(aQuestion());
    expect((await failureOf(busy.ready(5))).kind).to.equal('unavailable');
    const cut = create({ apiUrl: 'http://127.0.0.1:9', authUrl: 'http://127.0.0.1:9' });
    const down = await failureOf(cut.ready(5));
    expect([down.kind, (down.retryAfterSeconds ?? 0) > 0]).to.deep.equal(['unavailable', true]);
    expect(await cut.health()).to.have.property('status', 'degraded');
    expect((await failureOf(create({ clientSecret: 'wrong' }).ready(5))).message).to.match(
      /the seller must fix this/,
    );
    expect(await people.health()).to.deep.equal({ status: 'ok' });
  });

  describe('are not paid twice', () => {
    /** Lets the first process crash at the given point, then a second one take over. */
    async function takeOver(question: ReturnType<typeof aQuestion>, crash: AbortController): Promise<void> {
      await people.ask(question, crash.signal).catch(() => {});
      expect(crash.signal.aborted, 'it crashed').to.equal(true);
      replyStore.onIntent = undefined;
      await people.close();
      fake.before = undefined;
      await create().ask(question, NEVER);
    }

    it('when the process dies after the job was created and before that was stored', async () => {
      finishWith(say(3));
      const crash = new AbortController();
      const question = replyStore.put(aQuestion({ wanted: 3 }));
      replyStore.onIntent = intent => {
        if (!intent.includes('"jobId"')) return;
        // The write is lost with the process.
        void replyStore.saveIntent(question.id, before);
        crash.abort(new Error('crash'));
        throw new Error('crash');
      };
      let before = '';
      const write = replyStore.saveIntent.bind(replyStore);
      replyStore.saveIntent = async (id, intent) => {
        if (!intent.includes('"jobId"')) before = intent;
        await write(id, intent);
      };
      await takeOver(question, crash);
      expect(before).to.contain('"publishedAt"');
      expect(fake.jobs).to.have.length(1);
      expect(await replyStore.replies(question.id)).to.have.length(3);
    });

    it('when the answer to the creation is lost', async () => {
      finishWith(say(3));
      let lost = 0;
      fake.loseAnswer = call => call === 'POST /job' && lost++ === 0;
      const question = replyStore.put(aQuestion({ wanted: 3 }));
      await people.ask(question, NEVER);
      expect(lost).to.equal(1);
      expect(fake.jobs).to.have.length(1);
    });

    it('when the created job takes a while to appear in the list', async () => {
      let lost = 0;
      fake.loseAnswer = call => call === 'POST /job' && lost++ === 0;
      fake.onJob = job => {
        job.labelers = say(3);
        job.state = 'Completed';
        job.listed = false;
        setTimeout(() => (job.listed = true), 150);
      };
      await create({ settleMs: 5_000 }).ask(replyStore.put(aQuestion({ wanted: 3 })), NEVER);
      expect(fake.jobs).to.have.length(1);
    });

    it('when the creation failed for good: they are asked again under the same name', async () => {
      finishWith(say(3));
      let failed = 0;
      fake.before = call => (call === 'POST /job' && failed++ === 0 ? { status: 500 } : undefined);
      const question = replyStore.put(aQuestion({ wanted: 3 }));
      await people.ask(question, NEVER);
      expect([posts(), fake.jobs.length]).to.deep.equal([2, 1]);
    });

    it('when two jobs with the same name exist after all: the newer one is stopped', async () => {
      let lost = 0;
      fake.loseAnswer = call => call === 'POST /job' && lost++ === 0;
      fake.onJob = job => {
        if (fake.jobs.length === 1)
          fake.jobs.push({ ...job, jobId: 'job_double', createdAt: '2030-01-01T00:00:00Z' });
      };
      const question = replyStore.put(aQuestion({ wanted: 1 }));
      const asked = people.ask(question, NEVER);
      while (fake.jobs[1]?.state !== 'Paused') await pause(5);
      fake.jobs[0]!.labelers = say(1);
      await asked;
      expect(posts()).to.equal(1);
    });

    it('when the question is taken over while the job runs', async () => {
      const crash = new AbortController();
      const question = replyStore.put(aQuestion({ wanted: 2 }));
      fake.onJob = job => {
        job.labelers = say(1);
        setTimeout(() => crash.abort(new Error('crash')), 60);
        setTimeout(() => (job.labelers = say(2)), 150);
      };
      await takeOver(question, crash);
      expect([posts(), fake.jobs.length]).to.deep.equal([1, 1]);
      expect(await replyStore.replies(question.id)).to.have.length(2);
    });

    it('for replies that an earlier attempt has already brought', async () => {
      const question = replyStore.put(aQuestion({ wanted: 3, deadline: Date.now() + 700 }));
      fake.onJob = job => (job.labelers = say(2));
      await people.ask(question, NEVER);
      expect(await replyStore.replies(question.id)).to.have.length(2);
      finishWith(say(3, 'others'));
      const second = replyStore.put({ ...question, attempt: 2, deadline: Date.now() + 60_000 });
      await people.ask(second, NEVER);
      expect(fake.jobs.map(({ name, votes }) => [name.endsWith('-2-1'), votes])).to.deep.equal([
        [false, 3],
        [true, 1],
      ]);
      expect(await replyStore.replies(question.id)).to.have.length(3);
    });

    it('when the replies have already arrived', async () => {
      const question = replyStore.put(aQuestion({ wanted: 1 }));
      await replyStore.add(question.id, aReply());
      await people.ask(question, NEVER);
      expect(fake.calls).to.deep.equal([]);
    });
  });

  describe('finish the question even if', () => {
    it('the token expires during the job', async () => {
      const question = replyStore.put(aQuestion({ wanted: 1 }));
      const asked = people.ask(question, NEVER);
      while (fake.jobs.length === 0) await pause(5);
      fake.expireTokens();
      fake.jobs[0]!.labelers = say(1);
      await asked;
      expect(fake.tokens).to.equal(2);
    });

    it('the marketplace asks us to slow down, even when we publish', async () => {
      finishWith(say(2));
      let slow = 0;
      fake.before = call =>
        call === 'POST /job' && slow++ < 1 ? { status: 429, headers: { 'retry-after': '1' } } : undefined;
      await people.ask(replyStore.put(aQuestion({ wanted: 2 })), NEVER);
      expect(fake.jobs).to.have.length(1);
    });

    it('one in two calls fails or is cut off', async () => {
      let calls = 0;
      fake.before = call => {
        if (call === 'POST /job' || calls++ % 2 === 0) return undefined;
        return calls % 4 === 0 ? 'hang up' : { status: 503 };
      };
      finishWith(say(2));
      const question = replyStore.put(aQuestion({ wanted: 2 }));
      await people.ask(question, NEVER);
      expect(await replyStore.replies(question.id)).to.have.length(2);
      expect(fake.jobs).to.have.length(1);
    });

    it("progress can't be read", async () => {
      fake.before = call => (/progress/.test(call) ? { status: 404 } : undefined);
      fake.onJob = job => {
        job.labelers = say(2);
        setTimeout(() => (job.state = 'Completed'), 100);
      };
      const question = replyStore.put(aQuestion({ wanted: 2 }));
      await people.ask(question, NEVER);
      expect(await replyStore.replies(question.id)).to.have.length(2);
    });

    it('some results are malformed: the readable ones are used', async () => {
      const question = replyStore.put(aQuestion({ wanted: 2, deadline: Date.now() + 1_000 }));
      finishWith([
        { answer: '<script>\u0000\ud800', id: 'a' },
        { answer: 'long '.repeat(2_000), id: 'b' },
      ]);
      await people.ask(question, NEVER);
      const replies = await replyStore.replies(question.id);
      expect(replies.map(({ text }) => text.length)).to.deep.equal([10, 1_999]);
    });
  });

  describe('end the question with a failure when', () => {
    it('the marketplace refuses it', async () => {
      fake.before = call => (call === 'POST /job/definition' ? { status: 400 } : undefined);
      expect((await failureOf(people.ask(replyStore.put(aQuestion()), NEVER))).kind).to.equal('failed');
    });

    it('the job fails', async () => {
      fake.onJob = job => (job.state = 'Failed');
      expect((await failureOf(people.ask(replyStore.put(aQuestion()), NEVER))).kind).to.equal('failed');
    });

    it('nobody could be asked before the deadline', async () => {
      fake.before = () => ({ status: 500 });
      const failure = await failureOf(
        people.ask(replyStore.put(aQuestion({ deadline: Date.now() + 600 })), NEVER),
      );
      expect(failure.message).to.match(/could not be reached before the deadline/);
    });
  });

  it("make health name their job if it can't be stopped", async () => {
    fake.before = call => (call === 'POST /job/{jobId}/pause' ? { status: 500 } : undefined);
    await people.ask(replyStore.put(aQuestion({ deadline: Date.now() + 600 })), NEVER);
    const { status, detail } = await people.health();
    expect(status).to.equal('degraded');
    expect(detail).to.contain(`pause them in Rapidata: ${fake.jobs[0]!.jobId}`);
  });

  describe('tell the operator, and not the buyer,', () => {
    const until = async (words: RegExp): Promise<string> => {
      for (;;) {
        const { detail = '' } = await people.health();
        if (words.test(detail)) return detail;
        await pause(10);
      }
    };

    it('that someone at the marketplace is reviewing the job, and why, until the review ends', async () => {
      fake.onJob = job => {
        job.state = 'ManualApproval';
        job.reviewReason = 'ContentFlagged';
      };
      const question = replyStore.put(aQuestion({ wanted: 1 }));
      const asked = people.ask(question, NEVER);
      expect(await until(/is reviewing job/)).to.match(
        /^Rapidata is reviewing job job_\d+ before people see it, because its content was flagged; this can take hours/,
      );
      await people.ready(1);
      Object.assign(fake.jobs[0]!, { state: 'Completed', labelers: say(1) });
      await asked;
      expect(await people.health()).to.deep.equal({ status: 'ok' });
      expect(posts()).to.equal(1);
    });

    it('that the account has no funds left; the replies received until then count, and nothing more is sold', async () => {
      fake.onJob = job => {
        job.labelers = say(1);
        job.state = 'SpendLimited';
      };
      const question = replyStore.put(aQuestion({ wanted: 3, deadline: Date.now() + 1_500 }));
      const asked = people.ask(question, NEVER);
      expect(await until(/no funds left/)).to.match(/top it up; no orders are accepted for the moment$/);
      const refused = await failureOf(people.ready(1));
      expect([refused.kind, (refused.retryAfterSeconds ?? 0) > 0]).to.deep.equal(['unavailable', true]);
      expect(refused.message).not.to.match(/funds|Rapidata/);
      await asked;
      expect(await replyStore.replies(question.id)).to.have.length(1);
    });

    it('that a job costs more than the account has, before it stops', async () => {
      fake.shortfall = 0.02;
      finishWith(say(1));
      await people.ask(replyStore.put(aQuestion({ wanted: 1 })), NEVER);
      expect((await people.health()).detail).to.match(
        /costs about \$0\.06 .* has \$0\.04: top it up by at least \$0\.02/,
      );
      expect((await failureOf(people.ready(1))).kind).to.equal('unavailable');
    });
  });

  it('are left alone when the server closes', async () => {
    const question = replyStore.put(aQuestion());
    const asked = people.ask(question, NEVER).catch((error: unknown) => error);
    while (fake.jobs.length === 0) await pause(5);
    await people.close();
    expect(await asked).to.have.property('kind', 'unavailable');
    expect(fake.jobs[0]!.state).to.equal('Running');
  });
});
