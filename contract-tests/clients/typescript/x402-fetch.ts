import { expectPaid, expectThat, TEXT, url } from './check.js';
import { pay } from './wallet.js';

const answer = await pay(`${url}/v1/summarize`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ text: TEXT }),
});
const { summary } = (await answer.json()) as { summary: string };
expectPaid(answer.status, answer.headers.get('PAYMENT-RESPONSE'));
expectThat(summary, 'no summary');
