import { readFileSync } from 'node:fs';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';

// For languages without an x402 client: takes the PAYMENT-REQUIRED header of a 402 as its argument, and prints PAYMENT-SIGNATURE.
const key = Uint8Array.from(JSON.parse(readFileSync(process.env.KEYPAIR ?? '', 'utf8')) as number[]);
const scheme = new ExactSvmScheme(await createKeyPairSignerFromBytes(key), { rpcUrl: process.env.RPC_URL });
const client = new x402HTTPClient(new x402Client().register('solana:*', scheme));
const required = client.getPaymentRequiredResponse(() => process.argv[2], undefined);
const headers = client.encodePaymentSignatureHeader(await client.createPaymentPayload(required));
process.stdout.write(headers['PAYMENT-SIGNATURE'] ?? '');
