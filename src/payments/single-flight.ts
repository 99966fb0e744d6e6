/** One flight: what comes of it, and how to give it up. */
type Flight<T> = { readonly landing: Promise<T>; readonly abandon: AbortController };

/** Runs at most one thing per key at a time; everybody else who wants it waits for that one. */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** What comes of the flight that is under way for a key, if one is. */
  get(key: string): Promise<T> | undefined {
    return this.#flights.get(key)?.landing;
  }

  /** Begins one unless one is under way. `fly` must not reject; its signal aborts when the flight is abandoned. */
  start(key: string, fly: (abandoned: AbortSignal) => Promise<T>): void {
    if (this.#flights.has(key)) return;
    const abandon = new AbortController();
    const landing = fly(abandon.signal);
    this.#flights.set(key, { landing, abandon });
    void landing.finally(() => this.#flights.delete(key));
  }

  /** Nobody wants it any more. */
  abandon(key: string): void {
    this.#flights.get(key)?.abandon.abort(new Error('nobody waits any more'));
  }

  /** Resolves once nothing is under way. */
  async idle(): Promise<void> {
    while (this.#flights.size > 0)
      await Promise.allSettled([...this.#flights.values()].map(flight => flight.landing));
  }
}
