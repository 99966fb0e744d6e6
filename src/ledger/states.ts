/** The life of a payment, as plain data: which states exist and which moves are legal. Nothing here does I/O. */

/**
 * - `claimed`: reserved by a server that is working on it; nobody was asked for money.
 * - `settling`: a facilitator was, or may have been, asked to move the money.
 * - `released`: the money was proven not to have moved.
 * - `delivered`: the money moved and the answer exists.
 * - `owed`: the money moved and the answer does not exist yet.
 * - `refunded`: the operator paid the money back.
 */
export type State = 'claimed' | 'settling' | 'released' | 'delivered' | 'owed' | 'refunded';

export const STATES: readonly State[] = ['claimed', 'settling', 'released', 'delivered', 'owed', 'refunded'];

/** What entitles a move: the server's own work, proof found on chain, or the operator's word. */
export type TransitionCause = 'work' | 'chain' | 'operator';

type Transition = { readonly from: State; readonly to: State; readonly grounds: readonly TransitionCause[] };

/** Every legal move. Deleting a row is legal from `claimed` alone. */
export const TRANSITIONS: readonly Transition[] = [
  { from: 'claimed', to: 'settling', grounds: ['work'] },
  { from: 'settling', to: 'released', grounds: ['work', 'chain'] },
  { from: 'settling', to: 'delivered', grounds: ['work', 'chain'] },
  { from: 'settling', to: 'owed', grounds: ['work', 'chain'] },
  { from: 'released', to: 'delivered', grounds: ['chain'] },
  { from: 'released', to: 'owed', grounds: ['chain'] },
  { from: 'owed', to: 'delivered', grounds: ['work', 'chain'] },
  { from: 'owed', to: 'refunded', grounds: ['operator'] },
];

/** @returns whether a payment may go `from` one state `to` another on this ground. */
export function mayTransition(from: State, to: State, ground: TransitionCause): boolean {
  return TRANSITIONS.some(move => move.from === from && move.to === to && move.grounds.includes(ground));
}

/** @returns the states from which `to` may be reached on this ground; the store's UPDATE statements are made from it. */
export function sourcesOf(to: State, ground: TransitionCause): State[] {
  return STATES.filter(from => mayTransition(from, to, ground));
}
