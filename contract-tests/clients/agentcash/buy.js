import { readFileSync } from 'node:fs';
import { buy } from './agentcash.js';

/** Ten different calls in a row, most of them at the same price. agentcash signs without a memo, so such payments could be identical. */
const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8'));
const paid = Object.entries(paths).filter(([, { post }]) => post?.['x-price']);
for (const [path, { post }] of paid) await buy(path, post.requestBody.content['application/json'].example);
for (const day of ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday'])
  await buy('/v1/summarize', { text: `The harbour bridge closes on ${day}. Ferries run every ten minutes.` });
if (paid.length !== 5) throw new Error(`bought ${paid.length} operations instead of 5`);
