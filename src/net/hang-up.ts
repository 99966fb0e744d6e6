import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { withAbortAfter } from './deadline.js';

/** The path under which a server holds test calls open until their callers hang up, and reports the outcome of each. */
export const HELD_PATH = '/.well-known/coinslot/held';
/** The outcome of a held call: still held, ended without a hang-up, or the server saw its caller hang up. */
export type HeldOutcome = 'held' | 'stayed' | 'left';

const ALL_MS = 7_500;
const ASK_MS = 2_000;
const PAUSE_MS = 50;
const NEVER = new AbortController().signal;

/**
 * Calls a shop at its public URL, hangs up, and asks whether the server noticed. Nothing is bought.
 * @returns whether the server noticed; undefined if that can't be known, because no server answers or the
 * server does not hold test calls
 */
export async function hangUpIsTold(
  publicUrl: string,
  signal: AbortSignal = NEVER,
): Promise<boolean | undefined> {
  const url = `${publicUrl}${HELD_PATH}/${randomBytes(16).toString('hex')}`;
  const caller = new AbortController();
  let answered = false;
  try {
    return await withAbortAfter(ALL_MS, signal, async bounded => {
      const gone = request(url, caller.signal).finally(() => (answered = true));
      while ((await outcomeOf(url, bounded)) !== 'held') {
        if (answered) return undefined;
        await sleep(PAUSE_MS, undefined, { signal: bounded });
      }
      caller.abort();
      await gone;
      for (;;) {
        const outcome = await outcomeOf(url, bounded);
        if (outcome === 'left' || outcome === 'stayed') return outcome === 'left';
        await sleep(PAUSE_MS, undefined, { signal: bounded });
      }
    });
  } catch {
    return undefined;
  } finally {
    caller.abort();
  }
}

/** The outcome of a held call. If a proxy distributes requests to several servers, the answer may come from a server that does not hold this call. */
async function outcomeOf(url: string, signal: AbortSignal): Promise<HeldOutcome | undefined> {
  const answer = await withAbortAfter(ASK_MS, signal, bounded => request(`${url}/outcome`, bounded));
  return answer?.outcome;
}

/** A small JSON answer; undefined for any other. */
async function request(url: string, signal: AbortSignal): Promise<{ outcome?: HeldOutcome } | undefined> {
  try {
    const response = await fetch(url, { signal, redirect: 'manual' });
    if (response.status === 200) return (await response.json()) as { outcome?: HeldOutcome };
    await response.body?.cancel();
  } catch {
    // A failed request is repeated until the time is up.
  }
  return undefined;
}
