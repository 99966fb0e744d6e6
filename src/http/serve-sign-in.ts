import type { Middleware } from 'koa';
import { SIGN_IN_PATH, type SignIns } from '../sign-in/sign-ins.js';
import { Halt, NOT_INDEXED, send } from './responses.js';
import { JSON_TYPE } from './run-handler.js';
import { TOO_MANY_CALLS, type SourceLimits } from './source-limits.js';

/**
 * Answers with the message that a wallet signs to use its free calls, in x402's sign-in extension, as a 402
 * would carry it. The server's own 402s omit it, because some clients sign in whenever they can and pay only
 * after that has failed.
 */
export function serveSignIn(signIns: SignIns, limits: Pick<SourceLimits, 'takeUnpaid' | 'of'>): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== SIGN_IN_PATH || ctx.method !== 'GET') return void (await next());
    const wait = limits.takeUnpaid(limits.of(ctx.req));
    if (wait > 0) throw new Halt(503, TOO_MANY_CALLS, { 'Retry-After': String(wait) });
    const body = Buffer.from(JSON.stringify({ extensions: { 'sign-in-with-x': signIns.extension() } }));
    send(ctx, 200, body, { ...NOT_INDEXED, 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' });
  };
}
