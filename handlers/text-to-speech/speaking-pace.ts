import type { Expected } from 'coinslot';
import { speakingSeconds } from './speaking-time.js';

/** The assumed pace before the first speech: the embedded engine takes about this many ms for a second of speech. */
const FIRST_MS_PER_SECOND = 25;
const NEWEST_SHARE = 0.3;
/** Shorter speeches count less towards the pace, because starting the engine takes up much of their time. */
const WHOLE_SECONDS = 60;
/** The time it takes to say a symbol that is spoken by its name: dollar, per cent, an emoji. */
const SIGN_SECONDS = 0.6;
const SIGNS = /[^\p{L}\p{M}\p{N}\p{P}\s]|[%&@#*/\\]/gu;

/** Predicts how long an engine will take for a text, from its estimated speaking time and the time that earlier speeches took. */
export class SpeakingPace {
  readonly #now: () => number;
  #msPerSecond = FIRST_MS_PER_SECOND;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** @param withinMs see `Expected` */
  expect(text: string, withinMs: number): Expected {
    return { ms: secondsOf(text) * this.#msPerSecond, withinMs };
  }

  /** Generates speech, and adjusts the pace to how long that took. */
  async timed<T>(text: string, make: () => Promise<T>): Promise<T> {
    const startedAt = this.#now();
    const speech = await make();
    const seconds = secondsOf(text);
    const pace = (this.#now() - startedAt) / seconds;
    this.#msPerSecond += NEWEST_SHARE * Math.min(1, seconds / WHOLE_SECONDS) * (pace - this.#msPerSecond);
    return speech;
  }
}

/** At least a second, because even a short text starts an engine. */
function secondsOf(text: string): number {
  const signs = text.match(SIGNS)?.length ?? 0;
  return Math.max(1, speakingSeconds(text) + signs * SIGN_SECONDS);
}
