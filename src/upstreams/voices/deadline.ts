/** Why a signal of `untilDeadline` aborted, when it was not the caller. */
export class DeadlinePassed extends Error {}

/**
 * Runs `work` with a signal that aborts when `parent` does or after `ms`, with `DeadlinePassed` as its reason. It
 * settles then, even if `work` takes longer to notice.
 */
export async function untilDeadline<T>(
  ms: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  parent.throwIfAborted();
  // Not AbortSignal.any with AbortSignal.timeout: on Node 20 a combined signal can be collected before it fires.
  const controller = new AbortController();
  const aborted = new Promise<void>(resolve => {
    controller.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const timer = setTimeout(() => controller.abort(new DeadlinePassed(`not done within ${ms} ms`)), ms);
  const follow = () => controller.abort(parent.reason);
  parent.addEventListener('abort', follow, { once: true });
  try {
    const cut = aborted.then((): never => {
      throw controller.signal.reason;
    });
    return await Promise.race([work(controller.signal), cut]);
  } finally {
    clearTimeout(timer);
    parent.removeEventListener('abort', follow);
  }
}
