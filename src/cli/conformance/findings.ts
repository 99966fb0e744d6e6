/** The result of a check: one promise of a shop, and how it is broken, if it is. */
export type Finding = {
  promise: string;
  fault: string | undefined;
  /** True if a broken promise affects only some clients: those behind a proxy, in a browser, or of an older version. */
  advice: boolean;
};

/** The promise is broken; `message` says how. */
export class Broken extends Error {}

/** @throws Broken with the message */
export function must(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Broken(message);
}

/** Collects findings. A check that fails never ends the others. */
export class Findings {
  readonly all: Finding[] = [];

  /** If this promise is broken, a client cannot pay, is misled, or loses money. */
  must(promise: string, check: () => Promise<void> | void): Promise<void> {
    return this.#check(promise, false, check);
  }

  /** If this promise is broken, some clients have trouble. */
  should(promise: string, check: () => Promise<void> | void): Promise<void> {
    return this.#check(promise, true, check);
  }

  async #check(promise: string, advice: boolean, check: () => Promise<void> | void): Promise<void> {
    try {
      await check();
      this.all.push({ promise, fault: undefined, advice });
    } catch (error) {
      const { message, cause } = error as Error;
      const why = cause instanceof Error ? ` (${cause.message})` : '';
      this.all.push({ promise, fault: `${message.split('\n')[0]}${why}`, advice });
    }
  }
}
