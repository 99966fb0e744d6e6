import axios from 'axios';
import { wrapAxiosWithPayment, x402Client } from '@x402/axios';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expectPaid, expectThat, TEXT, url } from './check.js';
import { signer } from './wallet.js';

const scheme = new ExactSvmScheme(signer, { rpcUrl: process.env.RPC_URL });
const client = wrapAxiosWithPayment(
  axios.create({ baseURL: url }),
  new x402Client().register('solana:*', scheme),
);
const answer = await client.post<{ summary: string }>('/v1/summarize', { text: TEXT });
expectPaid(answer.status, answer.headers['payment-response']);
expectThat(answer.data.summary, 'no summary');
