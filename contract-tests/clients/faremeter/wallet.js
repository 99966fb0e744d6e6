import { readFileSync } from 'node:fs';
import { lookupKnownSPLToken } from '@faremeter/info/solana';
import { createPaymentHandler } from '@faremeter/payment-solana/exact';
import { createLocalWallet } from '@faremeter/wallet-solana';

const key = Uint8Array.from(JSON.parse(readFileSync(process.env.KEYPAIR, 'utf8')));
const wallet = await createLocalWallet('devnet', key);
const { address } = lookupKnownSPLToken('devnet', 'USDC');

/** The wallet needs no RPC server, because the challenge names decimals, token program and a recent blockhash. */
export const handlers = [createPaymentHandler(wallet, address)];
