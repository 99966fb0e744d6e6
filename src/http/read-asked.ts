import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { CalledOperation } from '../contract/contract.js';
import type { AskedCheck, Routed, Routes } from '../contract/routes.js';
import type { SentBody } from '../contract/sent-body.js';
import { BodiesFull, type BodyReader } from './body.js';
import type { BudgetOwner } from './byte-budget.js';
import { parsedBody, typeOf } from './parse-body.js';

export type ReadParts = { bodies: BodyReader; routes: Routes };

/** Reads and validates the input of a call. @throws BodyFault, BodiesFull */
export async function readAsked(
  ctx: Context,
  { bodies, routes }: ReadParts,
  route: Routed,
  operation: CalledOperation,
  owner: BudgetOwner,
): Promise<AskedCheck> {
  try {
    const body = await bodyOf(ctx.req, bodies, operation, owner);
    return routes.checkAsked(route, ctx.querystring, body, ctx.req.headers);
  } catch (error) {
    if (error instanceof BodiesFull) ctx.set('Connection', 'close');
    throw error;
  }
}

/** The body of a call; undefined if the operation takes none, or if its body is optional and was not sent. */
async function bodyOf(
  request: IncomingMessage,
  bodies: BodyReader,
  { request: declared }: CalledOperation,
  owner: BudgetOwner,
): Promise<SentBody | undefined> {
  if (!declared || (!declared.required && !hasBody(request))) return undefined;
  const header = request.headers['content-type'];
  const named = typeOf(declared, header);
  return bodies.read(request, named.form.maxBytes, owner, async bytes => ({
    ...named,
    value: await parsedBody(named.form, bytes, header),
  }));
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
