import { readFileSync } from 'node:fs';
import bs58 from 'bs58';
import { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } from 'x402-fetch';

const { COINSLOT_URL, KEYPAIR, RPC_URL } = process.env;
const key = bs58.encode(Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8'))));
const config = { svmConfig: { rpcUrl: RPC_URL } };
const pay = wrapFetchWithPayment(fetch, await createSigner('solana-devnet', key), 20_000n, undefined, config);
const answer = await pay(`${COINSLOT_URL}/v1/summarize?x402Version=1`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ text: 'The bridge will close on Monday. Ferries run every ten minutes.' }),
});
const { summary } = await answer.json();
const receipt = decodeXPaymentResponse(answer.headers.get('X-PAYMENT-RESPONSE'));
if (answer.status !== 200 || !summary || !receipt.success) throw new Error(`status ${answer.status}`);
