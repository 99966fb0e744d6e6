const WINDOW_MS = 60_000;
const MAX_NAMES = 1_000;

/** Counts events per name and over all in windows of a minute. Forgets the oldest names beyond a thousand. */
export class Limit {
  readonly #perName: number;
  readonly #overall: number;
  readonly #now: () => number;
  readonly #counts = new Map<string, { since: number; count: number }>();
  #all = { since: 0, count: 0 };

  constructor(perName: number, overall: number, now: () => number) {
    this.#perName = perName;
    this.#overall = overall;
    this.#now = now;
  }

  /** Seconds until the next event may happen; 0 for now. */
  wait(name: string): number {
    const own = this.#current(this.#counts.get(name));
    const all = this.#current(this.#all);
    const until = (window: { since: number }) => Math.ceil((window.since + WINDOW_MS - this.#now()) / 1_000);
    if (own.count >= this.#perName) return Math.max(until(own), 1);
    return all.count >= this.#overall ? Math.max(until(all), 1) : 0;
  }

  note(name: string): void {
    const own = this.#current(this.#counts.get(name));
    this.#counts.delete(name);
    this.#counts.set(name, { since: own.since, count: own.count + 1 });
    const all = this.#current(this.#all);
    this.#all = { since: all.since, count: all.count + 1 };
    const oldest = this.#counts.keys().next();
    if (this.#counts.size > MAX_NAMES && !oldest.done) this.#counts.delete(oldest.value);
  }

  #current(window: { since: number; count: number } | undefined): { since: number; count: number } {
    const now = this.#now();
    return window && now - window.since < WINDOW_MS && now >= window.since
      ? window
      : { since: now, count: 0 };
  }
}
