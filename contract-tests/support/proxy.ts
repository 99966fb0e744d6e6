import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** How a proxy handles one request. It may answer itself, forward the request, or act before or after it forwards it. */
export type Intervention = (ask: {
  path: string;
  /** The JSON-RPC method, for an RPC server. */
  method: string | undefined;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Forwards the request and resolves to the real answer. */
  forward: () => Promise<{ status: number; body: Buffer }>;
  respond: (status: number, body: string | Buffer, headers?: Record<string, string>) => void;
  /** Cuts the connection without an answer. */
  drop: () => void;
}) => Promise<void> | void;

export type CountingProxy = {
  url: string;
  /**
   * The number of requests so far: all, or those with a path, a JSON-RPC method (`getAccountInfo`), or a method and its
   * subject (`getAccountInfo 4Nd1m…`).
   */
  count(name?: string): number;
  /** Sets what happens to each request from now on; undefined forwards everything. */
  intervene(intervention: Intervention | undefined): void;
  close(): Promise<void>;
};

/** An HTTP proxy that counts requests and can misbehave. The server to which it forwards a request may depend on the body. */
export async function countingProxy(target: string | ((body: Buffer) => string)): Promise<CountingProxy> {
  const counts = new Map<string, number>();
  let intervention: Intervention | undefined;
  const server = createServer((incoming, outgoing) => {
    void handle(incoming, outgoing).catch(() => outgoing.destroy());
  });

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readAll(incoming);
    const path = incoming.url ?? '/';
    const { method, subject } = rpcCallOf(body);
    for (const name of ['', path, method, subject === undefined ? undefined : `${method} ${subject}`])
      if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
    const respond: Parameters<Intervention>[0]['respond'] = (status, answer, headers = {}) => {
      outgoing.writeHead(status, { 'content-type': 'application/json', ...headers }).end(answer);
    };
    const to = typeof target === 'string' ? target : target(body);
    const forward = () => pass(to, incoming, body);
    if (intervention) {
      return void (await intervention({
        path,
        method,
        headers: incoming.headers,
        body,
        forward,
        respond,
        drop: () => outgoing.destroy(),
      }));
    }
    const answer = await forward();
    respond(answer.status, answer.body);
  }

  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    count: (name = '') => counts.get(name) ?? 0,
    intervene: next => {
      intervention = next;
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function rpcCallOf(body: Buffer): { method?: string; subject?: string } {
  if (body[0] !== 0x7b) return {};
  try {
    const { jsonrpc, method, params } = JSON.parse(body.toString('utf8')) as Record<string, unknown>;
    if (jsonrpc !== '2.0' || typeof method !== 'string') return {};
    const subject: unknown = Array.isArray(params) ? params[0] : undefined;
    return { method, ...(typeof subject === 'string' && { subject }) };
  } catch {
    return {};
  }
}

function pass(
  target: string,
  incoming: IncomingMessage,
  body: Buffer,
): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': String(body.length) };
    const outgoing = request(`${target}${incoming.url}`, { method: incoming.method, headers }, answer => {
      readAll(answer).then(bytes => resolve({ status: answer.statusCode ?? 502, body: bytes }), reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
