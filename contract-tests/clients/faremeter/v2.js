import { wrap } from '@faremeter/fetch';
import { buyAll } from './operations.js';
import { handlers } from './wallet.js';

await buyAll(wrap(fetch, { handlers }), '', 'PAYMENT-RESPONSE');
