/** Translates simulation failures that a buyer can correct. */
export function explainRefusal(reason: string): string {
  if (/blockhash not found|BlockhashNotFound/i.test(reason)) {
    return `blockhash: expired or unknown, sign a new payment (${reason})`;
  }
  if (/insufficient|custom program error: #?(0x)?1\b|Custom":\s*"?1\b/i.test(reason)) {
    return `funds: the payer has too little USDC (${reason})`;
  }
  if (/AccountNotFound|InvalidAccountData|could not find account/i.test(reason)) {
    return `funds: the payer has no USDC account (${reason})`;
  }
  if (reason.endsWith('_simulation_failed')) {
    return `transaction: it would fail on chain, for instance because the payer has too little USDC or the blockhash has expired (${reason})`;
  }
  return `refused by the facilitator: ${reason}`;
}
