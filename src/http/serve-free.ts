import { headerOf } from '../contract/answer-headers.js';
import type { Context, Middleware } from 'koa';
import type { AnyReply } from '../contract/operation.js';
import type { StaticDocuments } from './documents.js';
import type { Failure } from '../sale/outcome.js';
import { failureAnswer, JSON_TYPE, type HandlerParts } from './run-handler.js';
import type { Methods } from '../methods/methods.js';
import { SIGN_IN_HEADER } from '../sign-in/sign-ins.js';
import { Halt, send } from './responses.js';
import type { MethodNotAllowed, Route, Routed } from '../contract/routes.js';

export type ServeFreeParts = Pick<HandlerParts, 'routes' | 'log'>;

// The official fetch client sends access-control-expose-headers as a request header.
const ALLOWED_HEADERS = ['prefer', 'x-request-id', 'if-none-match', 'access-control-expose-headers'];
const DAY_SECONDS = 86_400;

/** The answer of a free operation whose answers are built for each request: JSON bytes, or a failure. */
export async function liveAnswer(
  { routes, log }: ServeFreeParts,
  route: Routed,
): Promise<{ status: 200; body: Buffer } | Failure> {
  const { id } = route;
  let reply: AnyReply;
  try {
    reply = await routes.handle(id);
  } catch (error) {
    return failureAnswer(error, log);
  }
  const fault = routes.checkReply(route, reply);
  if (fault) throw new Error(`the answer of ${id} violates the contract: ${fault}`);
  return { status: 200, body: Buffer.from(JSON.stringify(reply.body)) };
}

/** Answers a call of a free operation, except for static documents (`documents.ts`). */
export async function serveFree(ctx: Context, parts: ServeFreeParts, route: Routed): Promise<void> {
  const answer = await liveAnswer(parts, route);
  if (answer.status !== 200) {
    const { error: message } = JSON.parse(answer.body.toString('utf8')) as { error: string };
    throw new Halt(503, message, { 'Retry-After': headerOf(answer.headers, 'retry-after') ?? '5' });
  }
  send(ctx, 200, answer.body, { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' });
}

/** Answers OPTIONS. */
export function preflight(
  ctx: Context,
  route: Route,
  { requestHeaders }: Pick<Methods, 'requestHeaders'>,
): void {
  const {
    allow: methods = 'POST, GET, HEAD, OPTIONS',
    headers = [],
    priced,
  }: Partial<MethodNotAllowed> = route.kind === 'methodNotAllowed' ? route : {};
  const signIn = priced?.free?.by === 'wallet' ? [SIGN_IN_HEADER] : [];
  const allowed = ['content-type', ...requestHeaders, ...ALLOWED_HEADERS, ...signIn, ...headers];
  ctx.status = 204;
  ctx.set({
    Allow: methods,
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': allowed.join(', '),
    'Access-Control-Max-Age': String(DAY_SECONDS),
    'Cache-Control': `public, max-age=${DAY_SECONDS}`,
  });
}

/**
 * Answers requests with methods other than GET for a file that agents and browsers request by convention
 * (`agent-files.ts`).
 */
export function outsideTheContract(
  documents: StaticDocuments,
  methods: Pick<Methods, 'requestHeaders'>,
): Middleware {
  return (ctx, next) => {
    if (!documents.has(ctx.path)) return next();
    const route = { kind: 'methodNotAllowed', allow: 'GET, HEAD, OPTIONS' } as const;
    if (ctx.method === 'OPTIONS') return preflight(ctx, route, methods);
    throw notAllowed(ctx, route);
  };
}

export function notAllowed({ method }: Context, { allow }: MethodNotAllowed): Halt {
  return new Halt(405, `${method} is not allowed here, only ${allow}.`, { Allow: allow });
}
