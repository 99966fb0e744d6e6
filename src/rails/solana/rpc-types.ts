/** The commitment of a read. `processed` is not used, because it can be rolled back. */
export type Finality = 'confirmed' | 'finalized';

/** An account as it was at `slot`. `data` holds its first bytes, at most as many as were requested. */
export type Account = { owner: string; lamports: number; executable: boolean; data: Buffer; slot: number };

export type LatestBlockhash = { blockhash: string; lastValidBlockHeight: number; slot: number };

/** One entry of an address's history. `failed`: the transaction had no effect except its fee. */
export type SignatureEntry = { signature: string; slot: number; failed: boolean; blockTime: number | null };

/** A landed transaction; `message` holds the signed bytes exactly as on chain. */
export type LandedTransaction = {
  slot: number;
  failed: boolean;
  transaction: Uint8Array;
  message: Uint8Array;
  /** Seconds since 1970; null if the server does not know. */
  blockTime: number | null;
  /** The change of each token account's balance, in atomic units; null if the server does not report it. */
  tokens: TokenChange[] | null;
};

export type TokenChange = { mint: string; owner: string; change: bigint };

/** How far a transaction has come. `failed`: it had no effect except its fee. */
export type SignatureStatus = { finality: 'processed' | Finality; failed: boolean; slot: number };

/** `error`: why the transaction would fail, as the RPC server names it; null if it would succeed. */
export type Simulation = { error: string | null };
