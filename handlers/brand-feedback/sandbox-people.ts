import { setTimeout as pause } from 'node:timers/promises';
import { UpstreamFailure, withEither } from 'coinslot';
import type { People } from './people.js';
import type { Respondents } from './respondents.js';
import { sampleReply } from './sample-respondents.js';
import { VOICES } from './sample-voices.js';
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
import { ReplyWaiter } from './reply-waiter.js';
import type { Question, ReplyStore } from './replies.js';

type SandboxPresence = Pick<Respondents, 'isPageOpen' | 'isTyping'>;

export type SandboxPeopleOptions = AskingOptions & {
  presence: SandboxPresence;
  /** How long sample respondents wait before they supply the missing replies if nobody has the panel page open. Default 5 000 ms. */
  delayMs?: number;
  /** How long sample respondents wait if somebody has the panel page open. Default 60 000 ms. */
  openPageDelayMs?: number;
};

/** The number of sample respondents for each requested reply: more than one, to replace rejected replies. */
const SAMPLE_RESPONDENTS = 3;

/**
 * The panel, with sample respondents who supply missing replies after a delay, in the language of the question. Their replies are
 * marked `isSample`.
 */
export function createSandboxPeople(options: SandboxPeopleOptions): People {
  const { replyStore, presence, maxOpen = MAX_OPEN_QUESTIONS, pollMs = REPLY_POLL_MS } = options;
  const watch = new ReplyWaiter(replyStore, pollMs);
  const closing = createClosing();
  return {
    name: 'sandbox',
    ready: async (_wanted, about) => {
      checkAsked(about, MAX_ASKED_CHARACTERS);
      if (about && (await spokenBySamples(about)) === undefined && !(await isPageOpen(presence)))
        throw new UpstreamFailure('invalid', CANNOT_SPEAK);
      await checkCapacity(replyStore, maxOpen);
    },
    ask: (question, signal) =>
      withEither(signal, closing.signal, async both => {
        await withSamples(options, question, both, followed => watch.until(question, followed));
      }),
    health: () => panelHealth(replyStore, maxOpen),
    close: async () => closing.abort(shuttingDown()),
  };
}

const CANNOT_SPEAK =
  'The sample respondents of the sandbox speak English, French, German, Portuguese and Spanish, and nobody has the panel page ' +
  'open. Ask in one of these languages, or open the panel page and answer there.';

/** The language of the question, if sample respondents speak it. A question that does not show its language is taken as English. */
async function spokenBySamples({ question }: { question: string }): Promise<string | undefined> {
  const { languageOf } = await import('./language.js');
  const language = languageOf(question) ?? 'en';
  return Object.hasOwn(VOICES, language) ? language : undefined;
}

/** Unreadable presence data must not keep the sandbox from answering. */
const isPageOpen = (presence: SandboxPresence): Promise<boolean> => presence.isPageOpen().catch(() => false);

/** Runs `wait` and, in the meantime, lets sample respondents reply; stops them when it settles. */
async function withSamples(
  options: SandboxPeopleOptions,
  question: Question,
  signal: AbortSignal,
  wait: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const done = new AbortController();
  const samples = standBy(options, question, done.signal).catch(() => {});
  try {
    await wait(signal);
  } finally {
    done.abort();
    await samples;
  }
}

async function standBy(
  options: SandboxPeopleOptions,
  question: Question,
  signal: AbortSignal,
): Promise<void> {
  const { replyStore, presence, pollMs = REPLY_POLL_MS, delayMs = 5_000, openPageDelayMs = 60_000 } = options;
  const language = await spokenBySamples(question);
  if (language === undefined) return;
  // Waits at most half of the remaining time, so that a question close to its deadline is still answered.
  const left = Math.max(question.deadline - Date.now(), 0);
  const delay = (await isPageOpen(presence)) ? openPageDelayMs : delayMs;
  await pause(Math.min(delay, left / 2), undefined, { signal });
  while (!signal.aborted) {
    const typing = await presence.isTyping(question.id).catch(() => false);
    if (!typing) await fillIn(replyStore, question, language, signal).catch(() => {});
    // Repeated, because the store may have been unreachable or the operator may have rejected a reply.
    await pause(pollMs, undefined, { signal });
  }
}

async function fillIn(
  replyStore: ReplyStore,
  question: Question,
  language: string,
  signal: AbortSignal,
): Promise<void> {
  for (let index = 0; index < SAMPLE_RESPONDENTS * question.wanted && !signal.aborted; index++) {
    const added = await replyStore.add(question.id, sampleReply(question, index, language));
    if (added === 'full' || added === 'closed') return;
  }
}
