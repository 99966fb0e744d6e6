import { readFileSync } from 'node:fs';
import axios from 'axios';
import bs58 from 'bs58';
import { createSigner, decodeXPaymentResponse, withPaymentInterceptor } from 'x402-axios';

const { COINSLOT_URL, KEYPAIR, RPC_URL } = process.env;
const key = bs58.encode(Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8'))));
const signer = await createSigner('solana-devnet', key);
const config = { svmConfig: { rpcUrl: RPC_URL } };
const client = withPaymentInterceptor(axios.create({ baseURL: COINSLOT_URL }), signer, undefined, config);
const answer = await client.post('/v1/summarize?x402Version=1', {
  text: 'The market opens at dawn. It closes at noon.',
});
const receipt = decodeXPaymentResponse(answer.headers['x-payment-response']);
if (answer.status !== 200 || !answer.data.summary || !receipt.success)
  throw new Error(`status ${answer.status}`);
