import type { Amount } from './amount.js';

/** The parts of a call that its price may depend on. */
export type Asked = {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly body: unknown;
};

/** A handler's function that returns the price of a call: dollars as a decimal string. */
export type OwnPrice = (asked: Asked) => string | Promise<string>;

/** What a call of an operation costs. */
export interface Price {
  readonly most: Amount;
  readonly least: Amount;
  /** Whether the price depends on the call, so that it is unknown before the body is read. If not, most, least and quote are the same. */
  readonly needsBody: boolean;
  /** What the price depends on, for human readers: `by the length of /body/text: …`. */
  readonly terms?: string;
  /** Whether the operation's handler has a function that returns the price. */
  readonly ofHandler?: true;
  /** The price of a call whose body is valid, from `least` to `most`. Equal calls have equal prices. */
  quote(asked: Asked, own?: OwnPrice): Amount | Promise<Amount>;
}

/** The contract's description of one value of a call. */
export type DescribedValue = {
  /** JSON Schema types; none if the contract does not state any. */
  readonly types: readonly string[];
  /** Whether every call has the value, if only by default. */
  readonly always: boolean;
  /** Whether the value is text that encodes bytes, as base64 or as a data URL. */
  readonly bytes: boolean;
};

/**
 * Finds the value at a JSON pointer into `{ params, query, headers, body }`; undefined if no call has such a
 * value.
 */
export type ValueAt = (steps: readonly string[]) => DescribedValue | undefined;

/** Reads the prices of one kind from `x-price`. */
export type PriceKind = {
  /** The keys that this kind reads, in addition to the keys of every price: `mode`, `currency` and `flow`. */
  readonly keys: readonly string[];
  /**
   * @param valueAt absent where the operation itself can't be read
   * @throws Error whose message says what is wrong, beginning with the name of the key
   */
  read(xPrice: Readonly<Record<string, unknown>>, valueAt?: ValueAt): Price;
};
