import { wrap } from '@faremeter/fetch';
import { buyAll } from './operations.js';
import { handlers } from './wallet.js';

const pay = wrap(fetch, { handlers });

await buyAll(pay, '?x402Version=1', 'X-PAYMENT-RESPONSE');
