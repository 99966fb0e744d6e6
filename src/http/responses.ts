import type { Context } from 'koa';
import type { Readable } from 'node:stream';
import { HttpFault } from '../net/http-fault.js';
import { JSON_TYPE } from './run-handler.js';
import type { Challenge } from '../methods/method.js';

/** Thrown to answer with the error object of the contract. */
export class Halt extends HttpFault {}

export function sendChallenge(
  ctx: Context,
  { body, headers: own }: Challenge,
  headers: Record<string, string> = {},
): void {
  send(ctx, 402, body, {
    ...headers,
    ...own,
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
  });
}

/** Search engines must not list paid answers. */
export const NOT_INDEXED = { 'X-Robots-Tag': 'noindex' } as const;

export function sendError(
  ctx: Context,
  status: number,
  error: string,
  headers: Record<string, string> = {},
): void {
  send(ctx, status, Buffer.from(JSON.stringify({ error })), {
    ...headers,
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
  });
}

export function send(
  ctx: Context,
  status: number,
  body: Buffer | Readable,
  headers: Record<string, string>,
): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.body = body;
}
