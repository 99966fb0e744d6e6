import { client } from './generated/hey-api/client.gen.js';
import { summarize, textToSpeech } from './generated/hey-api/index.js';
import { expectPaid, expectThat, expectWav, TEXT, url } from './check.js';
import { pay } from './wallet.js';

client.setConfig({ baseUrl: url, fetch: pay });
const summary = await summarize({ body: { text: TEXT } });
expectPaid(summary.response?.status ?? 0, summary.response?.headers.get('PAYMENT-RESPONSE'));
expectThat(summary.data?.summary, 'no summary');

const speech = await textToSpeech({ body: { text: 'One coin.' } });
expectPaid(speech.response?.status ?? 0, speech.response?.headers.get('PAYMENT-RESPONSE'));
expectThat(speech.data, 'no speech');
expectWav(await speech.data.arrayBuffer());
