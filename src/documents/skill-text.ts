import type { Contract, PricedOperation } from '../contract/contract.js';
import { objectOf } from '../contract/references.js';
import { MCP_PATH } from '../contract/reserved-names.js';
import { callShape } from '../methods/x402/describe-call.js';
import { resourceUrl } from '../methods/x402/requirements.js';
import type { Selling } from './discovery.js';
import { line } from './llms-text.js';

/** The maximum number of operations to list, because this text goes into a prompt. /llms.txt lists them all. */
const MAX_LISTED = 12;
const MAX_SUMMARY = 120;

/**
 * `/skill.md`: how an agent buys from this shop, in the format of agent skills (name and description, then instructions), short enough for
 * a prompt. Generated from the contract.
 */
export function skillText(contract: Contract, selling: Selling): string {
  const { publicUrl } = selling;
  const { paid } = contract;
  const title = line(objectOf(contract.document.info)['title']);
  const first = paid.slice(0, MAX_LISTED);
  const rest = paid.length - first.length;
  const steps = selling.methods.first.documents().steps.filter(step => /^\d\./.test(step));
  return `---
name: ${slug(title)}
description: ${JSON.stringify(`Buys API calls from ${title} (${publicUrl}), paid per call in USDC on Solana: ${first.map(({ id }) => id).join(', ')}.`)}
---

# Buy from ${title}

Use this when one of these calls helps with the task, and its price is within what your user allows. There is no account and no API key.

## What is sold

${first.map(operation => soldLine(operation, selling)).join('\n')}
${rest > 0 ? `- ${rest} more: ${publicUrl}/llms.txt\n` : ''}
Fields, limits and examples: ${publicUrl}/llms-full.txt. The same calls are MCP tools at ${publicUrl}${MCP_PATH}; a host without a wallet starts
\`coinslot mcp --url ${publicUrl} --keypair payer.json\`, which pays within limits.

## How to pay

${steps.join('\n')}

## How to resend

- Keep the signed payment until you have the answer. After a 503, a time-out or a lost connection, wait as long as \`Retry-After\` says and
  send the same payment with the same body again. Never sign a second one: the same payment is charged once.
- 400: correct the body and send it with the same payment. 402 with a payment: \`error\` says why; sign a new one.
- 502: not charged, unless \`PAYMENT-RESPONSE\` says success. Then the answer is owed: send the same payment again.
- \`Location\` of an answer is where it can be fetched again, free. Keep it secret.
`;
}

/** A valid name of a skill. */
function slug(title: string): string {
  const name = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return name.slice(0, 60) || 'shop';
}

function soldLine(operation: PricedOperation, selling: Selling): string {
  const summary = line(operation.summary);
  const shown = summary.length > MAX_SUMMARY ? `${summary.slice(0, MAX_SUMMARY)}…` : summary;
  const upfront = operation.flow === 'upfront' ? ', paid before the work, which can take minutes' : '';
  return `- ${shown}: ${operation.price.shown}${upfront}. \`${callShape(operation)}\` at ${resourceUrl(operation, selling)}`;
}
