/** How sure a read is; `processed` is never read, since it can be taken back. */
export type Finality = 'confirmed' | 'finalized';

/** An account. `data` holds its first bytes, at most as many as were asked for. */
export type Account = { owner: string; lamports: number; executable: boolean; data: Buffer };

export type LatestBlockhash = { blockhash: string; lastValidBlockHeight: number; slot: number };

/** One entry of an address's history, the newest first. `failed`: the transaction had no effect but its fee. */
export type SignatureEntry = { signature: string; slot: number; failed: boolean; blockTime: number | null };

/** A landed transaction; `message` is what its signatures sign, byte for byte as the chain has it. */
export type LandedTransaction = {
  slot: number;
  failed: boolean;
  transaction: Uint8Array;
  message: Uint8Array;
  /** Seconds since 1970; null where the server does not know. */
  blockTime: number | null;
  /** By how much each token account grew, in atomic units; null where the server does not say. */
  tokens: TokenChange[] | null;
};

export type TokenChange = { mint: string; owner: string; change: bigint };
