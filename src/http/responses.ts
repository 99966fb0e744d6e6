import type { Context } from 'koa';
import type { Readable } from 'node:stream';
import { JSON_TYPE } from './run-handler.js';
import type { Challenge } from '../payments/challenge.js';

/** Thrown to end the handling of a request with this answer. */
export class Halt extends Error {
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

export function sendChallenge(
  ctx: Context,
  { body, header }: Challenge,
  headers: Record<string, string> = {},
): void {
  send(ctx, 402, body, {
    ...headers,
    'PAYMENT-REQUIRED': header,
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
  });
}

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
