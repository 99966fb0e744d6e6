import Router from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
import { Halt, sendError } from './responses.js';
import type { Route } from './router.js';
import { serveFree, type ServeFreeParts } from './serve-free.js';
import { servePaid, type ServePaidParts } from './serve-paid.js';
import { EXPOSED_HEADERS } from './server.js';

export type AppParts = ServeFreeParts &
  ServePaidParts & {
    /** Mounted behind the contract's routes. */
    panel: Middleware;
  };

// The official fetch client sends access-control-expose-headers as a request header.
const ALLOWED_HEADERS =
  'content-type, payment-signature, x-payment, prefer, if-none-match, access-control-expose-headers';
const DAY_SECONDS = 86_400;

/** Everything behind the fast path: the contract's operations, the panel, and what browsers ask for. */
export function createApp(parts: AppParts): Koa {
  const app = new Koa();
  app.silent = true;
  app.use(reportFaults(parts));
  app.use((ctx, next) => serve(ctx, parts, next));
  app.use(parts.panel);
  app.use(outsideTheContract());
  app.use(ctx => {
    throw new Halt(404, `There is nothing at ${shown(ctx)}. GET / lists what there is.`);
  });
  return app;
}

function reportFaults({ log, routes }: AppParts): Middleware {
  return async (ctx, next) => {
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
    try {
      await next();
    } catch (error) {
      if (error instanceof Halt) return sendError(ctx, error.status, error.message, error.headers);
      log.error({ error, path: ctx.path }, 'a request broke off');
      const route = routes.match(ctx.method, pathOf(ctx));
      const paid = route.kind === 'operation' && route.priced;
      sendError(
        ctx,
        paid ? 502 : 500,
        'The server made a mistake. Send the same request again, with the same payment.',
      );
    }
  };
}

/** What a browser or crawler asks for and the contract does not sell. */
function outsideTheContract(): Middleware {
  const router = new Router({ strict: true, sensitive: true });
  router.get('/favicon.ico', ctx => {
    ctx.type = 'image/svg+xml';
    ctx.set('Cache-Control', `public, max-age=${DAY_SECONDS}`);
    ctx.body =
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#e0a92e"/>' +
      '<rect x="7" y="4" width="2" height="8" fill="#5a3d00"/></svg>';
  });
  return router.routes() as Middleware;
}

/** The raw path: neither decoded nor normalised, so that no spelling of it slips past the gate. */
function pathOf(ctx: Context): string {
  const { url } = ctx.req;
  return (url ?? '').split('?', 1)[0] ?? '';
}

async function serve(ctx: Context, parts: AppParts, next: () => Promise<unknown>): Promise<unknown> {
  const route = parts.routes.match(ctx.method, pathOf(ctx));
  if (route.kind === 'notFound') return next();
  if (ctx.method === 'OPTIONS') return preflight(ctx, route);
  if (route.kind === 'methodNotAllowed') {
    throw new Halt(405, `${ctx.method} is not allowed here, only ${route.allow}.`, { Allow: route.allow });
  }
  if (route.priced) return servePaid(ctx, parts, route, route.priced);
  return serveFree(ctx, parts, route);
}

function shown(ctx: Context): string {
  return pathOf(ctx).slice(0, 100);
}

function preflight(ctx: Context, route: Route): void {
  const methods = route.kind === 'methodNotAllowed' ? route.allow : 'POST, GET, HEAD, OPTIONS';
  ctx.status = 204;
  ctx.set({
    Allow: methods,
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': ALLOWED_HEADERS,
    'Access-Control-Max-Age': String(DAY_SECONDS),
    'Cache-Control': `public, max-age=${DAY_SECONDS}`,
  });
}
