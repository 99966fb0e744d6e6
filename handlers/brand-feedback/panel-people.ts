import { setMaxListeners } from 'node:events';
import { UpstreamFailure, withEither } from 'coinslot';
import type { People } from './people.js';
import { ReplyWaiter } from './reply-waiter.js';
import type { Respondents } from './respondents.js';
import type { ReplyStore } from './replies.js';

export type PanelPeopleOptions = AskingOptions & {
  /** Whether respondents are present. */
  presence: Respondents;
};

export type AskingOptions = {
  replyStore: ReplyStore;
  /** The maximum number of questions open at a time; further ones are refused without a charge. Default 200. */
  maxOpen?: number;
  /** How often stored replies are checked. Default 500 ms. */
  pollMs?: number;
};

export const MAX_OPEN_QUESTIONS = 200;
export const REPLY_POLL_MS = 500;
/** The maximum total length of brand and question that the panel page shows in full. */
export const MAX_ASKED_CHARACTERS = 20_000;

const BUSY_RETRY_SECONDS = 60;

/** @throws UpstreamFailure `invalid` if brand and question are longer than `max` */
export function checkAsked(about: { brand: string; question: string } | undefined, max: number): void {
  if (about && about.brand.length + about.question.length > max)
    throw new UpstreamFailure(
      'invalid',
      `brand and question together are longer than ${max} characters; shorten them.`,
    );
}

/** @throws UpstreamFailure `unavailable` if `maxOpen` questions are open or the replies cannot be read */
export async function checkCapacity(replyStore: ReplyStore, maxOpen: number): Promise<void> {
  const open = await replyStore.open().catch((cause: unknown) => {
    throw new UpstreamFailure('unavailable', 'The questions cannot be read at the moment; try again.', {
      cause,
    });
  });
  if (open.length >= maxOpen)
    throw new UpstreamFailure(
      'unavailable',
      'Too many questions are waiting to be answered; try again later.',
      {
        retryAfterSeconds: BUSY_RETRY_SECONDS,
      },
    );
}

/** Asks the operator's own people, who answer on the panel page. The page reads the questions from the same store. */
export function createPanelPeople(options: PanelPeopleOptions): People {
  const { replyStore, presence, maxOpen = MAX_OPEN_QUESTIONS, pollMs = REPLY_POLL_MS } = options;
  const watch = new ReplyWaiter(replyStore, pollMs);
  const closing = createClosing();
  return {
    name: 'panel',
    ready: async (_wanted, about) => {
      checkAsked(about, MAX_ASKED_CHARACTERS);
      await presence.demand();
      await checkCapacity(replyStore, maxOpen);
    },
    ask: (question, signal) => withEither(signal, closing.signal, both => watch.until(question, both)),
    health: () => panelHealth(replyStore, maxOpen, presence),
    close: async () => closing.abort(shuttingDown()),
  };
}

export async function panelHealth(
  replyStore: ReplyStore,
  maxOpen: number,
  presence?: Respondents,
): Promise<{ status: 'ok' | 'degraded'; detail: string }> {
  try {
    const open = (await replyStore.open()).length;
    const absence = await presence?.absence();
    if (absence !== undefined) return { status: 'degraded', detail: absence };
    return {
      status: open < maxOpen ? 'ok' : 'degraded',
      detail: `${open} of at most ${maxOpen} questions open`,
    };
  } catch {
    return { status: 'degraded', detail: 'the questions cannot be read' };
  }
}

/** Cancels all waits of an adapter. Each open question adds a listener, so Node's limit on listeners is lifted. */
export function createClosing(): AbortController {
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  return closing;
}

export function shuttingDown(): UpstreamFailure {
  return new UpstreamFailure('unavailable', 'The server is shutting down; try again.');
}
