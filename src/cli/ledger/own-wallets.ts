import type { GivenValues } from '../../config/given-values.js';
import { KeyPairFault, readKeyPairFile } from '../../rails/solana/key-pair.js';

/** The operator's own addresses, with that of the canary. What is no address is nobody's, nor is a key that cannot be read. */
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
