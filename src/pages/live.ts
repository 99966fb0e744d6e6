import { PassThrough } from 'node:stream';

const MAX_CLIENTS = 50;
const POLL_MS = 1_000;
const KEEP_ALIVE_MS = 15_000;
/** A stream ends after this time; the browser then reconnects, which checks its session again. */
const MAX_LIFE_MS = 10 * 60_000;
/** A client with more unread bytes than this is disconnected. */
const MAX_UNREAD_BYTES = 16_384;

const CHANGE = 'event: change\ndata: 1\n\n';

/** Server-sent events that only report a change. The page then requests the new content. */
export class LiveStreams {
  readonly #state: () => Promise<string>;
  readonly #clients = new Set<PassThrough>();
  readonly #keepAliveMs: number;
  readonly #ended: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;
  #seen = '';

  /** @param state changes whenever the page would look different; it is read once a second while a stream is open */
  constructor(state: () => Promise<string>, ended: AbortSignal | undefined, keepAliveMs = KEEP_ALIVE_MS) {
    this.#state = state;
    this.#keepAliveMs = keepAliveMs;
    this.#ended = ended;
    ended?.addEventListener('abort', () => this.#endAll(), { once: true });
  }

  /**
   * A new stream, or undefined if 50 are open or the server is shutting down. The stream ends after `mayListen` resolves to
   * false, which is checked with every keep-alive.
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
    // The first event makes the page request the list, which covers changes made before the stream was open.
    client.write(`retry: 3000\n\n${CHANGE}`);
    this.#schedule();
    return client;
  }

  #schedule(): void {
    if (this.#clients.size === 0 || this.#timer) return;
    this.#timer = setTimeout(() => {
      void this.#poll().finally(() => {
        this.#timer = undefined;
        this.#schedule();
      });
    }, POLL_MS);
    this.#timer.unref();
  }

  async #poll(): Promise<void> {
    try {
      const state = await this.#state();
      if (state === this.#seen) return;
      this.#seen = state;
      for (const client of this.#clients) this.#send(client, CHANGE);
    } catch {
      // The state cannot be read. The pages stay as they are until the next poll.
    }
  }

  async #keepAlive(client: PassThrough, mayListen: () => Promise<boolean>): Promise<void> {
    // If the ledger cannot be read, the stream stays open until the next check.
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
