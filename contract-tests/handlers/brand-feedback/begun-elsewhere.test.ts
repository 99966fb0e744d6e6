import { expect } from 'chai';
import { finishingWhereBegun } from '../../../handlers/brand-feedback/begun-elsewhere.js';
import type { People } from '../../../handlers/brand-feedback/people.js';
import {
  aQuestion,
  aReply,
  createMemoryBook,
  type MemoryReplyStore,
} from '../../support/memory-reply-store.js';

const NEVER = new AbortController().signal;

describe('an order stays with the marketplace on which it was begun', () => {
  let replyStore: MemoryReplyStore;
  /** The marketplaces that were opened, asked or closed, in order. */
  let done: string[];
  let trouble = '';
  const all: People[] = [];

  const marketplace = (name: string): People => ({
    name,
    ready: async () => {},
    ask: async () => void done.push(`ask ${name}`),
    health: async () => (trouble ? { status: 'degraded', detail: trouble } : { status: 'ok' }),
    close: async () => void done.push(`close ${name}`),
  });
  function create(open: (name: string) => Promise<People | string>): People {
    const people = finishingWhereBegun(marketplace('rapidata'), { replyStore, open, pollMs: 5 });
    all.push(people);
    return people;
  }
  const opening = async (name: string): Promise<People> => {
    done.push(`open ${name}`);
    return marketplace(name);
  };
  const begunWith = async (provider: string) => {
    const question = replyStore.put(aQuestion({ wanted: 1 }));
    await replyStore.saveIntent(question.id, JSON.stringify({ provider, tasks: [] }));
    return question;
  };

  beforeEach(() => {
    replyStore = createMemoryBook();
    done = [];
    trouble = '';
  });
  afterEach(async () => {
    await Promise.all(all.splice(0).map(people => people.close()));
  });

  it('even after another one was chosen; new orders go to the new one', async () => {
    const people = create(opening);
    await people.ask(await begunWith('wurk'), NEVER);
    await people.ask(await begunWith('wurk'), NEVER);
    await people.ask(await begunWith('rapidata'), NEVER);
    await people.ask(replyStore.put(aQuestion()), NEVER);
    expect(done).to.deep.equal(['open wurk', 'ask wurk', 'ask wurk', 'ask rapidata', 'ask rapidata']);
    trouble = 'it has trouble';
    expect((await people.health()).detail).to.equal('it has trouble; wurk: it has trouble');
    await people.close();
    expect(done.slice(-2)).to.have.members(['close rapidata', 'close wurk']);
  });

  it('even if its settings are gone: nobody else is paid, and the operator sees what to set', async () => {
    const people = create(async () => 'set WURK_SECRET_KEY again');
    const question = await begunWith('wurk');
    const asked = people.ask(question, NEVER);
    await replyStore.add(question.id, aReply());
    await asked;
    expect(done).to.deep.equal([]);
    const { status, detail } = await people.health();
    expect(status).to.equal('degraded');
    expect(detail).to.contain(
      `order ${question.id.slice(0, 16)} was begun with wurk, which may have been paid for it: set WURK_SECRET_KEY again and restart`,
    );
  });

  it("even if it can't be opened: the operator sees why", async () => {
    const people = create(async () => {
      throw new Error('the package coinslot-sandbox is not installed');
    });
    const question = await begunWith('wurk');
    await replyStore.add(question.id, aReply());
    await people.ask(question, NEVER);
    expect((await people.health()).detail).to.contain('the package coinslot-sandbox is not installed');
  });
});
