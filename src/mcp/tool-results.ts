import { headerOf } from '../contract/answer-headers.js';
import { fileNameOf } from '../contract/file-name.js';
import type { Json } from '../contract/json.js';
import { readRetryAfter } from '../net/failure.js';
import type { PricedOperation } from '../contract/contract.js';
import { isObject } from '../contract/references.js';
import type { AnswerLink } from '../http/answer-keys.js';
import type { Challenges } from '../methods/methods.js';
import type { Failure, Success } from '../sale/outcome.js';
import { knows, PAYMENT_EXTENSION, type McpClient } from './mcp-client.js';
import { toolShapeOf } from './tool-arguments.js';

type Content =
  | { type: 'text'; text: string }
  | { type: 'audio' | 'image'; data: string; mimeType: string }
  | { type: 'resource_link'; uri: string; name: string; mimeType: string; size: number }
  | { type: 'resource'; resource: { uri: string; blob: string; mimeType: string } };

/** The result of a tool call in MCP. */
export type ToolResult = { content: Content[]; structuredContent?: Json; isError?: true; _meta?: Json };

/** A result of MCP 2026-07-28 with the price, for clients of x402's extension. */
export type PriceResult = { resultType: 'payment_required'; paymentRequired: Json; _meta?: Json };

type Priced = {
  challenges: Challenges;
  client: McpClient;
  /** The public URL of the shop. */
  publicUrl: string;
  /** The receipt, in the form of a result's metadata. */
  receipt?: Json | undefined;
};

/**
 * The price of a tool: an error result, unless its caller supports x402's extension. The result has the content of the first method and
 * the metadata of all methods.
 */
export function challengeResult(
  operation: PricedOperation,
  { challenges: { each }, client, publicUrl, receipt }: Priced,
): ToolResult | PriceResult {
  const tool = toolShapeOf(operation);
  const parts = each.map(({ method, challenge }) => method.toolChallenge(operation, challenge, tool));
  const structured = parts[0]?.structured ?? {};
  if (knows(client, PAYMENT_EXTENSION))
    return {
      resultType: 'payment_required',
      paymentRequired: structured,
      ...(receipt ? { _meta: receipt } : {}),
    };
  const hint =
    `${operation.id} costs ${operation.price.shown} and was not paid. A host without a wallet gets one with: ` +
    `coinslot mcp --url ${publicUrl} --keypair payer.json`;
  return {
    isError: true,
    content: [
      { type: 'text', text: JSON.stringify(structured) },
      { type: 'text', text: hint },
    ],
    structuredContent: structured,
    _meta: { ...(Object.assign({}, ...parts.map(({ meta }) => meta)) as Json), ...receipt },
  };
}

/** Not part of x402: how to fetch the answer without the payment. */
function linkMeta(link: AnswerLink | undefined): Json {
  return link ? { 'coinslot/pick-up': link } : {};
}

type More = {
  retryAfterSeconds?: number;
  /** The receipt, in the form of a result's metadata. */
  receipt?: Json | undefined;
  /** How to fetch the answer without the payment. */
  link?: AnswerLink | undefined;
};

/** An error that the model can act on. `status` is the HTTP status of the equivalent HTTP call. */
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
    _meta: { ...receipt, ...linkMeta(link) },
  };
}

export function failureResult(
  { status, headers, body }: Failure,
  receipt?: Json,
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

/** A sold answer. A status other than 200 is in the metadata. */
export function answerResult(
  { status, headers, body }: Success,
  receipt: Json | undefined,
  link: AnswerLink | undefined,
): ToolResult {
  const told: Json = status === 200 ? {} : { 'coinslot/status': status };
  const text = `The call succeeded with status ${status}. Its answer has no content.`;
  const content =
    body.length === 0 ? { content: [{ type: 'text' as const, text }] } : contentOf(headers, body);
  return { ...content, _meta: { ...receipt, ...linkMeta(link), ...told } };
}

/** Hosts refuse larger results, even if the caller asked for the bytes. */
const MAX_INLINE_BYTES = 1024 * 1024;
/** Asks for bytes in the result itself. Not part of x402. */
const INLINE_KEY = 'coinslot/inline';

/**
 * Whether an answer is given as a link, as sounds, pictures and files are: many hosts pass their base64 to the model as text,
 * and others throw. @param meta the request's metadata
 */
export function isLinked({ headers, body }: Pick<Success, 'headers' | 'body'>, meta: Json): boolean {
  if (body.length === 0 || /^text\/|json$/.test(mimeTypeOf(headers))) return false;
  return meta[INLINE_KEY] !== true || body.length > MAX_INLINE_BYTES;
}

type LinkParts = {
  /** The operation's id. */
  operation: string;
  answer: Pick<Success, 'headers' | 'body'>;
  receipt: Json | undefined;
  link: AnswerLink & { url: string };
  /** In ms since 1970. */
  keptUntil: number | undefined;
  client: McpClient;
};

/** A link instead of a sold answer: as a line that every host can read, and in structured form for programs. */
export function linkResult({ operation, answer, receipt, link, keptUntil, client }: LinkParts): ToolResult {
  const { headers, body } = answer;
  const { url } = link;
  const [mimeType, size] = [mimeTypeOf(headers), body.length];
  const name = fileNameOf(operation, mimeType);
  const until = keptUntil === undefined ? undefined : new Date(keptUntil).toISOString();
  const text = `The answer is a file, to fetch with GET: ${url} (${name}, ${size} bytes, ${mimeType}; free${until === undefined ? '' : `, kept until ${until}`}).`;
  const notes = notesIn(headers);
  // Clients of earlier revisions do not say what they can read, and at least one of them fails on a resource link.
  return {
    content: [
      { type: 'text', text },
      ...(client.current ? [{ type: 'resource_link' as const, uri: url, name, mimeType, size }] : []),
    ],
    structuredContent: {
      url,
      name,
      size,
      mimeType,
      ...(until === undefined ? {} : { keptUntil: until }),
      ...(notes.length > 0 ? { headers: Object.fromEntries(notes) } : {}),
    },
    _meta: { ...receipt, ...linkMeta(link) },
  };
}

/** The headers of an answer that describe it. */
function notesIn(headers: Record<string, string>): [string, string][] {
  return Object.entries(headers).filter(([name]) => /^x-/i.test(name));
}

export function mimeTypeOf(headers: Record<string, string>): string {
  const type = headerOf(headers, 'content-type') ?? 'application/octet-stream';
  return (type.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** JSON as structured content and text, text as text, sound and pictures in their own types, other bytes as an embedded resource. */
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
  const note = notesIn(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
  const described: Content[] = note === '' ? [] : [{ type: 'text', text: note }];
  const [kind] = bare.split('/');
  if (kind === 'audio' || kind === 'image')
    return { content: [{ type: kind, data, mimeType: bare }, ...described] };
  const resource = { uri: 'answer:body', blob: data, mimeType: bare };
  return { content: [{ type: 'resource', resource }, ...described] };
}

/** The JSON object in a text. A file is sold as it is, even if its type says JSON and its content is not. */
function objectIn(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
