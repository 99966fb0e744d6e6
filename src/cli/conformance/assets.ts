/** A Solana address. */
export const BASE58 = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

/** The USDC mints on Solana's networks and the USDC contract on Base. They all have six decimals. */
const DOLLARS = new Set([
  'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
]);

/** Whether an asset is one of these tokens. */
export function isDollar(asset: string): boolean {
  return DOLLARS.has(asset) || DOLLARS.has(asset.toLowerCase());
}
