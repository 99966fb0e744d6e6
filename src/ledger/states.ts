/** The states of a payment and the legal transitions between them, as plain data. */

/**
 * - `claimed`: reserved by a server that is working on it; no settle request was sent.
 * - `settling`: a settle request was, or may have been, sent.
 * - `released`: it was proven that the money did not move.
 * - `delivered`: the money moved and the answer exists.
 * - `owed`: the money moved and the answer does not exist yet.
 * - `refunded`: the operator paid the money back.
 */
export type State = 'claimed' | 'settling' | 'released' | 'delivered' | 'owed' | 'refunded';

export const STATES: readonly State[] = ['claimed', 'settling', 'released', 'delivered', 'owed', 'refunded'];

/** The cause of a transition: the server's own work, proof found on chain, or a command of the operator (also with proof from the chain). */
export type TransitionCause = 'work' | 'chain' | 'operator';

type Transition = { readonly from: State; readonly to: State; readonly grounds: readonly TransitionCause[] };

/** Every legal transition. A row may only be deleted while it is `claimed`. */
export const TRANSITIONS: readonly Transition[] = [
  { from: 'claimed', to: 'settling', grounds: ['work'] },
  // Only for a transfer found on chain, after the ledger was restored from a backup older than the settlement.
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
 * How a refund is sent:
 * - `wallet`: the operator opens a payment link in a wallet.
 * - `key`: this program signs and sends it with a key.
 * - `recorded`: it was sent by other means and recorded afterwards.
 */
export type RepaymentWay = 'wallet' | 'key' | 'recorded';

/**
 * - `asked`: a wallet may pay the link.
 * - `sending`: it is being sent with a key; the signed transaction may land.
 * - `done`: the transfer landed.
 * - `failed`: the signed transaction can provably never land.
 * - `cancelled`: it will not be sent.
 */
export type RepaymentState = 'asked' | 'sending' | 'done' | 'failed' | 'cancelled';

/** The cause of a refund: the operator, or the setting that refunds owed payments automatically. */
export type RepaymentCause = 'operator' | 'policy';
