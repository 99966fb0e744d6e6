import type { Now } from './clock.js';
import type { Engine } from './engine.js';
import type { RefusedClaims } from './refused-claims.js';

/** An open database and what is needed to talk to it. */
export type Connection = { readonly engine: Engine; readonly now: Now };

/** A connection of a server: it claims, so it has numbers for its claims. */
export type ServerConnection = Connection & {
  /** @returns a number that no claim of this owner had before */
  readonly nextClaim: () => number;
  readonly refused: RefusedClaims;
};
