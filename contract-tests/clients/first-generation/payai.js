import { readFileSync } from 'node:fs';
import { Keypair } from '@solana/web3.js';

// The package is written for browsers: it binds `fetch` to the window.
globalThis.window = globalThis;
const { createX402Client } = await import('@payai/x402-solana/client');

const { COINSLOT_URL, KEYPAIR, RPC_URL } = process.env;
const keypair = Keypair.fromSecretKey(Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8'))));
const client = createX402Client({
  wallet: {
    address: keypair.publicKey.toBase58(),
    signTransaction: async transaction => {
      transaction.sign([keypair]);
      return transaction;
    },
  },
  network: 'solana-devnet',
  rpcUrl: RPC_URL,
  maxPaymentAmount: 1_000_000n,
});
const answer = await client.fetch(`${COINSLOT_URL}/v1/summarize?x402Version=1`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ text: 'The museum opens late on Fridays. Admission is free then.' }),
});
const { summary } = await answer.json();
if (answer.status !== 200 || !summary || !answer.headers.get('X-PAYMENT-RESPONSE')) {
  throw new Error(`status ${answer.status}`);
}
