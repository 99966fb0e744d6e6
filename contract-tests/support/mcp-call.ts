import { call, TEXT } from './world.js';

type Json = Record<string, unknown>;

export type ToolAnswer = {
  /** The HTTP status. */
  status: number;
  /** The JSON-RPC message that answers the request. */
  message: Json & { result?: Json; error?: { code: number; message: string } };
  /** The messages that came before the answer. */
  notifications: Json[];
};

let requests = 0;

/** Sends one MCP message without a session, and reads the answer, whether it is a stream or not. */
export async function mcp(
  url: string,
  method: string,
  params: Json = {},
  headers: Record<string, string> = {},
): Promise<ToolAnswer> {
  requests += 1;
  const answer = await call(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: requests, method, params }),
  });
  const text = answer.body.toString('utf8');
  const streamed = answer.headers.get('content-type')?.startsWith('text/event-stream');
  const data = streamed ? [...text.matchAll(/^data: (.*)$/gm)].map(match => match[1] ?? '') : [text];
  const messages = data.map(each => JSON.parse(each) as ToolAnswer['message']);
  const message = messages.find(each => 'id' in each);
  if (!message) throw new Error(`no answer in ${text.slice(0, 300)}`);
  return { status: answer.status, message, notifications: messages.filter(each => each !== message) };
}

/** A tool's result. */
export type ToolCall = {
  isError?: boolean;
  content: { type: string; text?: string; data?: string; mimeType?: string; uri?: string; size?: number }[];
  structuredContent?: Json;
  _meta?: Json;
};

export async function callTool(
  url: string,
  name: string,
  args: Json,
  meta?: Json,
  headers: Record<string, string> = {},
): Promise<ToolCall> {
  const params = { name, arguments: args, ...(meta ? { _meta: meta } : {}) };
  const { message } = await mcp(url, 'tools/call', params, headers);
  if (!message.result) throw new Error(JSON.stringify(message.error));
  return message.result as unknown as ToolCall;
}

/** The metadata of a call with a payment. */
export const paid = (payment: unknown): Json => ({ 'x402/payment': payment });

let texts = 0;

/** Arguments with a different text each time, so that no two tests make the same call. */
export const anotherText = (): { text: string } => ({ text: `${TEXT} Day ${(texts += 1)}.` });

/** Converts the payment of a PAYMENT-SIGNATURE header to the form that MCP sends. */
export function payloadOf(headers: Record<string, string>): Json {
  const header = headers['PAYMENT-SIGNATURE'] ?? headers['X-PAYMENT'] ?? '';
  return JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as Json;
}
