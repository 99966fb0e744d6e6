import { expect } from 'chai';
import {
  brandFeedback,
  brandFeedbackBy,
  brandFeedbackReady,
} from '../../../handlers/brand-feedback/brand-feedback.js';
import type { OpenOrder, OrderRef } from '../../../src/contract/operation.js';
import type { PartialRule } from '../../../handlers/brand-feedback/people.js';
import type { Question, Reply } from '../../../handlers/brand-feedback/replies.js';
import { aReply, createMemoryBook } from '../../support/memory-reply-store.js';
import { failureOf } from '../../support/failure.js';
import { settingFaults } from '../../support/setting-faults.js';

const NEVER = new AbortController().signal;
const EXTENDED: OrderRef = { id: 'o', deadline: 2_000, attempt: 2 };

/** An order of five replies; `rounds` are the replies that arrive in each attempt. */
async function ordered(
  rounds: Partial<Reply>[][],
  { rule = 'deliver', extensions = 1 }: { rule?: PartialRule; extensions?: number } = {},
) {
  const replyStore = createMemoryBook(() => 0);
  const asked: Question[] = [];
  const people = {
    name: 'test',
    ready: async () => {},
    ask: async (question: Question) => {
      replyStore.put(question);
      asked.push(question);
      for (const reply of rounds[asked.length - 1] ?? []) await replyStore.add(question.id, aReply(reply));
    },
    health: async () => ({ status: 'ok' as const }),
    close: async () => {},
  };
  let left = extensions;
  const order: OpenOrder = {
    id: 'o',
    deadline: 1_000,
    attempt: 1,
    extend: async () => (left-- > 0 ? EXTENDED : undefined),
  };
  const handler = brandFeedbackBy(people, replyStore, rule);
  const call = handler({
    params: {},
    query: {},
    body: { brand: 'Acme', question: 'Do you like it?', n: 5 },
    signal: NEVER,
    caller: 'c',
    order,
  });
  const deadlines = () => asked.map(({ deadline, attempt }) => [deadline, attempt]);
  return { call, deadlines };
}

const some = (count: number) => Array.from({ length: count }, () => ({}));

describe('an order whose deadline has passed', () => {
  it('is delivered immediately if at least half of the people answered, and says how many', async () => {
    const { call, deadlines } = await ordered([some(3)]);
    const { body } = await call;
    expect(body).to.have.property('responses').with.length(3);
    expect(body)
      .to.have.nested.property('aggregate.summary')
      .that.matches(/^Only 3 of 5 people answered/);
    expect(deadlines()).to.deep.equal([[1_000, 1]]);
  });

  it('is extended once if fewer answered', async () => {
    const { call, deadlines } = await ordered([some(2), some(3)]);
    expect((await call).body)
      .to.have.property('responses')
      .with.length(5);
    expect(deadlines()).to.deep.equal([
      [1_000, 1],
      [2_000, 2],
    ]);
  });

  it('is not extended twice, even after a crash during the extension', async () => {
    const { call, deadlines } = await ordered([some(2)], { extensions: 0 });
    expect((await call).body)
      .to.have.property('responses')
      .with.length(2);
    expect(deadlines()).to.have.length(1);
  });

  it('is delivered or owed, as the operator chose, if fewer than half answered even after the extension', async () => {
    const delivered = await ordered([some(1), some(1)]);
    expect((await delivered.call).body)
      .to.have.property('responses')
      .with.length(2);
    const owed = await ordered([some(1), some(1)], { rule: 'owe' });
    const failure = await failureOf(owed.call);
    expect(failure.kind).to.equal('failed');
    expect(failure.message).to.equal('Only 2 of 5 people answered before the deadline.');
    const enough = await ordered([some(1), some(2)], { rule: 'owe' });
    expect((await enough.call).body)
      .to.have.property('responses')
      .with.length(3);
  });

  it('is never delivered if nobody replied', async () => {
    const { call, deadlines } = await ordered([]);
    expect((await failureOf(call)).message).to.match(/^Nobody answered/);
    expect(deadlines()).to.have.length(2);
  });
});

describe('replies without a stated opinion', () => {
  it('count as neutral, whatever their words are, and the summary says so', async () => {
    const { call } = await ordered([
      [
        { sentiment: 'unknown', text: 'I hate it, it is a terrible cup.' },
        { sentiment: 'unknown', text: 'I love it.' },
        ...some(3),
      ],
    ]);
    const { body } = await call;
    expect(body)
      .to.have.property('aggregate')
      .that.includes({ positive: 3, neutral: 2, negative: 0, opinionsKnown: 3 });
    expect(body)
      .to.have.nested.property('aggregate.summary')
      .that.contains('2 respondents did not state an opinion; their replies count as neutral.');
  });
});

describe('a question without readable text', () => {
  const people = { ready: async () => {} } as unknown as Parameters<typeof brandFeedbackReady>[0];
  const blank = ' \n\u0000\u200b';
  for (const [body, names] of [
    [{ brand: blank, question: 'Why?' }, 'brand'],
    [{ brand: 'Acme', question: blank }, 'question'],
    [{ brand: blank, question: blank }, 'brand and question'],
  ] as const)
    it(`is refused, and the error names ${names}`, async () => {
      const call = { params: {}, query: {}, body, signal: NEVER, caller: 'c' };
      const { kind, message } = await failureOf(Promise.resolve(brandFeedbackReady(people)(call as never)));
      expect([kind, message]).to.deep.equal([
        'invalid',
        `${names} must contain at least one letter, digit or symbol`,
      ]);
    });
});

describe('The settings of brandFeedback', () => {
  const client = { RAPIDATA_CLIENT_ID: 'a', RAPIDATA_CLIENT_SECRET: 'b' };
  const wallet = { WURK_SECRET_KEY: JSON.stringify(Array.from({ length: 64 }, (_, at) => at)) };
  const refused: [Record<string, string>, string][] = [
    [{ PEOPLE: 'nobody' }, 'PEOPLE'],
    [{ PEOPLE: 'sandbox' }, 'PEOPLE'],
    [{ PEOPLE: 'rapidata' }, 'RAPIDATA_CLIENT_ID'],
    [{ RAPIDATA_CLIENT_ID: 'a' }, 'RAPIDATA_CLIENT_ID and RAPIDATA_CLIENT_SECRET'],
    [{ ...client, RAPIDATA_BUDGET: '1e3' }, 'RAPIDATA_BUDGET'],
    [{ PARTIAL: 'maybe' }, 'PARTIAL'],
    [{ PEOPLE: 'wurk' }, 'WURK_SECRET_KEY'],
    [{ PEOPLE: 'wurk', WURK_SECRET_KEY: '[1,2]' }, 'WURK_SECRET_KEY'],
    [{ ...wallet, PEOPLE: 'wurk', WURK_BUDGET: 'much' }, 'WURK_BUDGET'],
  ];
  for (const [env, name] of refused)
    it(`are refused on mainnet: ${JSON.stringify(env)}`, () => {
      const faults = settingFaults(brandFeedback, env, 'mainnet');
      expect(faults).to.have.length(1);
      expect(faults[0]).to.match(new RegExp(`^${name}: `));
    });

  it('have defaults', () => {
    expect(settingFaults(brandFeedback, {})).to.deep.equal([]);
    expect(settingFaults(brandFeedback, { ...client, PEOPLE: 'rapidata' }, 'mainnet')).to.deep.equal([]);
    expect(settingFaults(brandFeedback, { ...wallet, PEOPLE: 'wurk' }, 'mainnet')).to.deep.equal([]);
  });
});
