import type { Amount } from './amount.js';

/** What a call asks for, as far as its price may depend on it. */
export type Asked = {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
};

/** What a call of an operation costs. */
export interface Price {
  readonly most: Amount;
  readonly least: Amount;
  /** Whether it depends on what is asked for, so that nobody knows it before the body is read. If not, most, least and quote are one. */
  readonly needsBody: boolean;
  /** The price of a call whose body is valid: the same for the same call, from `least` to `most`. */
  quote(asked: Asked): Amount;
}

/** Reads the prices of one kind from `x-price`. */
export type PriceKind = {
  /** The keys that it reads. Those of every price are `mode`, `currency` and `flow`. */
  readonly keys: readonly string[];
  /** @throws Error whose message says what is wrong, beginning with the name of the key */
  read(xPrice: Readonly<Record<string, unknown>>): Price;
};
