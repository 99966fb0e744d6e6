/** One task in progress: its result, and how to abandon it. */
type Flight<T> = { readonly landing: Promise<T>; readonly abandon: AbortController };

/** Runs at most one task per key at a time. Later requests for the key share its result. */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** The result of the task in progress for a key, if there is one. */
  get(key: string): Promise<T> | undefined {
    return this.#flights.get(key)?.landing;
  }

  /** Starts a task unless one is in progress. `fly` must not reject; its signal aborts when the task is abandoned. */
  start(key: string, fly: (abandoned: AbortSignal) => Promise<T>): void {
    if (this.#flights.has(key)) return;
    const abandon = new AbortController();
    const landing = fly(abandon.signal);
    this.#flights.set(key, { landing, abandon });
    void landing.finally(() => this.#flights.delete(key));
  }

  /** Aborts the task for a key, because no caller is waiting for it. */
  abandon(key: string): void {
    this.#flights.get(key)?.abandon.abort(new Error('no caller is waiting any more'));
  }

  /** Resolves once no task is in progress. */
  async idle(): Promise<void> {
    while (this.#flights.size > 0)
      await Promise.allSettled([...this.#flights.values()].map(flight => flight.landing));
  }
}
