/** The abort reason of an expired deadline. It has the name that `AbortSignal.timeout` uses. */
export class DeadlineExceeded extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Runs `work` with a signal that aborts after `ms` or together with `parent`, and settles when `work` does.
 * Use this instead of `AbortSignal.any` with `AbortSignal.timeout`: on Node 20 such a signal can be collected before it fires.
 */
export async function withAbortAfter<T>(
  ms: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new DeadlineExceeded(`not done within ${ms} ms`)), ms);
  const follow = () => controller.abort(parent.reason);
  parent.addEventListener('abort', follow, { once: true });
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    parent.removeEventListener('abort', follow);
  }
}

/**
 * Like `withAbortAfter`, but settles at the deadline even if `work` ignores its signal. Throws `DeadlineExceeded`, the parent's
 * reason, or what `work` throws.
 */
export function withDeadline<T>(
  ms: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withAbortAfter(ms, parent, signal => orAbort(work(signal), signal));
}

/** Runs `work` with a signal that aborts when the first of two signals does, with the same reason. */
export async function withEither<T>(
  first: AbortSignal,
  second: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  first.throwIfAborted();
  second.throwIfAborted();
  const both = new AbortController();
  const onFirst = () => both.abort(first.reason);
  const onSecond = () => both.abort(second.reason);
  first.addEventListener('abort', onFirst, { once: true });
  second.addEventListener('abort', onSecond, { once: true });
  try {
    return await work(both.signal);
  } finally {
    first.removeEventListener('abort', onFirst);
    second.removeEventListener('abort', onSecond);
  }
}

/** Waits for `promise`, or throws the signal's reason as soon as it aborts; the work behind the promise continues. */
export async function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave = () => {};
  const aborted = new Promise<void>(resolve => {
    leave = resolve;
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', leave, { once: true });
  });
  try {
    return await Promise.race([
      promise,
      aborted.then((): never => {
        throw signal.reason;
      }),
    ]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

/** Waits, or throws the signal's reason. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let timer: NodeJS.Timeout | undefined;
  let abort = () => {};
  try {
    await new Promise<void>((resolve, reject) => {
      abort = () => reject(signal.reason as Error);
      signal.addEventListener('abort', abort, { once: true });
      timer = setTimeout(resolve, ms);
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
