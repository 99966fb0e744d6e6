import type { Question, ReplyStore } from './replies.js';

const MAX_TIMER_MS = 2_147_483_647;

type Waiter = { question: Question; done: () => void };

/** Waits for replies. The store is read once per interval, for all waiting questions together. */
export class ReplyWaiter {
  readonly #replyStore: ReplyStore;
  readonly #pollMs: number;
  readonly #waiters = new Set<Waiter>();
  #timer: NodeJS.Timeout | undefined;

  constructor(replyStore: ReplyStore, pollMs: number) {
    this.#replyStore = replyStore;
    this.#pollMs = pollMs;
  }

  /** Resolves when all wanted replies are stored, or at the question's deadline. Rejects if the signal aborts. */
  async until(question: Question, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (await this.#enough(question)) return;
    const left = question.deadline - Date.now();
    if (left <= 0) return;
    let waiter: Waiter | undefined;
    let timer: NodeJS.Timeout | undefined;
    let abort = () => {};
    try {
      await new Promise<void>((resolve, reject) => {
        abort = () => reject(signal.reason as Error);
        signal.addEventListener('abort', abort, { once: true });
        if (signal.aborted) abort();
        timer = setTimeout(resolve, Math.min(left, MAX_TIMER_MS));
        waiter = { question, done: resolve };
        this.#waiters.add(waiter);
        this.#schedule();
      });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      if (waiter) this.#waiters.delete(waiter);
    }
  }

  #schedule(): void {
    if (this.#waiters.size === 0 || this.#timer) return;
    this.#timer = setTimeout(() => {
      void this.#look().finally(() => {
        this.#timer = undefined;
        this.#schedule();
      });
    }, this.#pollMs);
  }

  async #look(): Promise<void> {
    try {
      const counts = new Map((await this.#replyStore.open()).map(({ id, replies }) => [id, replies]));
      for (const { question, done } of [...this.#waiters]) {
        const count = counts.get(question.id);
        // A question that is no longer open may be complete: check its replies.
        if (count === undefined ? await this.#enough(question) : count >= question.wanted) done();
      }
    } catch {
      // If the store cannot be read, wait for the next interval or the deadline.
    }
  }

  async #enough({ id, wanted }: Question): Promise<boolean> {
    return (await this.#replyStore.replies(id)).length >= wanted;
  }
}
