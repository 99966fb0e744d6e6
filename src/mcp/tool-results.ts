import type { Json } from '../contract/json.js';
import type { PricedOperation } from '../contract/contract.js';
import { isObject } from '../contract/references.js';
import type { Challenge } from '../payments/challenge.js';
import type { Failure, Success } from '../payments/outcome.js';
import type { Receipt } from '../payments/wire.js';
import { exampleArguments, inputSchemaOf } from './tool-arguments.js';
import { challengeMeta, receiptMeta } from './payment-meta.js';

export type Content =
  | { type: 'text'; text: string }
  | { type: 'audio' | 'image'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; blob: string; mimeType: string } };

/** The result of a tool call, as MCP has it. */
export type ToolResult = { content: Content[]; structuredContent?: Json; isError?: true; _meta?: Json };

/**
 * The price of a tool: x402's PaymentRequired as an error result, in every place in which a client looks for it. Its resource is the
 * tool, and its discovery extension describes the tool instead of the HTTP call.
 */
export function challengeResult(
  operation: PricedOperation,
  challenge: Challenge,
  receipt?: Receipt,
): ToolResult {
  const required = requiredBy(operation, challenge);
  return {
    isError: true,
    content: [{ type: 'text', text: JSON.stringify(required) }],
    structuredContent: required,
    _meta: { ...challengeMeta(required), ...receiptMeta(receipt) },
  };
}

const MCP_RESOURCE = 'mcp://tool/';

function requiredBy(operation: PricedOperation, { body }: Challenge): Json {
  const challenge = JSON.parse(body.toString('utf8')) as {
    resource: Json;
    accepts: Json[];
    extensions: Json;
  };
  const url = `${MCP_RESOURCE}${operation.id}`;
  return {
    ...challenge,
    resource: { ...challenge.resource, url },
    accepts: challenge.accepts.map(option => ({ ...option, resource: url })),
    extensions: { ...challenge.extensions, bazaar: mcpBazaarOf(operation) },
  };
}

/** The `bazaar` (discovery) extension of x402 v2 in its form for MCP tools. */
function mcpBazaarOf(operation: PricedOperation): Json {
  const { id, summary, answers } = operation;
  const [{ kind, mimeType }] = answers;
  const input = {
    type: 'mcp',
    toolName: id,
    description: summary,
    transport: 'streamable-http',
    inputSchema: inputSchemaOf(operation),
    example: exampleArguments(operation),
  };
  const fixed = (value: string): Json => ({ type: 'string', const: value });
  return {
    info: { input, output: { type: kind, ...(kind === 'json' ? {} : { format: mimeType }) } },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: fixed('mcp'),
            toolName: fixed(id),
            description: { type: 'string' },
            transport: { type: 'string', enum: ['streamable-http', 'sse'] },
            inputSchema: { type: 'object' },
            example: { type: 'object' },
          },
          required: ['type', 'toolName', 'inputSchema'],
          additionalProperties: false,
        },
        output: { type: 'object', properties: { type: { type: 'string' } }, required: ['type'] },
      },
      required: ['input'],
    },
  };
}

/** An error that the model can act on. `status` is what the same call over HTTP would be answered with. */
export function errorResult(
  status: number,
  error: string,
  { retryAfterSeconds, receipt }: { retryAfterSeconds?: number; receipt?: Receipt | undefined } = {},
): ToolResult {
  const wait = retryAfterSeconds === undefined ? '' : ` Retry after ${retryAfterSeconds} seconds.`;
  return {
    isError: true,
    content: [{ type: 'text', text: `${error}${wait}` }],
    structuredContent: { error, status, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) },
    ...(receipt ? { _meta: receiptMeta(receipt) } : {}),
  };
}

export function failureResult({ status, headers, body }: Failure, receipt?: Receipt): ToolResult {
  const { error } = JSON.parse(body.toString('utf8')) as { error: string };
  const wait = headers['Retry-After'];
  return errorResult(status, error, {
    receipt,
    ...(wait === undefined ? {} : { retryAfterSeconds: Number(wait) }),
  });
}

/** A sold answer. */
export function answerResult(
  { headers, body }: Pick<Success, 'headers' | 'body'>,
  receipt: Receipt,
): ToolResult {
  return { ...contentOf(headers, body), _meta: receiptMeta(receipt) };
}

/** JSON as structured content and text, text as text, sound and pictures as such, other bytes as an embedded resource. */
export function contentOf(
  headers: Record<string, string>,
  body: Buffer,
): Pick<ToolResult, 'content' | 'structuredContent'> {
  const mimeType = headers['Content-Type'] ?? headers['content-type'] ?? 'application/octet-stream';
  const bare = (mimeType.split(';', 1)[0] ?? '').trim().toLowerCase();
  if (/^application\/([\w.-]+\+)?json$/.test(bare)) {
    const text = body.toString('utf8');
    const value = JSON.parse(text) as unknown;
    return { content: [{ type: 'text', text }], ...(isObject(value) ? { structuredContent: value } : {}) };
  }
  if (bare.startsWith('text/')) return { content: [{ type: 'text', text: body.toString('utf8') }] };
  const data = body.toString('base64');
  const notes = Object.entries(headers).filter(([name]) => /^x-/i.test(name));
  const note = notes.map(([name, value]) => `${name}: ${value}`).join('\n');
  const described: Content[] = note === '' ? [] : [{ type: 'text', text: note }];
  const [kind] = bare.split('/');
  if (kind === 'audio' || kind === 'image')
    return { content: [{ type: kind, data, mimeType: bare }, ...described] };
  const resource = { uri: 'answer:body', blob: data, mimeType: bare };
  return { content: [{ type: 'resource', resource }, ...described] };
}
