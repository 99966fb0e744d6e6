import { buy } from './agentcash.js';

/** Ten concurrent calls at one price, each from its own process: ten answers and ten transactions. */
const bought = Array.from({ length: 10 }, (_, hour) =>
  buy('/v1/summarize', { text: `The harbour bridge closes at ${hour}. Ferries run every ten minutes.` }),
);
const transactions = await Promise.all(bought);
console.log(transactions.join('\n'));
if (!transactions.every(Boolean) || new Set(transactions).size !== 10)
  throw new Error('not ten transactions');
