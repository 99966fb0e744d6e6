import { wrap } from '@faremeter/fetch';
import { buyAll } from './operations.js';
import { handlers } from './wallet.js';

/** `fetch` for clients that take the PAYMENT-REQUIRED header to mean x402 v2: they find the v1 challenge in the body. */
const fetchV1: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  if (answer.status !== 402 || !answer.url.includes('x402Version=1')) return answer;
  const headers = new Headers(answer.headers);
  headers.delete('PAYMENT-REQUIRED');
  return new Response(answer.body, { status: 402, headers });
};

const pay = wrap(fetchV1, { handlers });

await buyAll(pay, '?x402Version=1', 'X-PAYMENT-RESPONSE');
