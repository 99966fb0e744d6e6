import type { PricedOperation } from '../contract/contract.js';
import type { Method } from '../methods/method.js';
import type { Challenges, Methods } from '../methods/methods.js';
import type { Transport } from '../observe/observer.js';
import type { Checked, Hinting, Hints } from '../rails/rail.js';

/** The challenges built for an operation and a requested method. */
type Built = Map<PricedOperation, Map<Method, Challenges>>;

/**
 * The challenges. Each is built at its first request and cached while the rail gives the same hints, unless the price depends on the
 * call.
 */
export class Offers {
  readonly methods: Methods;
  readonly #hinting: Hinting;
  /** Cached challenges, keyed by the hints in them. */
  readonly #kept = new WeakMap<Hints, Built>();
  #hints: Hints | undefined;
  /** The challenges with the current hints. */
  #built: Built = new Map();

  constructor(methods: Methods, hinting: Hinting) {
    this.methods = methods;
    this.#hinting = hinting;
  }

  /** The challenge for a call without payment. */
  challenge(operation: PricedOperation, asked: Method, transport: Transport = 'http'): Challenges {
    const hints = this.#hinting.hints({ operation, transport });
    if (operation.pricing.needsBody) return this.methods.challenges(asked, operation, hints);
    if (hints !== this.#hints) this.#turnTo(hints);
    let built = this.#built.get(operation);
    if (!built) this.#built.set(operation, (built = new Map<Method, Challenges>()));
    let challenges = built.get(asked);
    if (challenges) return challenges;
    challenges = this.methods.challenges(asked, operation, hints);
    if (!challenges.each.some(({ method }) => method.fresh)) built.set(asked, challenges);
    return challenges;
  }

  /**
   * The challenge for a call whose payment was refused.
   * @param fresh whether the buyer may reuse the blockhash that the payment was signed with
   * @param receipt the headers of a receipt that goes out with it
   */
  refusal(
    operation: PricedOperation,
    asked: Method,
    error: string,
    fresh: boolean,
    payment?: Checked,
    receipt?: Record<string, string>,
  ): Challenges {
    const hints = this.#hinting.hintsAfter(fresh, payment);
    return this.methods.challenges(asked, operation, hints, error, receipt);
  }

  #turnTo(hints: Hints): void {
    this.#hints = hints;
    this.#built = this.#kept.get(hints) ?? new Map<PricedOperation, Map<Method, Challenges>>();
    this.#kept.set(hints, this.#built);
  }
}
