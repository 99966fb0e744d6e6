/** Thrown by `withDeadline` when the time is up. */
export class DeadlineExceeded extends Error {}

/**
 * Runs `work` with a signal that aborts after `ms` or together with `parent`, and settles then even if `work` ignores its
 * signal. Throws `DeadlineExceeded`, the parent's reason, or what `work` throws.
 */
export async function withDeadline<T>(
  ms: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  // Not AbortSignal.any and AbortSignal.timeout: on Node 20 a combined signal can be collected before it fires.
  const timer = setTimeout(() => controller.abort(new DeadlineExceeded(`not done within ${ms} ms`)), ms);
  const follow = () => controller.abort(parent.reason);
  parent.addEventListener('abort', follow, { once: true });
  try {
    return await orAbort(work(controller.signal), controller.signal);
  } finally {
    clearTimeout(timer);
    parent.removeEventListener('abort', follow);
  }
}

/** Waits for `promise`, or throws the signal's reason as soon as it aborts; the promise itself goes on. */
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
