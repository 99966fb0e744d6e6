import type * as Web3 from '@solana/web3.js';
import { createRequire } from 'node:module';

/**
 * What every start needs of @solana/web3.js. It is CommonJS, and as an `import` Node reads it twice: that took 160 of the start's
 * milliseconds of processor time and 5 MB. Whoever imports it later gets this very instance.
 */
export const { ComputeBudgetProgram, Connection, PublicKey, SolanaJSONRPCError, VersionedTransaction } =
  createRequire(import.meta.url)('@solana/web3.js') as typeof Web3;

export type Connection = Web3.Connection;
export type ConnectionConfig = Web3.ConnectionConfig;
export type PublicKey = Web3.PublicKey;
export type VersionedMessage = Web3.VersionedMessage;
export type VersionedTransaction = Web3.VersionedTransaction;
