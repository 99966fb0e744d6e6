/** Counts the calls under way, in total and by source. */
export class CallsInHand {
  readonly #limits: { all: number; ofSource: number };
  readonly #sources = new Map<string, number>();
  #all = 0;

  constructor(limits = { all: 16, ofSource: 4 }) {
    this.#limits = limits;
  }

  /** @returns a function to call when the call has ended; undefined if too many are under way */
  enter(source: string): (() => void) | undefined {
    const own = this.#sources.get(source) ?? 0;
    if (this.#all >= this.#limits.all || own >= this.#limits.ofSource) return undefined;
    this.#all += 1;
    this.#sources.set(source, own + 1);
    return () => this.#leave(source);
  }

  #leave(source: string): void {
    this.#all -= 1;
    const left = (this.#sources.get(source) ?? 1) - 1;
    if (left > 0) this.#sources.set(source, left);
    else this.#sources.delete(source);
  }
}
