import type { Now } from './clock.js';
import type { Engine } from './engine.js';
import type { ReceiverBinding } from './receiver-binding.js';

/** An open database and its clock. */
export type Connection = { readonly engine: Engine; readonly now: Now };

/** A server's connection, with numbers for its claims. */
export type ServerConnection = Connection & {
  /** @returns a number that no earlier claim of this owner had */
  readonly nextClaim: () => number;
  readonly receiver: ReceiverBinding;
};
