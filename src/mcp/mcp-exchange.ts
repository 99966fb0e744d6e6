import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Json } from '../contract/json.js';
import type { BudgetOwner, Reservation } from '../http/byte-budget.js';
import type { Deliveries } from '../http/deliveries.js';
import { goneSignal } from '../http/on-close.js';
import { requestIdOf } from '../http/request-id.js';
import { carrySale } from '../http/send-sold.js';
import type { Sale } from '../sale/outcome.js';

const PIECE_BYTES = 16 * 1024;

/** One HTTP request that carries one MCP message, and its response. The caller waits on this connection: when it closes, the caller has left. */
export class Exchange {
  readonly gone: AbortSignal;
  readonly source: string;
  readonly requestId: string;
  /** The message, as sent. */
  message: Json = {};
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #carried: { hold: Reservation; ended: () => void } | undefined;

  /** @param source see `SourceLimits.of` */
  constructor(request: IncomingMessage, response: ServerResponse, source: string) {
    this.#request = request;
    this.#response = response;
    this.gone = goneSignal(request, response);
    this.requestId = requestIdOf(request.headers['x-request-id']);
    this.source = source;
  }

  /**
   * Builds the message with a sold answer, and registers the sale with this response (see `carrySale`). The sale counts as lost if
   * nothing could be built, or if the library sends an error instead.
   * @param bytes the approximate size of the answer in memory
   * @returns undefined if there is no memory left for it; then nothing was built or registered
   */
  carry<T>(
    deliveries: Deliveries,
    owner: BudgetOwner,
    { bytes, sale, build }: { bytes: number; sale: Sale; build: () => T },
  ): T | undefined {
    const hold = deliveries.reserve(owner, bytes, () => this.#request.socket.destroy());
    if (!hold) return undefined;
    const built = this.#build(build, hold, sale);
    const ended = carrySale({ request: this.#request, response: this.#response }, hold, sale);
    this.#carried = { hold, ended };
    return built;
  }

  /** The query of the URL, without its question mark. */
  get query(): string {
    return (this.#request.url ?? '').split('?', 2)[1] ?? '';
  }

  get headers(): IncomingMessage['headers'] {
    return this.#request.headers;
  }

  #build<T>(build: () => T, hold: Reservation, sale: Sale): T {
    try {
      return build();
    } catch (error) {
      hold.close();
      void sale.lost();
      throw error;
    }
  }

  /** Sends a response of the MCP library, as fast as its caller reads. */
  async send(answer: Response, headers: Record<string, string>): Promise<void> {
    const response = this.#response;
    if (response.destroyed) return void answer.body?.cancel();
    response.writeHead(answer.status, { ...Object.fromEntries(answer.headers), ...headers });
    if (!answer.body) return void response.end();
    response.flushHeaders();
    let result = false;
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
      result ||= isResult(chunk);
      for (let from = 0; from < chunk.length; from += PIECE_BYTES) {
        if (this.gone.aborted) return;
        if (!response.write(chunk.subarray(from, from + PIECE_BYTES))) await this.#drained();
        this.#carried?.hold.progress();
      }
    }
    response.end();
    if (result) this.#carried?.ended();
  }

  /** Resolves when the caller has read the written bytes, or is gone. */
  #drained(): Promise<void> {
    const { gone } = this;
    const response = this.#response;
    return new Promise(resolve => {
      const done = (): void => {
        response.off('drain', done);
        gone.removeEventListener('abort', done);
        resolve();
      };
      response.once('drain', done);
      gone.addEventListener('abort', done);
      if (gone.aborted) done();
    });
  }
}

/**
 * Whether the bytes begin with a JSON-RPC message that has a result, rather than with a notification or an
 * error. The id, which can have any length, may come before the result. Neither `"result":` nor `"error":`
 * can occur inside a string, because the quotes in strings are escaped.
 */
function isResult(chunk: Uint8Array): boolean {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const result = bytes.indexOf('"result":');
  return result >= 0 && !bytes.subarray(0, result).includes('"error":');
}
