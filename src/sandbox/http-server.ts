import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export type HttpRequest = { method: string; path: string; body: string };
export type HttpAnswer = { status: number; body: unknown; headers?: { [name: string]: string } };

export type HttpOptions = {
  host: string;
  /** 0 chooses a free port. */
  port: number;
  /** The variable that sets the port, for the error message. */
  portName: string;
  /** In bytes; larger bodies get 413. */
  maxBody: number;
  /** Headers of every answer. */
  headers: { [name: string]: string };
  /** Answers a GET or POST. Errors become a 500. A string body is sent as text/plain, others as JSON. */
  handle: (request: HttpRequest) => Promise<HttpAnswer>;
};

export type HttpServer = { url: string; close(): Promise<void> };

const PORT_WAIT_MS = 1000;
const CLOSE_WAIT_MS = 1000;
const MAX_CONNECTIONS = 2048;
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, POST, OPTIONS',
  'access-control-allow-headers': '*',
  'access-control-max-age': '86400',
};

/**
 * Listens, with CORS open to all origins. Retries a port in use for a second, because a sandbox of another folder may be closing.
 * @throws Error that says which port is in use and what to do
 */
export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  const server = createServer((request, response) => void respond(options, request, response));
  server.maxConnections = MAX_CONNECTIONS;
  server.keepAliveTimeout = 65_000;
  server.headersTimeout = 10_000;
  server.requestTimeout = 30_000;
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  const name = ['0.0.0.0', '::', ''].includes(options.host) ? '127.0.0.1' : options.host;
  const url = `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
  return { url, close: () => close(server) };
}

async function listen(server: Server, { host, port, portName }: HttpOptions): Promise<void> {
  const deadline = Date.now() + PORT_WAIT_MS;
  for (;;) {
    const error = await tryListening(server, host, port);
    if (!error) return;
    if (error.code !== 'EADDRINUSE') throw new Error(`Cannot listen on ${host}:${port}: ${error.message}`);
    if (Date.now() > deadline) {
      const advice = `Stop the program that uses it, or set ${portName} to a free port.`;
      throw new Error(`Port ${port} of ${host} is in use. ${advice}`);
    }
    await sleep(100);
  }
}

function tryListening(server: Server, host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise(resolve => {
    const failed = (error: NodeJS.ErrnoException): void => settle(error);
    const listening = (): void => settle(null);
    const settle = (error: NodeJS.ErrnoException | null): void => {
      server.off('error', failed).off('listening', listening);
      resolve(error);
    };
    server.once('error', failed).once('listening', listening).listen({ host, port, backlog: 1024 });
  });
}

async function close(server: Server): Promise<void> {
  const done = new Promise<void>(resolve => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_WAIT_MS);
  await done;
  clearTimeout(timer);
}

async function respond(
  options: HttpOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = await answerTo(options, request);
  if (response.destroyed) return;
  const isText = typeof answer.body === 'string';
  const body = isText ? (answer.body as string) : JSON.stringify(answer.body);
  response.writeHead(answer.status, {
    'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json',
    'content-length': Buffer.byteLength(body),
    ...CORS,
    ...options.headers,
    ...answer.headers,
  });
  response.end(body);
}

async function answerTo({ maxBody, handle }: HttpOptions, request: IncomingMessage): Promise<HttpAnswer> {
  const method = request.method ?? '';
  if (method === 'OPTIONS') return { status: 204, body: '' };
  const path = (request.url ?? '/').split('?')[0] ?? '/';
  try {
    const body = await readBody(request, maxBody);
    if (body === null) {
      const error = `The body is larger than ${maxBody} bytes: send less.`;
      return { status: 413, body: { error }, headers: { connection: 'close' } };
    }
    return await handle({ method, path, body });
  } catch (error) {
    return { status: 500, body: { error: error instanceof Error ? error.message : 'unexpected fault' } };
  }
}

async function readBody(request: IncomingMessage, maxBody: number): Promise<string | null> {
  if (Number(request.headers['content-length'] ?? 0) > maxBody) return null;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBody) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
