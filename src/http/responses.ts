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
  { body, ...challenge }: Challenge,
  headers: Record<string, string> = {},
): void {
  send(ctx, 402, body, {
    ...headers,
    ...challengeHeader(challenge),
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
  });
}

/** The PAYMENT-REQUIRED header of a challenge. A v1 challenge has none: clients take it to mean v2. */
function challengeHeader({ version, header }: Omit<Challenge, 'body'>): Record<string, string> {
  return version === 1 ? {} : { 'PAYMENT-REQUIRED': header };
}

/** Search engines must not list what is paid for. */
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
