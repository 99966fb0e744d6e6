import type { Contract, FreeOperation, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import type { Methods } from '../methods/methods.js';
import { objectOf } from '../contract/references.js';
import { PICK_UP } from '../contract/reserved-names.js';
import { noteOf } from '../documents/discovery.js';
import { inputSchemaOf } from './tool-arguments.js';

/** A tool as `tools/list` describes it. */
export type ToolDescription = {
  name: string;
  title: string;
  description: string;
  inputSchema: Json & { type: 'object' };
  annotations: { title: string; readOnlyHint: boolean; idempotentHint: boolean; openWorldHint: boolean };
};

/**
 * The tools of a contract: one for each paid operation, and one for each free operation that is marked `x-mcp`. Paid tools have no
 * output schema: clients would apply it to the price, too.
 */
export function toolsOf(contract: Contract, methods: Methods): ToolDescription[] {
  return [
    ...contract.paid.map(operation => paidTool(contract, operation, methods)),
    ...contract.free.flatMap(operation => (operation.mcp ? [freeTool(operation, operation.mcp)] : [])),
    pickUpTool(),
  ];
}

function paidTool({ document }: Contract, operation: PricedOperation, methods: Methods): ToolDescription {
  const howToPay = methods.all.flatMap(method => method.documents().tool ?? []).join(' ');
  const { id, path, method, summary, price } = operation;
  const { description } = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
  const text = typeof description === 'string' ? description.trim() : `${summary}.`;
  const title = `${summary} (${price.shown})`;
  return {
    name: id,
    title,
    description: `${text} ${noteOf(operation, methods)} ${howToPay}`,
    inputSchema: inputSchemaOf(operation),
    // It spends money, so a host that asks its user only about tools that change something asks about this one.
    annotations: { title, readOnlyHint: false, idempotentHint: false, openWorldHint: true },
  };
}

function freeTool(
  { id }: FreeOperation,
  { summary, description }: NonNullable<FreeOperation['mcp']>,
): ToolDescription {
  return {
    name: id,
    title: summary,
    description: `${description.trim()} Free.`,
    inputSchema: { type: 'object', properties: {} },
    annotations: { title: summary, readOnlyHint: true, idempotentHint: true, openWorldHint: true },
  };
}

function pickUpTool(): ToolDescription {
  const title = 'Fetch a paid answer by its key';
  return {
    name: PICK_UP,
    title,
    description:
      'Returns what a paid call would return now, without calling it and paying again: its answer, or that it is still in progress. ' +
      'Paid results and errors carry the key. Free.',
    inputSchema: {
      type: 'object',
      properties: { key: { type: 'string', description: 'The key, or its URL.' } },
      required: ['key'],
    },
    annotations: { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  };
}

/** What a host tells its model about this server. */
export function instructionsFor({ paid }: Contract): string {
  const prices = paid.map(({ id, price }) => `${id} ${price.shown.replace(' USDC', '')}`).join(', ');
  return (
    `Tools that are paid per call in USDC on Solana over x402 (scheme exact). Prices in USDC: ${prices}. A paid tool called without ` +
    'a payment returns an error result with x402 PaymentRequired in structuredContent and as JSON in the text. Sign one of its ' +
    '"accepts" and call the tool again with the same arguments and the PaymentPayload in _meta["x402/payment"]. The receipt comes ' +
    'in _meta["x402/payment-response"]. A call that fails or is refused is not charged, except that an operation paid before its ' +
    'work stays owed. The same payment with the same arguments gets the same answer without a second charge, here and over HTTP: ' +
    'after a cut connection or "paid, and in progress", repeat the call with the same payment and sign no new one, or call pick_up ' +
    'with the key that the result names.'
  );
}
