import type { Context } from 'koa';
import type { GivenOperation } from '../contract/contract.js';
import type { Routed } from '../contract/routes.js';
import { UNOBSERVED, type Observer } from '../observe/observer.js';
import { isSuccess, type Answer } from '../sale/outcome.js';
import { BodiesFull, BodyFault } from './body.js';
import type { BudgetOwner } from './byte-budget.js';
import type { CallsInHand } from './calls-in-hand.js';
import { goneSignal } from './on-close.js';
import { readAsked, type ReadParts } from './read-asked.js';
import { requestIdOf } from './request-id.js';
import { Halt, send } from './responses.js';
import { runHandler, type HandlerParts } from './run-handler.js';
import { sendGift, type SellingParts } from './send-sold.js';
import { TOO_MANY_CALLS, type SourceLimits } from './source-limits.js';

export type GivenParts = HandlerParts &
  ReadParts &
  SellingParts & {
    limits: SourceLimits;
    observer?: Pick<Observer, 'tell'>;
    /** The free calls under way. */
    gifts: CallsInHand;
  };

/** The API receives all free calls under this one caller name. */
const CALLER = 'free';
const BUSY = 'Too many free calls are under way; try again.';

/** Answers a call of a free operation that the API serves, under the limits of its source. @throws Halt */
export async function serveGiven(
  ctx: Context,
  parts: GivenParts,
  route: Routed,
  operation: GivenOperation,
): Promise<void> {
  const { observer = UNOBSERVED } = parts;
  let status = 500;
  try {
    await serve(ctx, parts, route, operation);
    status = ctx.status;
  } catch (error) {
    if (error instanceof Halt) status = error.status;
    throw error;
  } finally {
    observer.tell({ kind: 'given', operation: operation.id, status });
  }
}

async function serve(
  ctx: Context,
  parts: GivenParts,
  route: Routed,
  operation: GivenOperation,
): Promise<void> {
  const { limits, gifts } = parts;
  ctx.set('X-Request-Id', requestIdOf(ctx.req.headers['x-request-id']));
  const source = limits.of(ctx.req);
  const wait = limits.takeGift(source);
  if (wait > 0) throw notNow(TOO_MANY_CALLS, wait);
  const leave = gifts.enter(source);
  if (!leave) throw notNow(BUSY, 1);
  try {
    const owner = { payment: `free ${source}`, payer: `free ${source}`, source };
    const answer = await answerOf(ctx, parts, route, { operation, owner });
    if (isSuccess(answer)) return sendGift(ctx, parts, { answer, owner });
    send(ctx, answer.status, answer.body, { ...answer.headers, 'Cache-Control': 'no-store' });
  } finally {
    leave();
  }
}

async function answerOf(
  ctx: Context,
  parts: GivenParts,
  route: Routed,
  { operation, owner }: { operation: GivenOperation; owner: BudgetOwner },
): Promise<Answer> {
  const asked = await readAsked(ctx, parts, route, operation, owner).catch((error: unknown) => {
    if (error instanceof BodiesFull)
      throw notNow('The server is busy and the body of this request arrived too slowly.', 1);
    if (error instanceof BodyFault) throw new Halt(400, `${error.message}.`);
    throw error;
  });
  if (!asked.ok) throw new Halt(400, `${asked.error}.`);
  const signal = goneSignal(ctx.req, ctx.res);
  return runHandler(parts, operation.id, { ...asked.asked, signal, caller: CALLER });
}

function notNow(error: string, seconds: number): Halt {
  return new Halt(503, error, { 'Retry-After': String(seconds), 'Cache-Control': 'no-store' });
}
