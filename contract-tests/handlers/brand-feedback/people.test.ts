import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { createBrandFeedback } from '../../../handlers/brand-feedback/aggregate.js';
import { looksLikeGibberish } from '../../../handlers/brand-feedback/gibberish.js';
import { withOpinions, type SoldReply } from '../../../handlers/brand-feedback/with-opinions.js';
import { readMark } from '../../../handlers/brand-feedback/opinion-mark.js';
import { sampleReply } from '../../../handlers/brand-feedback/sample-respondents.js';
import { createPanelPeople } from '../../../handlers/brand-feedback/panel-people.js';
import { Respondents } from '../../../handlers/brand-feedback/respondents.js';
import { SENTIMENTS } from '../../../handlers/brand-feedback/replies.js';
import { languageOf } from '../../../handlers/brand-feedback/language.js';
import { charactersOf, tidyReply } from '../../../handlers/brand-feedback/reply-text.js';
import { createSandboxPeople } from '../../../handlers/brand-feedback/sandbox-people.js';
import {
  aQuestion,
  aReply,
  createMemoryBook,
  createMemoryNotes,
  nobodyThere,
  somebodyThere,
} from '../../support/memory-reply-store.js';
import { failureOf } from '../../support/failure.js';

const NEVER = new AbortController().signal;
setMaxListeners(0, NEVER);

describe('people on the panel', () => {
  it('are waited for until all replies have arrived', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 2 }));
    const people = createPanelPeople({ replyStore, presence: somebodyThere(), pollMs: 10 });
    let settled = false;
    const asked = people.ask(question, NEVER).then(() => (settled = true));
    await replyStore.add(question.id, aReply());
    await pause(60);
    expect(settled).to.equal(false);
    await replyStore.add(question.id, aReply());
    await asked;
    expect(await replyStore.replies(question.id)).to.have.length(2);
  });

  it('are not waited for beyond the deadline', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ deadline: Date.now() + 80 }));
    await createPanelPeople({ replyStore, presence: somebodyThere(), pollMs: 10 }).ask(question, NEVER);
    expect(Date.now()).to.be.at.least(question.deadline - 5);
    expect(await replyStore.replies(question.id)).to.deep.equal([]);
  });

  it('who have answered already are not asked again by a second process', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    await replyStore.add(question.id, aReply());
    await createPanelPeople({ replyStore, presence: somebodyThere(), pollMs: 60_000 }).ask(question, NEVER);
  });

  it('are no longer waited for once all have replied, even if the store no longer lists the question', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    const asked = createPanelPeople({ replyStore, presence: somebodyThere(), pollMs: 10 }).ask(
      question,
      NEVER,
    );
    await replyStore.add(question.id, aReply());
    replyStore.finish(question.id);
    await asked;
  });

  it("are still waited for while the store can't be read for a time", async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    const asked = createPanelPeople({ replyStore, presence: somebodyThere(), pollMs: 10 }).ask(
      question,
      NEVER,
    );
    await pause(20);
    replyStore.broken = true;
    await pause(40);
    replyStore.broken = false;
    await replyStore.add(question.id, aReply());
    await asked;
  });

  it('are no longer waited for when the caller aborts or the adapter closes', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion());
    const people = createPanelPeople({ replyStore, presence: somebodyThere(), pollMs: 10 });
    const abort = new AbortController();
    const aborted = people.ask(question, abort.signal).catch((error: unknown) => error);
    const closed = people.ask(question, NEVER).catch((error: unknown) => error);
    abort.abort(new Error('lease lost'));
    expect(await aborted).to.have.property('message', 'lease lost');
    await people.close();
    expect(await closed).to.have.property('kind', 'unavailable');
  });

  it('cost one read of the store per interval, however many questions are waiting', async () => {
    const replyStore = createMemoryBook();
    const questions = Array.from({ length: 50 }, () => replyStore.put(aQuestion({ wanted: 1 })));
    const people = createPanelPeople({ replyStore, presence: somebodyThere(), pollMs: 50 });
    const asked = questions.map(question => people.ask(question, NEVER));
    await pause(20);
    replyStore.reads = 0;
    await pause(220);
    expect(replyStore.reads).to.be.within(1, 6);
    for (const question of questions) await replyStore.add(question.id, aReply());
    await Promise.all(asked);
  });

  it("are unavailable if too many questions are open, the store can't be read, or the question is too long", async () => {
    const replyStore = createMemoryBook();
    const people = createPanelPeople({ replyStore, presence: somebodyThere(), maxOpen: 2 });
    replyStore.put(aQuestion());
    await people.ready(5);
    expect(await people.health()).to.include({ status: 'ok' });
    replyStore.put(aQuestion());
    const full = await failureOf(people.ready(5));
    expect(full.kind).to.equal('unavailable');
    expect(full.retryAfterSeconds).to.be.greaterThan(0);
    expect(await people.health()).to.include({ status: 'degraded' });
    replyStore.broken = true;
    expect((await failureOf(people.ready(5))).kind).to.equal('unavailable');
    expect(await people.health()).to.include({ status: 'degraded' });
    const endless = await failureOf(
      createPanelPeople({ replyStore, presence: somebodyThere() }).ready(1, {
        brand: 'B',
        question: 'x'.repeat(30_000),
      }),
    );
    expect(endless.kind).to.equal('invalid');
  });
});

describe('people who are not present', () => {
  const MINUTE = 60_000;
  const setUp = () => {
    const time = { now: Date.now() };
    const notes = createMemoryNotes();
    const presenceAt = () => new Respondents({ notes, now: () => time.now });
    const peopleAt = (presence: Respondents) =>
      createPanelPeople({ replyStore: createMemoryBook(), presence });
    return { time, notes, presenceAt, peopleAt };
  };

  it('make the operation unavailable before money is taken, and health says since when', async () => {
    const { time, presenceAt, peopleAt } = setUp();
    const presence = presenceAt();
    const people = peopleAt(presence);
    const nobody = await failureOf(people.ready(1));
    expect(nobody.kind).to.equal('unavailable');
    expect(nobody.message).to.match(/No respondents are present.*You were not charged/);
    expect(nobody.retryAfterSeconds).to.be.greaterThan(0);
    expect(await people.health()).to.deep.include({ status: 'degraded' });
    await presence.record();
    await people.ready(1);
    expect(await people.health()).to.include({ status: 'ok' });
    time.now += 10 * MINUTE;
    await people.ready(1);
    time.now += MINUTE;
    expect((await failureOf(people.ready(1))).kind).to.equal('unavailable');
    expect((await people.health()).detail).to.match(/no respondent has been seen .* for 11 minutes/);
  });

  it('at this server may be at another one, or were here before a restart', async () => {
    const { presenceAt, peopleAt } = setUp();
    await presenceAt().record();
    await peopleAt(presenceAt()).ready(1);
  });

  it('are recorded when they arrive, with one write every half minute; the next request repeats a write that failed', async () => {
    const { time, notes, presenceAt, peopleAt } = setUp();
    const presence = presenceAt();
    notes.broken = true;
    await presence.record();
    expect((await failureOf(peopleAt(presence).ready(1))).kind).to.equal('unavailable');
    expect(await peopleAt(presence).health()).to.include({ status: 'degraded' });
    notes.broken = false;
    for (let second = 0; second < 90; second++, time.now += 1_000) await presence.record();
    expect(notes.writes).to.equal(3);
  });
});

describe('people in the sandbox', () => {
  it('count as present even if nobody is on the panel page', async () => {
    await createSandboxPeople({ replyStore: createMemoryBook(), presence: nobodyThere() }).ready(1);
  });

  it('give real people the first chance, and then add the missing replies', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 4 }));
    const asked = createSandboxPeople({ replyStore, presence: nobodyThere(), pollMs: 10, delayMs: 80 }).ask(
      question,
      NEVER,
    );
    await replyStore.add(question.id, aReply({ text: 'A person wrote this.' }));
    await pause(20);
    expect(await replyStore.replies(question.id)).to.have.length(1);
    await asked;
    const replies = await replyStore.replies(question.id);
    expect(replies.map(({ isSample }) => isSample)).to.deep.equal([false, true, true, true]);
    expect(replies.some(({ isSample }) => isSample)).to.equal(true);
  });

  it('write nothing if enough real people answered', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    const asked = createSandboxPeople({ replyStore, presence: nobodyThere(), pollMs: 10, delayMs: 150 }).ask(
      question,
      NEVER,
    );
    await replyStore.add(question.id, aReply());
    await asked;
    await pause(200);
    const replies = await replyStore.replies(question.id);
    expect(replies.some(({ isSample }) => isSample)).to.equal(false);
  });

  it('do not answer twice after a crash or from two processes', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 50 }));
    const crash = new AbortController();
    const first = createSandboxPeople({ replyStore, presence: nobodyThere(), pollMs: 10, delayMs: 0 }).ask(
      question,
      crash.signal,
    );
    crash.abort(new Error('crash'));
    await first.catch(() => {});
    await Promise.all(
      [0, 1].map(() =>
        createSandboxPeople({ replyStore, presence: nobodyThere(), pollMs: 10, delayMs: 5 }).ask(
          question,
          NEVER,
        ),
      ),
    );
    const replies = await replyStore.replies(question.id);
    expect(replies).to.have.length(50);
    expect(new Set(replies.map(({ respondent }) => respondent)).size).to.equal(50);
  });

  it('answer in time even if the deadline is sooner than their delay', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ deadline: Date.now() + 1_000 }));
    await createSandboxPeople({ replyStore, presence: nobodyThere(), pollMs: 10, delayMs: 5_000 }).ask(
      question,
      NEVER,
    );
    expect(await replyStore.replies(question.id)).to.have.length(3);
  });

  it('wait longer while somebody has the panel page open', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    const people = createSandboxPeople({
      replyStore,
      presence: somebodyThere(),
      pollMs: 10,
      delayMs: 0,
      openPageDelayMs: 150,
    });
    const asked = people.ask(question, NEVER);
    await pause(80);
    expect(await replyStore.replies(question.id)).to.deep.equal([]);
    await asked;
    expect(await replyStore.replies(question.id)).to.have.length(1);
  });

  it('never answer before somebody who is typing', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    const time = { now: Date.now() };
    const presence = new Respondents({ notes: createMemoryNotes(), now: () => time.now });
    await presence.recordTyping(question.id);
    const asked = createSandboxPeople({ replyStore, presence, pollMs: 10, delayMs: 0 }).ask(question, NEVER);
    await pause(80);
    expect(await replyStore.replies(question.id)).to.deep.equal([]);
    time.now += 30_000;
    await asked;
    expect((await replyStore.replies(question.id)).map(({ isSample }) => isSample)).to.deep.equal([true]);
  });

  for (const [language, question] of [
    ['de', 'Was halten Sie von der neuen Tasse?'],
    ['es', '¿Qué le parece la nueva taza?'],
    ['fr', 'Que pensez-vous de la nouvelle tasse ?'],
    ['pt', 'O que você acha da nova caneca?'],
    ['en', 'Is the new cup any good?'],
  ] as const)
    it(`reply in the language of the question: ${language}`, async () => {
      const replyStore = createMemoryBook();
      // The replies are determined by the id.
      const asked = replyStore.put(aQuestion({ id: '1'.repeat(64), question, wanted: 50 }));
      const people = createSandboxPeople({ replyStore, presence: nobodyThere(), pollMs: 10, delayMs: 0 });
      await people.ready(50, asked);
      await people.ask(asked, NEVER);
      const replies = await replyStore.replies(asked.id);
      expect(new Set(replies.map(({ text }) => text)).size).to.be.at.least(45);
      const spoken = replies.filter(({ text }) => languageOf(text) === language);
      expect(spoken.length, 'replies whose language is recognised').to.be.at.least(45);
    });

  it('reject a question in a language that none of them speaks, before money moves', async () => {
    const replyStore = createMemoryBook();
    const about = { brand: 'Acme', question: '新しいカップをどう思いますか？' };
    const alone = createSandboxPeople({ replyStore, presence: nobodyThere(), pollMs: 10, delayMs: 0 });
    const refused = await failureOf(alone.ready(1, about));
    expect(refused.kind).to.equal('invalid');
    expect(refused.message).to.contain('speak English, French, German, Portuguese and Spanish');
    const accompanied = createSandboxPeople({
      replyStore,
      presence: somebodyThere(),
      pollMs: 10,
      delayMs: 0,
    });
    await accompanied.ready(1, about);
    const question = replyStore.put(aQuestion({ ...about, deadline: Date.now() + 150 }));
    await accompanied.ask(question, NEVER);
    expect(await replyStore.replies(question.id), 'no sample reply in another language').to.deep.equal([]);
  });

  it('replace a sample reply that the operator rejected', async () => {
    const replyStore = createMemoryBook();
    const question = replyStore.put(aQuestion({ wanted: 2 }));
    await replyStore.add(question.id, sampleReply(question, 0));
    await replyStore.reject(question.id, 'sample-1');
    await createSandboxPeople({ replyStore, presence: nobodyThere(), pollMs: 10, delayMs: 1 }).ask(
      question,
      NEVER,
    );
    expect((await replyStore.replies(question.id)).map(({ id }) => id)).to.deep.equal([
      'sample-2',
      'sample-3',
    ]);
  });
});

describe('sample respondents', () => {
  const asked = { id: 'a1', brand: 'Harbour Coffee', question: 'What do you think of the new cup?' };

  it('write 50 different replies that mention the brand and the question, and cover all three sentiments', () => {
    const replies = Array.from({ length: 50 }, (_, index) => sampleReply(asked, index));
    expect(new Set(replies.map(({ text }) => text)).size).to.equal(50);
    for (const { text } of replies)
      expect(text)
        .to.contain('Harbour Coffee')
        .and.match(/the new cup/i);
    for (const mood of SENTIMENTS) expect(replies.some(({ sentiment }) => sentiment === mood)).to.equal(true);
  });

  it('write the same reply to the same question in every process, and another to another question', () => {
    expect(sampleReply(asked, 3)).to.deep.equal(sampleReply({ ...asked }, 3));
    const texts = (id: string) =>
      Array.from({ length: 5 }, (_, index) => sampleReply({ ...asked, id }, index).text).join();
    expect(texts('a1')).to.not.equal(texts('b2'));
  });

  it('stay within limits whatever the brand and question contain', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 3_000, unit: 'binary' }),
        fc.string({ maxLength: 3_000 }),
        (brand, question) => {
          const { text } = sampleReply({ id: 'x', brand, question }, 1);
          expect(text.length).to.be.within(1, 600);
          expect(tidyReply(text)).to.equal(text);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('the opinion of a reply from a marketplace', () => {
  const marked: [string, string, string][] = [
    ['+ Great taste!', 'positive', 'Great taste!'],
    ['- terrible', 'negative', 'terrible'],
    ['− zu teuer', 'negative', 'zu teuer'],
    ['0, it is a cup', 'neutral', 'it is a cup'],
    ['(+) j’adore', 'positive', 'j’adore'],
    ['[-]: 高すぎる', 'negative', '高すぎる'],
    ['+', 'positive', '+'],
    ['➖ no', 'negative', 'no'],
  ];
  for (const [reply, sentiment, text] of marked)
    it(`is what the reply begins with: '${reply}' is ${sentiment}`, () =>
      expect(readMark(reply)).to.deep.equal({ sentiment, text }));

  it('is unknown, never guessed from the words, if the reply does not begin with an opinion', () => {
    const unmarked = [
      'I love it, great taste!',
      'Not good at all.',
      'Das ist furchtbar.',
      '- handle\n- colour\n- price',
      '0 stars, awful',
      '-5 points from me',
      '0/10',
      '+49 is their number',
      '100 % good',
      '',
    ];
    for (const text of unmarked) expect(readMark(text), text).to.deep.equal({ sentiment: 'unknown', text });
  });

  it("is taken from the operator's model if the reply does not begin with it, and is unknown if the model gives none or fails", async () => {
    const replies = [
      aReply({ text: 'a', sentiment: 'unknown' }),
      aReply({ text: 'b', sentiment: 'negative' }),
      aReply({ text: 'c', sentiment: 'unknown' }),
    ];
    const asked: string[] = [];
    const model = {
      sentimentOf: async (text: string) => {
        asked.push(text);
        if (text === 'c') throw new Error('it is down');
        return 'positive' as const;
      },
      close: async () => {},
    };
    const found = await withOpinions(replies, model, NEVER);
    expect(asked).to.have.members(['a', 'c']);
    expect(found.map(({ sentiment, from }) => [sentiment, from])).to.deep.equal([
      ['positive', 'model'],
      ['negative', 'respondent'],
      ['neutral', 'unknown'],
    ]);
    const alone = await withOpinions(replies, undefined, NEVER);
    expect(alone.map(({ from }) => from)).to.deep.equal(['unknown', 'respondent', 'unknown']);
  });
});

describe('a reply of random keystrokes', () => {
  it('is recognized', () => {
    for (const text of [
      'asdf asdf',
      'qwerty',
      'ASDFGHJK',
      'hhhhhhhh',
      'sdfgh jkl',
      'fdsa',
      '...',
      '???',
      'asdasdasd',
    ])
      expect(looksLikeGibberish(text), text).to.equal(true);
  });

  it('is not confused with words of any language, short words or signs', () => {
    const words = [
      ...[
        'Good.',
        'ok',
        'no',
        'meh',
        '👍',
        '10/10',
        '+',
        '-',
        'It is a property of liberty',
        'Were there more?',
      ],
      ...[
        'Guter Wert für das Geld',
        'Čtvrt litru je málo',
        '美味しい',
        'ممتاز',
        'Отлично',
        'très bien',
        'Too small, and it leaks.',
      ],
    ];
    for (const text of words) expect(looksLikeGibberish(text), text).to.equal(false);
  });
});

describe('a reply as it is stored', () => {
  it("contains nothing that a database or page can't hold", () => {
    expect(tidyReply('a\u0000b\ud800c\u0007')).to.equal('a\ufffdb\ufffdc\ufffd');
    expect(tidyReply(' one\r\ntwo\rthree ')).to.equal('one\ntwo\nthree');
  });

  it('is empty if it has no visible character', () => {
    for (const nothing of ['', '  \n', '\u200b\u200d', '\u0000\u0000', '\u202e'])
      expect(tidyReply(nothing)).to.equal('');
  });

  it('is cut between characters', () => {
    const cut = tidyReply('😀'.repeat(3_000));
    expect(charactersOf(cut)).to.equal(2_000);
    expect(cut.endsWith('😀')).to.equal(true);
  });
});

describe('the answer to /brand-feedback', () => {
  const question = { brand: 'Harbour Coffee', question: 'The new cup?', wanted: 5 };
  const sold = (change: Partial<SoldReply> = {}): SoldReply => ({
    ...{ text: 'I like it.', sentiment: 'positive', from: 'respondent', isSample: false },
    ...change,
  });
  const said = (positive: number, neutral: number, negative: number) =>
    [
      ...Array.from({ length: positive }, () =>
        sold({ text: 'The new cup keeps coffee hot.', sentiment: 'positive' }),
      ),
      ...Array.from({ length: neutral }, () => sold({ text: 'It is a cup.', sentiment: 'neutral' })),
      ...Array.from({ length: negative }, () =>
        sold({ text: 'Too small, and it leaks.', sentiment: 'negative' }),
      ),
    ] as const;

  it('counts exactly the replies that it contains', () => {
    fc.assert(
      fc.property(fc.nat(15), fc.nat(15), fc.nat(15), fc.integer({ min: 1, max: 50 }), (a, b, c, wanted) => {
        const answer = createBrandFeedback({ ...question, wanted }, [...said(a, b, c)]);
        expect(answer.n).to.equal(wanted);
        expect(answer.responses).to.have.length(a + b + c);
        const { positive, neutral, negative, summary } = answer.aggregate ?? expect.fail();
        expect([positive, neutral, negative]).to.deep.equal([a, b, c]);
        expect(summary).to.not.equal('');
        expect(summary.includes('Only') || summary.includes('None')).to.equal(a + b + c < wanted);
      }),
    );
  });

  it('says in its summary how the opinions are distributed and gives examples', () => {
    const { summary } = createBrandFeedback(question, [...said(3, 1, 1)]).aggregate ?? expect.fail();
    expect(summary).to.equal(
      '3 of 5 replies were positive, 1 neutral and 1 negative. ' +
        'Example replies: “The new cup keeps coffee hot” and “Too small, and it leaks”.',
    );
  });

  it('sums up replies in their language if the summary can be written in it', () => {
    const german = [
      sold({ text: 'Die neue Tasse hält den Kaffee lange warm.' }),
      sold({ text: 'Mir ist sie viel zu klein, und sie tropft.', sentiment: 'negative' }),
      sold({ text: 'Das ist eben eine Tasse wie jede andere.', sentiment: 'neutral', from: 'unknown' }),
    ];
    expect(createBrandFeedback(question, german).aggregate.summary).to.equal(
      'Bis zum Ende der Frist kamen nicht alle Antworten (3 von 5). Antworten nach Meinung: 1 positiv, 1 neutral, 1 negativ. ' +
        'Beispiele: „Die neue Tasse hält den Kaffee lange warm“ und „Mir ist sie viel zu klein, und sie tropft“. ' +
        'Antworten ohne bekannte Meinung, als neutral gezählt: 1.',
    );
    const mixed = [...german.slice(0, 1), sold({ text: 'I like this cup very much indeed.' })];
    expect(createBrandFeedback(question, mixed).aggregate.summary).to.match(/^Only 2 of 5 people/);
  });

  it('says how many opinions are known, and that the others count as neutral', () => {
    const { aggregate, responses } = createBrandFeedback(question, [
      ...said(2, 1, 0),
      sold({ sentiment: 'neutral', from: 'unknown', text: 'Hm, I wonder.' }),
      sold({ sentiment: 'negative', from: 'model', text: 'I would not buy it.' }),
    ]);
    expect(aggregate).to.include({ positive: 2, neutral: 2, negative: 1, opinionsKnown: 4 });
    expect(aggregate.summary).to.match(
      / 1 respondent did not state an opinion; the reply counts as neutral\.$/,
    );
    expect(responses.map(({ sentimentFrom }) => sentimentFrom)).to.deep.equal([
      ...[undefined, undefined, undefined],
      ...['unknown', 'model'],
    ]);
  });

  it('says if fewer people answered than were ordered', () => {
    const few = createBrandFeedback(question, [...said(0, 0, 1)]).aggregate?.summary;
    expect(few).to.match(/^Only 1 of 5 people answered before the deadline: the one reply was negative\./);
    expect(createBrandFeedback(question, []).aggregate?.summary).to.match(/^None of 5 people/);
  });

  it('gives replies as they were written, and nothing about their authors', async () => {
    const text = '<b>“hot”</b>\n\u202eolleh';
    const { responses } = createBrandFeedback(question, [
      ...(await withOpinions(
        [aReply({ text, sentiment: 'neutral', respondent: 'secret' })],
        undefined,
        NEVER,
      )),
    ]);
    expect(responses).to.deep.equal([{ text, sentiment: 'neutral' }]);
  });

  it('is marked mock only if a sample respondent wrote part of it', () => {
    const person = sold({ from: 'unknown' });
    expect(createBrandFeedback(question, [person]).mock).to.equal(false);
    expect(createBrandFeedback(question, [person, sold({ isSample: true })]).mock).to.equal(true);
  });
});
