import { headerOf } from '../contract/answer-headers.js';
import type { Json } from '../contract/json.js';
import { readRetryAfter } from '../net/failure.js';
import type { PricedOperation } from '../contract/contract.js';
import { isObject } from '../contract/references.js';
import type { AnswerLink } from '../sale/answer-keys.js';
import type { Challenge } from '../methods/x402/challenge.js';
import type { Failure, Success } from '../sale/outcome.js';
import type { Receipt } from '../methods/x402/wire.js';
import { exampleArguments, inputSchemaOf } from './tool-arguments.js';
import { challengeMeta, linkMeta, receiptMeta } from './payment-meta.js';

export type Content =
  | { type: 'text'; text: string }
  | { type: 'audio' | 'image'; data: string; mimeType: string }
  | { type: 'resource_link'; uri: string; name: string; mimeType: string; size: number }
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

type More = {
  retryAfterSeconds?: number;
  receipt?: Receipt | undefined;
  /** How to fetch the answer without the payment. */
  link?: AnswerLink | undefined;
};

/** An error that the model can act on. `status` is what the same call over HTTP would be answered with. */
export function errorResult(
  status: number,
  error: string,
  { retryAfterSeconds, receipt, link }: More = {},
): ToolResult {
  const wait = retryAfterSeconds === undefined ? '' : ` Retry after ${retryAfterSeconds} seconds.`;
  const fetch = link && status === 503 ? ` Or call pick_up with the key ${link.key} (free).` : '';
  return {
    isError: true,
    content: [{ type: 'text', text: `${error}${wait}${fetch}` }],
    structuredContent: {
      error,
      status,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      ...(link ? { pickUp: link } : {}),
    },
    _meta: { ...receiptMeta(receipt), ...linkMeta(link) },
  };
}

export function failureResult(
  { status, headers, body }: Failure,
  receipt?: Receipt,
  link?: AnswerLink,
): ToolResult {
  const { error } = JSON.parse(body.toString('utf8')) as { error: string };
  const wait = readRetryAfter(headerOf(headers, 'retry-after'));
  return errorResult(status, error, {
    receipt,
    link,
    ...(wait === undefined ? {} : { retryAfterSeconds: wait }),
  });
}

/** A sold answer. */
export function answerResult(
  { headers, body }: Pick<Success, 'headers' | 'body'>,
  receipt: Receipt,
  link: AnswerLink | undefined,
): ToolResult {
  return { ...contentOf(headers, body), _meta: { ...receiptMeta(receipt), ...linkMeta(link) } };
}

/** Beyond this, hosts refuse results or fill their model's context with base64. */
const MAX_INLINE_BYTES = 1024 * 1024;

/** Whether an answer is given as a link to it: longer sounds and files are. */
export function isLinked({ headers, body }: Pick<Success, 'headers' | 'body'>): boolean {
  return body.length > MAX_INLINE_BYTES && !/^text\/|json$/.test(mimeTypeOf(headers));
}

/** A link in place of a sold answer. @param keptUntil in ms since 1970 */
export function linkResult(
  { headers, body: { length: size } }: Pick<Success, 'headers' | 'body'>,
  receipt: Receipt,
  link: AnswerLink & { url: string },
  keptUntil: number | undefined,
): ToolResult {
  const { url: uri } = link;
  const mimeType = mimeTypeOf(headers);
  const until = keptUntil === undefined ? '' : ` It is kept until ${new Date(keptUntil).toISOString()}.`;
  const text = `The answer is ${size} bytes of ${mimeType}: GET ${uri} (free), or read it as a resource.${until}`;
  return {
    content: [
      { type: 'resource_link', uri, name: 'answer', mimeType, size },
      { type: 'text', text },
    ],
    _meta: { ...receiptMeta(receipt), ...linkMeta(link) },
  };
}

export function mimeTypeOf(headers: Record<string, string>): string {
  const type = headerOf(headers, 'content-type') ?? 'application/octet-stream';
  return (type.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** JSON as structured content and text, text as text, sound and pictures as such, other bytes as an embedded resource. */
export function contentOf(
  headers: Record<string, string>,
  body: Buffer,
): Pick<ToolResult, 'content' | 'structuredContent'> {
  const bare = mimeTypeOf(headers);
  if (/^application\/([\w.-]+\+)?json$/.test(bare)) {
    const text = body.toString('utf8');
    const value = objectIn(text);
    return { content: [{ type: 'text', text }], ...(value ? { structuredContent: value } : {}) };
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

/** The JSON object in a text. A file is sold as it is, even if its type says JSON and it is none. */
function objectIn(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
