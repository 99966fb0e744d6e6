import createClient from 'openapi-fetch';
import type { paths } from './generated/paths.js';
import { expectPaid, expectThat, expectWav, TEXT, url } from './check.js';
import { pay } from './wallet.js';

const client = createClient<paths>({ baseUrl: url, fetch: pay });
const summary = await client.POST('/v1/summarize', { body: { text: TEXT } });
expectPaid(summary.response.status, summary.response.headers.get('PAYMENT-RESPONSE'));
expectThat(summary.data?.summary, 'no summary');

const speech = await client.POST('/v1/tts', { body: { text: 'One coin.' }, parseAs: 'arrayBuffer' });
expectPaid(speech.response.status, speech.response.headers.get('PAYMENT-RESPONSE'));
expectThat(speech.data, 'no speech');
expectWav(speech.data);

const voices = await client.GET('/tts/v1/voices');
expectThat(
  voices.data?.voices.some(({ id }) => id === voices.data.default),
  'the default voice is not listed',
);
