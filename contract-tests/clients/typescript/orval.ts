import { summarize, textToSpeech } from './generated/orval.js';
import { expectPaid, expectThat, expectWav, TEXT } from './check.js';
import { payWith } from './orval-fetch.js';
import { pay } from './wallet.js';

payWith(pay);
const summary = await summarize({ text: TEXT });
expectPaid(summary.status, summary.headers.get('PAYMENT-RESPONSE'));
expectThat(summary.status === 200 && summary.data.summary, 'no summary');

const speech = await textToSpeech({ text: 'One coin.' });
expectPaid(speech.status, speech.headers.get('PAYMENT-RESPONSE'));
expectThat(speech.status === 200, 'no speech');
expectWav(await speech.data.arrayBuffer());
