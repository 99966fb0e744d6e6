import type { Now } from './clock.js';
import type { Engine } from './engine.js';
import type { Audience } from './outbox.js';
import type { ReceiverBinding } from './receiver-binding.js';

/** An open database, its clock, and whether changes write events. */
export type Connection = { readonly engine: Engine; readonly now: Now; readonly audience: Audience };

/** The connection of a selling server. */
export type ServerConnection = Connection & {
  /** @returns a number that no earlier claim of this owner had */
  readonly nextClaim: () => number;
  readonly receiver: ReceiverBinding;
};
