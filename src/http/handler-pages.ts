import Router, { type RouterMiddleware } from '@koa/router';
import type { Middleware } from 'koa';
import { HttpFault } from '../net/http-fault.js';
import type { Log } from '../net/log.js';
import { PageFault } from '../pages/form.js';
import { fromElsewhere, PAGE_HEADERS } from '../pages/page-responses.js';
import type { PageContext, Pages } from '../shop/pages.js';

const UNAVAILABLE = 'This page cannot be shown at the moment. Try again in a minute.';

/** Serves the pages of an operation. Passes requests for other paths on. */
export function servePages(pages: Pages, log: Log): Middleware {
  const { path, routes } = pages;
  const router = new Router({ strict: true, sensitive: true });
  router.use(guard(pages, log) as RouterMiddleware);
  router.get(path, ctx => ctx.redirect(`${path}/`));
  for (const { method, path: below, serve } of routes) {
    const answer: RouterMiddleware = async ctx => serve(ctx);
    if (method === 'GET') router.get(path + below, answer);
    else router.post(path + below, answer);
  }
  return router.routes() as Middleware;
}

function guard(pages: Pages, log: Log): Middleware {
  return async (ctx, next) => {
    // Other sites must not read these pages, although CORS is open for the rest of the server.
    ctx.remove('Access-Control-Allow-Origin');
    ctx.remove('Access-Control-Expose-Headers');
    ctx.set(PAGE_HEADERS);
    try {
      if (ctx.method === 'POST' && fromElsewhere(ctx))
        throw new PageFault(
          403,
          'This form was sent from another site. Open the page here and send the form from there.',
        );
      await next();
    } catch (error) {
      await answerFault(pages, log, ctx as PageContext, error);
    }
  };
}

async function answerFault(
  { path, failed }: Pages,
  log: Log,
  ctx: PageContext,
  error: unknown,
): Promise<void> {
  if (!(error instanceof HttpFault)) log.error({ error, pages: path }, 'a page of an operation failed');
  try {
    if (failed) return await failed(ctx, error);
  } catch (second) {
    log.error({ error: second, pages: path }, 'a page of an operation failed while it was sending an error');
  }
  sayFault(ctx, error);
}

function sayFault(ctx: PageContext, error: unknown): void {
  const fault = error instanceof HttpFault ? error : undefined;
  ctx.status = fault?.status ?? 503;
  ctx.set(fault?.headers ?? { 'Retry-After': '60' });
  ctx.type = 'text/plain; charset=utf-8';
  ctx.body = `${fault?.message ?? UNAVAILABLE}\n`;
}
