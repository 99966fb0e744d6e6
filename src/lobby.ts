import type { IncomingMessage, ServerResponse } from 'node:http';
import { whenClosed } from './closed.js';
import { EXPOSED_HEADERS, sendFault, type Listener } from './server.js';

const MAX_WAITING = 1_000;
/** Shorter than a whole request may take, and than a blockhash lives. */
const WAIT_MS = 20_000;
const RETRY_SECONDS = 2;

const NOT_CHARGED = 'You were not charged for this request; send it again.';
const STARTING = `The server is still starting. ${NOT_CHARGED}`;
const CLOSING = `The server is shutting down. ${NOT_CHARGED}`;

/**
 * Where requests wait, unread, while the server still loads what will answer them: at most 1 000, for 20 s each. Whoever can't be
 * served then, or finds the lobby full or closed, gets 503.
 */
export class Lobby {
  readonly #waitMs: number;
  readonly #most: number;
  readonly #waiting = new Map<ServerResponse, { request: IncomingMessage; timer: NodeJS.Timeout }>();
  #app: Listener | undefined;
  #closed = false;

  constructor({ waitMs = WAIT_MS, most = MAX_WAITING }: { waitMs?: number; most?: number } = {}) {
    this.#waitMs = waitMs;
    this.#most = most;
  }

  /** Hands a request to what was opened, or lets it wait. */
  readonly receive: Listener = (request, response) => {
    if (this.#app) return this.#app(request, response);
    if (this.#closed) return refuse(response, CLOSING);
    if (this.#waiting.size >= this.#most) return refuse(response, STARTING);
    const timer = setTimeout(() => {
      this.#waiting.delete(response);
      refuse(response, STARTING);
    }, this.#waitMs);
    this.#waiting.set(response, { request, timer });
    whenClosed(request, response, () => this.#leave(response));
  };

  /** From now on `app` answers, those who waited first. */
  open(app: Listener): void {
    this.#app = app;
    for (const [response, { request }] of this.#waiting) {
      this.#leave(response);
      if (!request.socket.destroyed) app(request, response);
    }
  }

  /** Sends everybody away, unless it was opened. */
  close(): void {
    this.#closed = true;
    for (const response of this.#waiting.keys()) {
      this.#leave(response);
      refuse(response, CLOSING);
    }
  }

  #leave(response: ServerResponse): void {
    clearTimeout(this.#waiting.get(response)?.timer);
    this.#waiting.delete(response);
  }
}

function refuse(response: ServerResponse, error: string): void {
  sendFault(response, 503, error, {
    'Retry-After': String(RETRY_SECONDS),
    'Cache-Control': 'no-store',
    'Access-Control-Expose-Headers': EXPOSED_HEADERS,
    Connection: 'close',
  });
}
