import type { GivenValues } from '../../config/given-values.js';
import { KeyPairFault, readKeyPairFile } from '../../rails/solana/key-pair.js';

/** The operator's own addresses, including the canary's. Invalid addresses and unreadable keys are ignored. */
export function ownWalletsIn(given: GivenValues): string[] {
  const named = (given.of('OWN_WALLETS') ?? '').split(',').map(part => part.trim());
  return [...named.filter(part => part !== ''), ...canaryIn(given)];
}

function canaryIn(given: GivenValues): string[] {
  const file = given.of('CANARY_KEYPAIR');
  if (file === undefined) return [];
  try {
    return [readKeyPairFile(file).address];
  } catch (error) {
    if (error instanceof KeyPairFault) return [];
    throw error;
  }
}
