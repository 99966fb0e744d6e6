import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** How many requests per connection may wait for their turn or for their answers to be read. Pipelining clients send a few. */
const MAX_WAITING = 8;
/**
 * The maximum number of ignored requests across all connections. Beyond it, connections that send more are closed immediately, because
 * cleaning up each ignored request takes time, and thousands of connections may end at the same moment.
 */
const MAX_IGNORED = 4_096;

type Progress = { taken: number; since: number };

/** Closes connections that do not read their answers, and limits how many requests one connection may send before it reads. */
export class Connections {
  readonly #stallMs: number;
  readonly #open = new Map<Socket, Progress | undefined>();
  readonly #waiting = new WeakMap<Socket, number>();
  readonly #unfinished = new WeakMap<Duplex, Set<ServerResponse>>();
  readonly #ignoredOf = new WeakMap<Socket, number>();
  #ignored = 0;
  #leaving = false;

  /** @param stallMs how long a client may read nothing while bytes for it are unsent */
  constructor(server: Server, stallMs: number, checkMs: number) {
    this.#stallMs = stallMs;
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, undefined);
      socket.once('close', () => {
        this.#open.delete(socket);
        this.#ignored -= this.#ignoredOf.get(socket) ?? 0;
      });
    });
    const timer = setInterval(() => this.#endStalled(), checkMs).unref();
    server.once('close', () => clearInterval(timer));
  }

  /**
   * Whether to answer a request. When a connection has too many unread answers, the next request is refused and the connection
   * closed; later requests are ignored.
   */
  admit({ socket }: IncomingMessage, response: ServerResponse): 'yes' | 'refuse' | 'ignore' {
    if (this.#leaving) closeAfter(response);
    // A response has no socket while earlier responses of its connection are unfinished.
    if (response.socket !== null && socket.writableLength === 0) return 'yes';
    const waiting = (this.#waiting.get(socket) ?? 0) + 1;
    this.#waiting.set(socket, waiting);
    if (waiting === MAX_WAITING + 1) return 'refuse';
    if (waiting > MAX_WAITING) return this.#ignore(socket);
    response.once('close', () => this.#waiting.set(socket, (this.#waiting.get(socket) ?? 1) - 1));
    return 'yes';
  }

  /** Registers a response that will be written later. */
  track({ socket }: IncomingMessage, response: ServerResponse): void {
    const unfinished = this.#unfinished.get(socket) ?? new Set();
    this.#unfinished.set(socket, unfinished.add(response));
    response.once('finish', () => unfinished.delete(response));
  }

  /** Whether an answer has started on this connection, or a complete request is waiting for one. */
  isAnswering(socket: Duplex): boolean {
    const unfinished = this.#unfinished.get(socket) ?? [];
    return [...unfinished].some(response => response.headersSent || response.req.complete);
  }

  /**
   * From now on, every connection is closed after its pending answer or, if there is none, after its next
   * one.
   */
  leave(): void {
    this.#leaving = true;
    for (const socket of this.#open.keys()) this.#unfinished.get(socket)?.forEach(closeAfter);
  }

  #ignore(socket: Socket): 'ignore' {
    this.#ignored += 1;
    this.#ignoredOf.set(socket, (this.#ignoredOf.get(socket) ?? 0) + 1);
    if (this.#ignored > MAX_IGNORED) socket.destroy();
    return 'ignore';
  }

  #endStalled(): void {
    const now = performance.now();
    for (const [socket, before] of this.#open) {
      const unsent = socket.writableLength;
      if (unsent === 0) {
        if (before) this.#open.set(socket, undefined);
        continue;
      }
      const taken = socket.bytesWritten - unsent;
      if (before?.taken !== taken) this.#open.set(socket, { taken, since: now });
      else if (now - before.since >= this.#stallMs) socket.destroy();
    }
  }
}

function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}
