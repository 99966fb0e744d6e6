import type { Context } from 'koa';
import type { FreeAnswers } from './free-answers.js';
import { failureAnswer, JSON_TYPE, type HandlerParts, type Routed } from './run-handler.js';
import { Halt, send } from './responses.js';

export type ServeFreeParts = Pick<HandlerParts, 'routes' | 'log'> & { free: FreeAnswers };

/** Answers a call of a free operation. */
export async function serveFree(
  ctx: Context,
  parts: ServeFreeParts,
  { id, operation }: Routed,
): Promise<void> {
  const document = parts.free.documents[id];
  if (document) {
    ctx.set({ ETag: document.etag, 'Cache-Control': 'public, max-age=60', 'Content-Type': JSON_TYPE });
    ctx.body = document.body;
    ctx.status = isCurrent(ctx.get('If-None-Match'), document.etag) ? 304 : 200;
    return;
  }
  const live = parts.free.live[id];
  if (!live) throw new Error(`nothing answers the free operation ${id}`);
  const body = await live().catch((error: unknown) => {
    const answer = failureAnswer(error, parts.log);
    const { error: message } = JSON.parse(answer.body.toString('utf8')) as { error: string };
    throw new Halt(503, message, { 'Retry-After': answer.headers['Retry-After'] ?? '5' });
  });
  const fault = parts.routes.checkReply(operation, { status: 200, body });
  if (fault) throw new Error(`the answer of ${id} breaks the contract: ${fault}`);
  send(ctx, 200, Buffer.from(JSON.stringify(body)), {
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
  });
}

/** Unlike Koa's `fresh`, also for clients whose fetch adds `Cache-Control: no-cache` to every conditional request. */
function isCurrent(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
