import type { Question, Reply, ReplyStore } from '../../handlers/brand-feedback/replies.js';
import { Respondents } from '../../handlers/brand-feedback/respondents.js';
import type { SharedNotes } from '../../src/pages/session.js';

type Page = {
  question: Question;
  replies: Reply[];
  barred: Set<string>;
  closed: boolean;
  intent: string | null;
};

export type MemoryReplyStore = ReplyStore & {
  /** Opens a question, as a paid order does. */
  put(question: Question): Question;
  /** Closes a question, as a delivered or refunded order does. */
  finish(id: string): void;
  /** While true, every read fails, as if the ledger were unreachable. */
  broken: boolean;
  /** Called after each saved intent, so that a test can simulate a crash there. */
  onIntent: ((intent: string) => void) | undefined;
  reads: number;
};

/** An in-memory reply store with the same rules as the ledger's. */
export function createMemoryBook(now: () => number = Date.now): MemoryReplyStore {
  const pages = new Map<string, Page>();
  const page = (id: string): Page => {
    const found = pages.get(id);
    if (!found) throw new Error(`no question ${id}`);
    return found;
  };
  const read = () => {
    replyStore.reads++;
    if (replyStore.broken) throw new Error('the ledger is gone');
  };
  const counts = ({ isHeld }: Reply): boolean => isHeld !== true;
  const isOpen = ({ closed, question }: Page) => !closed && question.deadline > now();
  const replyStore: MemoryReplyStore = {
    broken: false,
    onIntent: undefined,
    reads: 0,
    put(question) {
      const before = pages.get(question.id);
      if (before) before.question = question;
      else pages.set(question.id, { question, replies: [], barred: new Set(), closed: false, intent: null });
      return question;
    },
    finish(id) {
      page(id).closed = true;
    },
    async open() {
      read();
      return [...pages.values()]
        .filter(isOpen)
        .map(({ question, replies }) => ({ ...question, replies: replies.filter(counts).length }));
    },
    async replies(id) {
      read();
      return page(id).replies.filter(counts);
    },
    async held(id) {
      return page(id).replies.filter(reply => !counts(reply));
    },
    async admit(id, replyId) {
      const { replies, question } = page(id);
      const reply = replies.find(each => each.id === replyId && !counts(each));
      if (!reply || replies.filter(counts).length >= question.wanted) return false;
      delete reply.isHeld;
      return true;
    },
    async add(id, reply) {
      const { replies, barred, question } = page(id);
      if (!isOpen(page(id))) return 'closed';
      if (barred.has(reply.respondent)) return 'duplicate';
      if (replies.some(known => known.id === reply.id || known.respondent === reply.respondent))
        return 'duplicate';
      if (replies.filter(counts).length >= question.wanted) return 'full';
      replies.push({ ...reply });
      return reply.isHeld ? 'held' : 'added';
    },
    async reject(id, replyId) {
      const { replies, barred } = page(id);
      const index = replies.findIndex(reply => reply.id === replyId);
      const [reply] = index < 0 ? [] : replies.splice(index, 1);
      if (reply) barred.add(reply.respondent);
      return reply !== undefined;
    },
    async intent(id) {
      return page(id).intent;
    },
    async saveIntent(id, intent) {
      page(id).intent = intent;
      replyStore.onIntent?.(intent);
    },
  };
  return replyStore;
}

export type MemoryNotes = SharedNotes & {
  /** While true, every read and write fails. */
  broken: boolean;
  writes: number;
};

/** An in-memory stand-in for what servers share through a ledger. */
export function createMemoryNotes(): MemoryNotes {
  const texts = new Map<string, string>();
  const use = () => {
    if (notes.broken) throw new Error('the ledger is gone');
  };
  const notes: MemoryNotes = {
    broken: false,
    writes: 0,
    async getMeta(key) {
      use();
      return texts.get(key);
    },
    async setMeta(key, value) {
      use();
      notes.writes++;
      texts.set(key, value);
    },
  };
  return notes;
}

/** Respondents, none of whom has ever opened the panel page. */
export function nobodyThere(): Respondents {
  return new Respondents({ notes: createMemoryNotes() });
}

export function somebodyThere(): Respondents {
  return new Respondents({ notes: { getMeta: async () => String(Date.now()), setMeta: async () => {} } });
}

let counter = 0;

/** A question with a new id. */
export function aQuestion(change: Partial<Question> = {}): Question {
  counter++;
  return {
    id: counter.toString(16).padStart(64, '0'),
    brand: 'Harbour Coffee',
    question: 'What do you think of the new cup?',
    wanted: 3,
    deadline: Date.now() + 60_000,
    attempt: 1,
    ...change,
  };
}

/** A reply from a new respondent. */
export function aReply(change: Partial<Reply> = {}): Reply {
  counter++;
  return {
    id: `reply-${counter}`,
    text: 'I like it.',
    sentiment: 'positive',
    respondent: `person-${counter}`,
    isSample: false,
    ...change,
  };
}
