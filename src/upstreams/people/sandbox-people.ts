import { setTimeout as pause } from 'node:timers/promises';
import { withEither } from '../../net/deadline.js';
import { sampleReply } from './sample-respondents.js';
import {
  checkAsked,
  checkCapacity,
  createClosing,
  MAX_ASKED_CHARACTERS,
  MAX_OPEN_QUESTIONS,
  panelHealth,
  REPLY_POLL_MS,
  shuttingDown,
} from './panel-people.js';
import type { AskingOptions } from './panel-people.js';
import type { People, Question, ReplyStore } from './people.js';
import { ReplyWaiter } from './reply-waiter.js';

export type SandboxPeopleOptions = AskingOptions & {
  /** How long people on the panel page have before sample respondents supply replies. Default 5 000 ms. */
  delayMs?: number;
};

/** More than the 50 replies that can be requested, to replace rejected replies of sample respondents. */
const HOUSE_RESPONDENTS = 150;

/** The panel, with sample respondents who supply missing replies after a while. Their replies are marked `isSample`. */
export function createSandboxPeople(options: SandboxPeopleOptions): People {
  const { replyStore, maxOpen = MAX_OPEN_QUESTIONS, pollMs = REPLY_POLL_MS, delayMs = 5_000 } = options;
  const watch = new ReplyWaiter(replyStore, pollMs);
  const closing = createClosing();
  return {
    name: 'sandbox',
    ready: async (_wanted, about) => {
      checkAsked(about, MAX_ASKED_CHARACTERS);
      await checkCapacity(replyStore, maxOpen);
    },
    ask: (question, signal) =>
      withEither(signal, closing.signal, async both => {
        await withHouse(replyStore, question, delayMs, pollMs, both, followed =>
          watch.until(question, followed),
        );
      }),
    health: () => panelHealth(replyStore, maxOpen),
    close: async () => closing.abort(shuttingDown()),
  };
}

/** Runs `wait` and, in the meantime, lets sample respondents reply; stops them when it settles. */
async function withHouse(
  replyStore: ReplyStore,
  question: Question,
  delayMs: number,
  pollMs: number,
  signal: AbortSignal,
  wait: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const done = new AbortController();
  const house = standBy(replyStore, question, delayMs, pollMs, done.signal).catch(() => {});
  try {
    await wait(signal);
  } finally {
    done.abort();
    await house;
  }
}

async function standBy(
  replyStore: ReplyStore,
  question: Question,
  delayMs: number,
  pollMs: number,
  signal: AbortSignal,
): Promise<void> {
  // A question with little time left is still answered in time.
  const left = Math.max(question.deadline - Date.now(), 0);
  await pause(Math.min(delayMs, left / 2), undefined, { signal });
  while (!signal.aborted) {
    await fillIn(replyStore, question, signal).catch(() => {});
    // Repeated, because the store may have been unreachable or the operator may have rejected a reply.
    await pause(pollMs, undefined, { signal });
  }
}

async function fillIn(replyStore: ReplyStore, question: Question, signal: AbortSignal): Promise<void> {
  for (let index = 0; index < HOUSE_RESPONDENTS && !signal.aborted; index++) {
    const added = await replyStore.add(question.id, sampleReply(question, index));
    if (added === 'full' || added === 'closed') return;
  }
}
