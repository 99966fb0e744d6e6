import { PassThrough } from 'node:stream';
import type { ReplyStore } from '../upstreams/people/people.js';

const MAX_CLIENTS = 50;
const LOOK_MS = 1_000;
const KEEP_ALIVE_MS = 15_000;
/** Then the browser connects again, and its session is looked at again. */
const MAX_LIFE_MS = 10 * 60_000;
/** What a client may leave unread before it is dropped. */
const MAX_UNREAD_BYTES = 16_384;

const CHANGE = 'event: change\ndata: 1\n\n';

/** Server-sent events that say *that* something changed, never what: the page then asks for the list. */
export class LiveStreams {
  readonly #replyStore: ReplyStore;
  readonly #clients = new Set<PassThrough>();
  readonly #keepAliveMs: number;
  readonly #ended: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;
  #seen = '';

  constructor(replyStore: ReplyStore, ended: AbortSignal | undefined, keepAliveMs = KEEP_ALIVE_MS) {
    this.#replyStore = replyStore;
    this.#keepAliveMs = keepAliveMs;
    this.#ended = ended;
    ended?.addEventListener('abort', () => this.#endAll(), { once: true });
  }

  /**
   * A new stream, or undefined when fifty are open already or the server is ending. It ends soon after `mayListen` has
   * resolved to false.
   */
  open(mayListen: () => Promise<boolean>): PassThrough | undefined {
    if (this.#clients.size >= MAX_CLIENTS || this.#ended?.aborted) return undefined;
    const client = new PassThrough();
    const keepAlive = setInterval(() => void this.#keepAlive(client, mayListen), this.#keepAliveMs);
    const life = setTimeout(() => client.end(), MAX_LIFE_MS);
    keepAlive.unref();
    life.unref();
    client.once('close', () => {
      clearInterval(keepAlive);
      clearTimeout(life);
      this.#clients.delete(client);
    });
    client.on('error', () => client.destroy());
    this.#clients.add(client);
    // What changed between the page and this stream is not lost: the page asks once at the beginning.
    client.write(`retry: 3000\n\n${CHANGE}`);
    this.#schedule();
    return client;
  }

  #schedule(): void {
    if (this.#clients.size === 0 || this.#timer) return;
    this.#timer = setTimeout(() => {
      void this.#look().finally(() => {
        this.#timer = undefined;
        this.#schedule();
      });
    }, LOOK_MS);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    try {
      const open = await this.#replyStore.open();
      const state = JSON.stringify(open.map(({ id, replies, attempt }) => [id, replies, attempt]));
      if (state === this.#seen) return;
      this.#seen = state;
      for (const client of this.#clients) this.#send(client, CHANGE);
    } catch {
      // The book can't be read at the moment; the pages keep what they show.
    }
  }

  async #keepAlive(client: PassThrough, mayListen: () => Promise<boolean>): Promise<void> {
    // Where the ledger can't tell at the moment, the next time decides.
    if (await mayListen().catch(() => true)) this.#send(client, ': still here\n\n');
    else client.end();
  }

  #send(client: PassThrough, text: string): void {
    if (client.writableEnded || client.destroyed) return;
    if (client.writableLength + client.readableLength > MAX_UNREAD_BYTES) client.destroy();
    else client.write(text);
  }

  #endAll(): void {
    for (const client of this.#clients) client.end();
  }
}
