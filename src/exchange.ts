import type { Dispatcher, Pool } from './pool.js';

/** A whole answer. `retryAfter`: its header of that name. */
export type HttpAnswer = { status: number; retryAfter: string | undefined; text: string };

/** Why there is no answer. `late`: the deadline passed or the caller left; `answered`: after the head of an answer had come. */
export class NoAnswer extends Error {
  readonly late: boolean;
  readonly answered: boolean;

  constructor(late: boolean, answered: boolean, cause: unknown) {
    super(cause instanceof Error && cause.message ? cause.message : 'no answer', { cause });
    this.late = late;
    this.answered = answered;
  }
}

/**
 * One HTTP exchange that ends `ms` from now, or as soon as `signal` aborts. Straight on undici's dispatcher: its streams, timers and
 * combined signals cost more than the exchange. The pool bounds the answer's size.
 * @throws NoAnswer
 */
export function exchange(
  pool: Pool,
  request: Dispatcher.DispatchOptions,
  { ms, signal }: { ms: number; signal?: AbortSignal },
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const answer = { status: 0, retryAfter: undefined as string | undefined };
    const chunks: Buffer[] = [];
    let failed: NoAnswer | undefined;
    let abort: ((error: Error) => void) | undefined;
    const leave = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    };
    const fail = (cause: unknown, late: boolean): void => {
      leave();
      failed ??= new NoAnswer(late, answer.status !== 0, cause);
      reject(failed);
      abort?.(failed);
    };
    const stop = (): void => fail(signal?.reason, true);
    const timer = setTimeout(() => fail(new Error(`no answer within ${Math.round(ms)} ms`), true), ms);
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) return stop();
    pool.dispatch(request, {
      onConnect(give) {
        abort = give;
        if (failed) give(failed);
      },
      onHeaders(status, headers) {
        if (status >= 200) Object.assign(answer, { status, retryAfter: headerOf(headers, 'retry-after') });
        return true;
      },
      onData(chunk) {
        chunks.push(chunk);
        return true;
      },
      onComplete() {
        leave();
        resolve({ ...answer, text: Buffer.concat(chunks).toString('utf8') });
      },
      onError(cause) {
        abort = undefined;
        fail(cause, false);
      },
    });
  });
}

/** Names and values take turns in what undici gives. */
function headerOf(headers: Buffer[], name: string): string | undefined {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    if (headers[at]?.toString('latin1').toLowerCase() === name) return headers[at + 1]?.toString('latin1');
  }
  return undefined;
}
