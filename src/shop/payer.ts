import { importFromSandbox } from '../endpoints/sandbox-package.js';

/** A signed payment as stored: JSON. Anyone who has it can send it and see its outcome on chain. */
export type KeptPayment = {
  /** Hex sha256 of the transaction's message. */
  id: string;
  /** Atomic units of USDC. */
  amount: string;
  payTo: string;
  network: string;
  blockhash: string;
  transaction: string;
  signedAt: number;
  signedOnChain?: { slot: number; time: number };
  /** The payload to send: x402's PaymentPayload. */
  payment: Record<string, unknown>;
};

/** The state of a payment on chain. `dead`: it was not settled and never will be. */
export type Fate = { kind: 'open'; why: string } | { kind: 'dead' } | { kind: 'landed'; signature: string };

/** A challenge that can be paid. `sign` makes a payment, which must be stored before it is sent. The message of its error is a sentence. */
export type Priced = { amount: bigint; payTo: string; sign(): Promise<KeptPayment> };

/**
 * Pays other shops in USDC. It stores nothing: the caller must store a payment before sending it, and sign no other while it is valid.
 */
export type Payer = {
  address: string;
  /** Reads the offer of a 402, or returns a sentence that says why it can't be paid. */
  read(answer: { status: number; body: Buffer; header(name: string): string | undefined }): Priced | string;
  /** The header that carries a payment. */
  headers(payment: KeptPayment): Record<string, string>;
  /** Never rejects. */
  fate(payment: KeptPayment): Promise<Fate>;
  /** @throws Error with a sentence as its message, if the chain shows that the wallet holds less than the amount */
  checkFunds(amount: bigint): Promise<void>;
};

export type PayerOptions = {
  /** 64 bytes, as solana-keygen writes them. */
  secretKey: Uint8Array;
  /** CAIP-2. No payment on another network is signed. */
  network: string;
  /** Default: the public RPC server for the network. */
  rpcUrl: string | undefined;
  /** The fee payer for challenges that name none. */
  feePayer?: string | undefined;
};

/**
 * Opens the wallet that `coinslot buy` uses, for a handler that buys from another shop.
 * @param purpose what needs the wallet, such as a setting; the error message begins with it
 * @throws ConfigFault if the package coinslot-sandbox, which contains the wallet, is not installed
 */
export async function openPayer(options: PayerOptions, purpose: string): Promise<Payer> {
  const { createPayer } = await importFromSandbox<{ createPayer: (options: PayerOptions) => Promise<Payer> }>(
    'wallet/single-payer.js',
    purpose,
  );
  return createPayer(options);
}
