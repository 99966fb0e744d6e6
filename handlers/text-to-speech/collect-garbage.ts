import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** V8's own collection. The flag adds a function to contexts made from now on, and changes nothing else. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const found = runInNewContext('globalThis.gc') as (() => void) | undefined;
  return () => found?.();
}

let collect: (() => void) | undefined;

/**
 * Collects garbage in this thread. For work that leaves large memory outside of V8's heap behind: V8 counts little of it, so that it
 * would stay for a long time.
 */
export function collectGarbage(): void {
  collect ??= findCollector();
  collect();
}
