import { setMaxListeners } from 'node:events';
import { withEither } from '../../net/deadline.js';
import { UpstreamFailure } from '../../net/failure.js';
import type { People, ReplyStore } from './people.js';
import type { Respondents } from './respondents.js';
import { ReplyWaiter } from './reply-waiter.js';

export type PanelPeopleOptions = AskingOptions & {
  /** Whether anybody who could answer is there. */
  presence: Respondents;
};

export type AskingOptions = {
  replyStore: ReplyStore;
  /** Questions that may be open at a time; one more is refused before it is charged. Default 200. */
  maxOpen?: number;
  /** How often the book is looked at. Default 500 ms. */
  pollMs?: number;
};

export const MAX_OPEN_QUESTIONS = 200;
export const REPLY_POLL_MS = 500;
/** Longest brand and question together that the panel page shows in full. */
export const MAX_ASKED_CHARACTERS = 20_000;

const BUSY_RETRY_SECONDS = 60;

/** @throws UpstreamFailure `invalid` when the panel page could not show it in full. */
export function checkAsked(about: { brand: string; question: string } | undefined, max: number): void {
  if (about && about.brand.length + about.question.length > max)
    throw new UpstreamFailure(
      'invalid',
      `brand and question together are longer than ${max} characters; shorten them.`,
    );
}

/** @throws UpstreamFailure `unavailable` when `maxOpen` questions wait already, or the book can't be read. */
export async function checkCapacity(replyStore: ReplyStore, maxOpen: number): Promise<void> {
  const open = await replyStore.open().catch((cause: unknown) => {
    throw new UpstreamFailure('unavailable', 'The questions can not be read at the moment; try again.', {
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

/** The operator's own people, who answer on the panel page. Nothing is sent anywhere: the page reads the book. */
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
    return { status: 'degraded', detail: 'the questions can not be read' };
  }
}

/** Ends whatever an adapter is waiting for; a listener per open question is no leak. */
export function createClosing(): AbortController {
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  return closing;
}

export function shuttingDown(): UpstreamFailure {
  return new UpstreamFailure('unavailable', 'The server is shutting down; try again.');
}
