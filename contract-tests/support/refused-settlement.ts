import { NETWORKS } from '../../src/rails/solana/networks.js';

/** The body with which a facilitator refuses to settle before it signs (x402 SettlementResponse). */
export function refusedSettlement(errorReason: string): string {
  return JSON.stringify({ success: false, errorReason, transaction: '', network: NETWORKS.sandbox.caip2 });
}
