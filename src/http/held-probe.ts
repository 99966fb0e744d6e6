import type { Middleware } from 'koa';
import { LRUCache } from 'lru-cache';
import { setTimeout as sleep } from 'node:timers/promises';
import { HELD_PATH, type HeldOutcome } from '../net/hang-up.js';
import { goneSignal } from './on-close.js';
import { Halt, NOT_INDEXED, send } from './responses.js';
import { JSON_TYPE } from './run-handler.js';
import { TOO_MANY_CALLS, type SourceLimits } from './source-limits.js';

const PROBE = new RegExp(`^${HELD_PATH.replaceAll('.', '\\.')}/([0-9a-f]{32})(/outcome)?$`);
/** Long enough for a distant caller to learn that its call is held, and to hang up. */
const HELD_MS = 3_000;
const MAX_HELD = 16;
const MAX_KEPT = 256;

/**
 * Holds a test call open. Its caller hangs up and then asks whether the server noticed (see `src/net/hang-up.ts`). Behind a proxy that does
 * not pass on hang-ups, buyers who are gone would be
 * charged.
 */
export function serveHeldProbe(
  limits: Pick<SourceLimits, 'takeUnpaid' | 'of'>,
  heldMs = HELD_MS,
): Middleware {
  const outcomes = new LRUCache<string, HeldOutcome>({ max: MAX_KEPT });
  let held = 0;
  return async (ctx, next) => {
    const [, id, asksAfter] = PROBE.exec(ctx.path) ?? [];
    if (id === undefined || ctx.method !== 'GET') return void (await next());
    const wait = limits.takeUnpaid(limits.of(ctx.req));
    if (wait > 0) throw new Halt(503, TOO_MANY_CALLS, { 'Retry-After': String(wait) });
    if (asksAfter === undefined) {
      if (held >= MAX_HELD || outcomes.has(id))
        throw new Halt(503, 'Too many calls are held open at the moment. Try again later.', {
          'Retry-After': '5',
        });
      held += 1;
      outcomes.set(id, 'held');
      const stayed = await sleep(heldMs, true, { signal: goneSignal(ctx.req, ctx.res) }).catch(() => false);
      held -= 1;
      outcomes.set(id, stayed ? 'stayed' : 'left');
    }
    const outcome = outcomes.get(id);
    if (outcome === undefined) throw new Halt(404, 'No call with this id was held open on this server.');
    const headers = { ...NOT_INDEXED, 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' };
    send(ctx, 200, Buffer.from(JSON.stringify({ outcome })), headers);
  };
}
