import { createServer, type IncomingMessage, type Server } from 'node:http';
import Koa, { type Context, type Middleware } from 'koa';
import { Connections } from '../http/connections.js';
import type { Listener } from '../http/server.js';
import { hostInUrl, hostnameOf, isAddress, isLocal } from '../net/host-names.js';
import type { Log } from '../net/log.js';
import { AdminPlaces } from './admin-places.js';

/**
 * A route for programs, such as Prometheus or a load balancer. On loopback it needs no token unless `withoutToken` is `refused`. On other
 * addresses, a caller without the token gets nothing (`private`) or only the status (`status`).
 */
export type MachineRoute = {
  path: string;
  /** Default: GET. */
  method?: 'POST';
  withoutToken: 'private' | 'status' | 'refused';
  serve: (ctx: Context) => Promise<void> | void;
};

export type AdminParts = {
  routes: readonly MachineRoute[];
  /** Serves all other paths, with its own sign-in. */
  page?: Middleware;
  /** Whether a string is the operator's token. Compares in constant time. */
  opens: (token: string) => boolean;
  /** The address of the listener. */
  host: string;
  /** The URL of the listener behind a proxy. */
  url?: string | undefined;
  log: Log;
};

const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_DEADLINE_MS = 10_000;
const REQUEST_DEADLINE_MS = 30_000;
const KEEP_ALIVE_MS = 15_000;
const STALL_MS = 20_000;
const CHECK_MS = 2_000;
const MAX_CONNECTIONS = 200;

/** The HTTP server for the operator, and a function that activates it. Until then it answers that the server is starting. */
export type AdminServer = { server: Server; serve: (parts: AdminParts) => void };

/** The HTTP server for the operator: metrics, readiness and page. None of it is reachable through the public listener. */
export function createAdminServer(): AdminServer {
  let handle: Listener = answerStarting;
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_DEADLINE_MS,
      requestTimeout: REQUEST_DEADLINE_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_MS,
    },
    (request, response) => {
      places.begin(request, response);
      const admitted = connections.admit(request, response);
      if (admitted === 'yes') return handle(request, response);
      if (admitted === 'refuse') response.writeHead(503, { Connection: 'close' }).end();
    },
  );
  const places = new AdminPlaces(server, MAX_CONNECTIONS);
  const connections = new Connections(server, STALL_MS, CHECK_MS);
  return {
    server,
    serve: parts => {
      const answer = createAdminApp(parts, places).callback();
      handle = (request, response) => void answer(request, response);
    },
  };
}

const answerStarting: Listener = (_request, response) => {
  const headers = {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    'Retry-After': '1',
  };
  response.writeHead(503, headers).end('The server is starting.\n');
};

function createAdminApp(parts: AdminParts, places: AdminPlaces): Koa {
  const app = new Koa();
  app.silent = true;
  app.on('error', (error: NodeJS.ErrnoException) => {
    // A browser that closes its connection is not a fault.
    if (!/^(ECONNRESET|EPIPE|ERR_STREAM_PREMATURE_CLOSE)$/.test(error.code ?? ''))
      parts.log.error({ error }, 'a request to the admin listener failed');
  });
  app.use((ctx, next) => {
    if (hasToken(ctx, parts)) places.recognize(ctx.req);
    return serveMachine(ctx, parts, next);
  });
  app.use((ctx, next) => checkHost(ctx, parts, next));
  if (parts.page) app.use(parts.page);
  return app;
}

async function serveMachine(ctx: Context, parts: AdminParts, next: () => Promise<void>): Promise<void> {
  const route = parts.routes.find(({ path }) => path === ctx.path);
  if (!route) return next();
  const { withoutToken, serve, method = 'GET' } = route;
  const known = hasToken(ctx, parts);
  if (!known && withoutToken !== 'status') {
    if (isReachable(parts) || withoutToken === 'refused')
      return refuse(ctx, 401, `Send the header "Authorization: Bearer <ADMIN_TOKEN>".`, {
        'WWW-Authenticate': 'Bearer',
      });
    const foreign = foreignHost(ctx.req, parts);
    if (foreign) return refuse(ctx, 403, foreign);
  }
  if (ctx.method !== method && !(method === 'GET' && ctx.method === 'HEAD'))
    return refuse(ctx, 405, `Use ${method}.`, { Allow: method === 'GET' ? 'GET, HEAD' : method });
  ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
  await serve(ctx);
  if (!known && (isReachable(parts) || foreignHost(ctx.req, parts))) {
    const { status } = ctx;
    ctx.body = '';
    ctx.status = status;
  }
}

/** Whether other machines may reach the listener, directly or through a proxy. */
function isReachable({ host, url }: AdminParts): boolean {
  return !isLocal(hostInUrl(host)) || !isLocal(hostnameOf(url ?? '') ?? '127.0.0.1');
}

function hasToken({ req }: Context, { opens }: AdminParts): boolean {
  const [, token] = /^Bearer +(\S{1,500})$/i.exec(req.headers.authorization ?? '') ?? [];
  return token !== undefined && opens(token);
}

/**
 * Refuses DNS rebinding: a web page that reaches this listener under its own host name must not see it, even in the operator's browser.
 */
async function checkHost(ctx: Context, parts: AdminParts, next: () => Promise<void>): Promise<void> {
  const foreign = foreignHost(ctx.req, parts);
  return foreign ? refuse(ctx, 403, foreign) : next();
}

function foreignHost({ headers }: IncomingMessage, { host, url }: AdminParts): string | undefined {
  const name = hostnameOf(`http://${headers.host ?? ''}`);
  const own = [host, url && hostnameOf(url)];
  if (name !== undefined && (isAddress(name) || isLocal(name) || own.includes(name))) return undefined;
  return 'The Host header is not that of this listener. Use its address, or set ADMIN_URL to the URL at which you reach it.';
}

function refuse(ctx: Context, status: number, message: string, headers: Record<string, string> = {}): void {
  ctx.status = status;
  ctx.set({ 'Cache-Control': 'no-store', ...headers });
  ctx.type = 'text/plain; charset=utf-8';
  ctx.body = `${message}\n`;
}
