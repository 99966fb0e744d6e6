/** Tokens sent to this address's accounts are destroyed, because nobody has its key. */
export const INCINERATOR = '1nc1nerator11111111111111111111111111111111';

/** Addresses that own the accounts of every pool or sale of a program. */
const KNOWN_OWNERS: Readonly<Record<string, string>> = {
  [INCINERATOR]: 'burned (incinerator)',
  '5Q544fKrFoe6tsEbD7S8EmxGTJYAKtTVhAW5Q5pge4j1': 'Raydium pools (AMM v4)',
  GpMZbSM2GgvTKHJirzeGfMFoaZ8UR2X7F4v8vHTvxFbL: 'Raydium pools (CPMM)',
  WLHv2UAZm6z4KyaaELi5pjdbJh6RESMva1Rnn8pJVVh: 'Raydium LaunchLab',
};

/** Programs whose own accounts, one for each pool, curve or lock, own the accounts that hold tokens. */
const KNOWN_PROGRAMS: Readonly<Record<string, string>> = {
  whirLbMiicVdio4qvUfM5KAg6Ct8VwpYzGff3uctyCc: 'Orca Whirlpools',
  CAMMCzo5YL8w4VFF8KVHrK22GGUsp5VTaW7grrKgrWqK: 'Raydium pools (CLMM)',
  LBUZKhRxPF3XUpBCjp4YzTKgLccjZhTSDM9YuVaPwxo: 'Meteora pools (DLMM)',
  cpamdpZCGKUy5JxQXB4dcpGPiikHawvSWAd6mEn1sGG: 'Meteora pools (DAMM v2)',
  Eo7WjKq67rjJQSZxS6z3YkapzY3eMj6Xy8X5EQVn5UaB: 'Meteora pools (DAMM v1)',
  pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA: 'PumpSwap pools',
  '6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P': 'Pump.fun bonding curve',
  strmRqUCoQUgGUan5YhzUZa6KqdzwX5L6FpUxfmKg5m: 'Streamflow locks',
  LocpQgucEQHbqNABEYvBvwoxCPsSbG91A1QaQhQQqjn: 'Jupiter Lock',
};

/** The known name of an address that owns token accounts, or of the program that owns it; null if neither is known. */
export function knownAs(owner: string, program: string | null): string | null {
  return KNOWN_OWNERS[owner] ?? (program === null ? null : (KNOWN_PROGRAMS[program] ?? null));
}
