import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** V8's own garbage collector. The flag adds a function to contexts made from now on, and changes nothing else. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const found = runInNewContext('globalThis.gc') as (() => void) | undefined;
  return () => found?.();
}

let collect: (() => void) | undefined;

/**
 * Collects garbage in this thread. Used after work that leaves large buffers outside V8's heap, which V8 would not free for a long time.
 */
export function collectGarbage(): void {
  collect ??= findCollector();
  collect();
}
