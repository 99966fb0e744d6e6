import { readFileSync } from 'node:fs';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';

const { KEYPAIR = '', RPC_URL } = process.env;
const key = Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8')) as number[]);
export const signer = await createKeyPairSignerFromBytes(key);
const wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl: RPC_URL }));

/** A `fetch` that, after a 402, pays at most one dollar and repeats the call. */
export const pay = wrapFetchWithPayment(fetch, wallet);
