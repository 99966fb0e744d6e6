import type { Contract, FreeOperation, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import type { Methods } from '../methods/methods.js';
import { isObject, objectOf } from '../contract/references.js';
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
 * The tools of a contract: one for each paid operation, and one for each free operation that is marked `x-mcp`. Paid tools have no output
 * schema, because clients would apply it to the price, too.
 */
export function toolsOf(contract: Contract, methods: Methods): ToolDescription[] {
  const tools = [
    ...contract.paid.map(operation => paidTool(contract, operation, methods)),
    ...contract.free.flatMap(operation => (operation.mcp ? [freeTool(operation, operation.mcp)] : [])),
    pickUpTool(),
  ];
  const named = namesOfTools(contract);
  return tools.map(tool => named(tool) as ToolDescription);
}

/** The maximum length of a tool's description. A longer one is too much for a model with many tools. */
const MAX_DESCRIPTION = 600;

/** A text cut after the last sentence that fits, followed by a note that is never cut. */
function described(text: string, note: string): string {
  const room = MAX_DESCRIPTION - note.length - 1;
  const line = text.replace(/\s+/g, ' ').trim();
  if (line.length <= room) return `${line} ${note}`;
  const kept = line.slice(0, room + 1);
  const end = kept.lastIndexOf('. ');
  const shown = end > 0 ? kept.slice(0, end + 1) : `${kept.slice(0, kept.lastIndexOf(' '))} …`;
  return `${shown} ${note}`;
}

/**
 * Replaces `GET /path` in all descriptions of a schema with the name of that operation's tool, because a
 * model has tools, not URLs.
 */
function namesOfTools({ paid, free }: Contract): (value: unknown) => unknown {
  const names = new Map<string, string>();
  for (const { method, path, id } of paid) names.set(`${method} ${path}`, id);
  for (const { path, id, mcp } of free) if (mcp) names.set(`GET ${path}`, id);
  const written = (text: string): string =>
    text.replace(/\b(?:GET|POST|PUT|PATCH|DELETE) \/[\w\-/{}.]*[\w}]/g, found => names.get(found) ?? found);
  const inAll = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inAll);
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [
        name,
        name === 'description' && typeof each === 'string' ? written(each) : inAll(each),
      ]),
    );
  };
  return inAll;
}

function paidTool({ document }: Contract, operation: PricedOperation, methods: Methods): ToolDescription {
  const { id, path, method, summary, price } = operation;
  const { description } = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
  const text = typeof description === 'string' ? description.trim() : `${summary}.`;
  const title = `${summary} (${price.shown})`;
  return {
    name: id,
    title,
    description: described(text, noteOf(operation, methods)),
    inputSchema: inputSchemaOf(operation),
    // Not read-only, because it spends money: a host that asks its user before calling tools with effects
    // must ask before calling this one.
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
    description: described(description, 'Free.'),
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
      'Returns what a paid call would return now, without another call or payment: its answer, or that it is still in progress. ' +
      'Paid results and errors carry the key. Free.',
    inputSchema: {
      type: 'object',
      properties: { key: { type: 'string', description: 'The key, or its URL.' } },
      required: ['key'],
    },
    annotations: { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  };
}

/** The instructions for the model that uses this server. */
export function instructionsFor({ paid }: Contract, methods: Methods): string {
  const prices = paid.map(({ id, price }) => `${id} ${price.shown.replace(' USDC', '')}`).join(', ');
  const howToPay = methods.all.flatMap(method => method.documents().tool ?? []).join(' ');
  return (
    `Tools that are paid per call in USDC on Solana. Prices in USDC: ${prices}. ${howToPay} A call that fails or is refused is not ` +
    'charged, unless its operation is paid for before the work is done: then the answer is owed. The same payment with the same arguments gets the same answer ' +
    'without a second charge: after a broken connection or "paid, and in progress", do not sign a new payment: repeat the call with ' +
    'the same one, or call pick_up with the key that the result names. Files are given as links.'
  );
}
