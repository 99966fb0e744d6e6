import { withEither } from 'coinslot';
import type { People } from './people.js';
import { createClosing, REPLY_POLL_MS, shuttingDown } from './panel-people.js';
import { ReplyWaiter } from './reply-waiter.js';
import type { Question, ReplyStore } from './replies.js';

type BegunElsewhereOptions = {
  replyStore: ReplyStore;
  /**
   * Opens the marketplace with this name, for orders that started there.
   * @returns a message for the operator if its settings are missing
   */
  open: (marketplace: string) => Promise<People | string>;
  /** How often to check for replies on the panel while a marketplace is missing. Default 500 ms. */
  pollMs?: number;
};

const MAX_STRANDED = 100;

/**
 * Keeps each order with the marketplace where it started, whatever `chosen` is now, because replies that were paid for may still come from
 * there, and must not be paid for again elsewhere. If that marketplace can't be used, nobody else is paid, and a message tells the operator what
 * to set.
 */
export function finishingWhereBegun(chosen: People, options: BegunElsewhereOptions): People {
  const others = new Others(options);
  const closing = createClosing();
  return {
    name: chosen.name,
    ready: (wanted, about) => chosen.ready(wanted, about),
    ask: async (question, signal) => {
      const begun = marketplaceIn(await options.replyStore.intent(question.id));
      if (begun === undefined || begun === chosen.name) return chosen.ask(question, signal);
      return withEither(signal, closing.signal, both => others.ask(begun, question, both));
    },
    health: async () => {
      const own = await chosen.health();
      const words = await others.words();
      return words.length === 0
        ? own
        : { status: 'degraded', detail: [...(own.detail ? [own.detail] : []), ...words].join('; ') };
    },
    close: async () => {
      closing.abort(shuttingDown());
      await Promise.all([chosen.close(), others.close()]);
    },
  };
}

/** Previously chosen marketplaces, opened when the first order needs them. */
class Others {
  readonly #options: BegunElsewhereOptions;
  readonly #watch: ReplyWaiter;
  readonly #opened = new Map<string, Promise<People | string>>();
  /** Messages that tell the operator what to do, by question id. */
  readonly #stranded = new Map<string, string>();

  constructor(options: BegunElsewhereOptions) {
    this.#options = options;
    this.#watch = new ReplyWaiter(options.replyStore, options.pollMs ?? REPLY_POLL_MS);
  }

  async ask(name: string, question: Question, signal: AbortSignal): Promise<void> {
    const people = await this.#open(name);
    if (typeof people !== 'string') return people.ask(question, signal);
    if (this.#stranded.size >= MAX_STRANDED) this.#stranded.clear();
    this.#stranded.set(
      question.id,
      `order ${question.id.slice(0, 16)} was begun with ${name}, which may have been paid for it: ${people} and restart, so that its ` +
        `replies are read. Nobody else is paid for this order; until its deadline, people on the panel can still answer it`,
    );
    await this.#watch.until(question, signal);
  }

  async words(): Promise<string[]> {
    const words = [...this.#stranded.values()].slice(-3);
    for (const opened of this.#opened.values()) {
      const people = await opened;
      if (typeof people === 'string') continue;
      const { status, detail = status } = await people.health();
      if (status !== 'ok') words.push(`${people.name}: ${detail}`);
    }
    return words;
  }

  async close(): Promise<void> {
    for (const opened of this.#opened.values()) {
      const people = await opened;
      if (typeof people !== 'string') await people.close();
    }
  }

  #open(name: string): Promise<People | string> {
    const known = this.#opened.get(name);
    if (known) return known;
    const opened = this.#options
      .open(name)
      .catch((error: unknown) => `fix this: ${error instanceof Error ? error.message : String(error)},`);
    this.#opened.set(name, opened);
    return opened;
  }
}

/** The name of the marketplace that wrote an order's intent; undefined if none did. */
function marketplaceIn(intent: string | null): string | undefined {
  if (intent === null) return undefined;
  try {
    const { provider } = JSON.parse(intent) as { provider?: unknown };
    return typeof provider === 'string' ? provider : undefined;
  } catch {
    return undefined;
  }
}
