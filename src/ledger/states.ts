/** The states of a payment and the legal transitions between them, as plain data. */

/**
 * - `claimed`: reserved by a server that is working on it; no settle request was sent.
 * - `settling`: a settle request was, or may have been, sent.
 * - `released`: the money was proven not to have moved.
 * - `delivered`: the money moved and the answer exists.
 * - `owed`: the money moved and the answer does not exist yet.
 * - `refunded`: the operator paid the money back.
 */
export type State = 'claimed' | 'settling' | 'released' | 'delivered' | 'owed' | 'refunded';

export const STATES: readonly State[] = ['claimed', 'settling', 'released', 'delivered', 'owed', 'refunded'];

/** The cause of a transition: the server's own work, proof found on chain, or the operator (who proves it by the chain, too). */
export type TransitionCause = 'work' | 'chain' | 'operator';

type Transition = { readonly from: State; readonly to: State; readonly grounds: readonly TransitionCause[] };

/** Every legal transition. A row may only be deleted while it is `claimed`. */
export const TRANSITIONS: readonly Transition[] = [
  { from: 'claimed', to: 'settling', grounds: ['work'] },
  // Only if its transfer is on chain: the ledger was restored from a copy that is older than its settlement.
  { from: 'claimed', to: 'owed', grounds: ['operator'] },
  { from: 'settling', to: 'released', grounds: ['work', 'chain'] },
  { from: 'settling', to: 'delivered', grounds: ['work', 'chain'] },
  { from: 'settling', to: 'owed', grounds: ['work', 'chain', 'operator'] },
  { from: 'released', to: 'delivered', grounds: ['chain'] },
  { from: 'released', to: 'owed', grounds: ['chain', 'operator'] },
  { from: 'owed', to: 'delivered', grounds: ['work', 'chain'] },
  { from: 'owed', to: 'refunded', grounds: ['operator'] },
];

/** @returns whether this cause allows the transition `from` one state `to` another. */
export function mayTransition(from: State, to: State, ground: TransitionCause): boolean {
  return TRANSITIONS.some(move => move.from === from && move.to === to && move.grounds.includes(ground));
}

/** @returns the states from which this cause allows a transition to `to`; the UPDATE statements are built from it. */
export function sourcesOf(to: State, ground: TransitionCause): State[] {
  return STATES.filter(from => mayTransition(from, to, ground));
}

/**
 * How money goes back:
 * - `wallet`: somebody pays a link with a wallet of theirs.
 * - `key`: this program sends it with a key.
 * - `recorded`: it was sent by hand and is entered afterwards.
 */
export type RepaymentWay = 'wallet' | 'key' | 'recorded';

/**
 * - `asked`: a wallet may pay its link. `sending`: it is being sent with a key; the signed transaction may land.
 * - `done`: it landed. `failed`: what was signed is proven never to land. `cancelled`: nobody is to send it any more.
 */
export type RepaymentState = 'asked' | 'sending' | 'done' | 'failed' | 'cancelled';

/** The cause of a refund: the operator, or the setting that refunds owed payments. */
export type RepaymentCause = 'operator' | 'policy';
