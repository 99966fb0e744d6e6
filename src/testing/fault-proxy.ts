import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Passing = { method: string; path: string; body: Buffer };

/** What happens to a request: it is passed on, its connection is closed, or it gets this answer. `lose` passes it on but drops the answer. */
export type Effect = 'pass' | 'cut' | 'lose' | { status: number; body: unknown };

/** A proxy between a shop and a service that it needs. Passes all requests on while `effect` is undefined. */
export type FaultProxy = {
  url: string;
  effect: ((request: Passing) => Effect) | undefined;
  close(): Promise<void>;
};

const MAX_BODY = 16 * 1024 * 1024;
/** An upstream may take this long for an order that is paid up front. */
const PASS_MS = 600_000;
/** Headers that are not passed on, because they belong to one connection, or describe an encoding that fetch has already decoded. */
const NOT_PASSED_ON =
  /^(host|connection|keep-alive|transfer-encoding|upgrade|expect|content-length|content-encoding|accept-encoding)$/;

export async function openFaultProxy(target: string): Promise<FaultProxy> {
  const server = createServer((request, response) => {
    void pass(proxy, target, request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    effect: undefined,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return proxy;
}

async function pass(
  proxy: FaultProxy,
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = 'GET', url: path = '/' } = request;
  const body = await bodyOf(request);
  const effect = proxy.effect?.({ method, path, body }) ?? 'pass';
  if (effect === 'cut') return void response.destroy();
  if (typeof effect === 'object') {
    response.writeHead(effect.status, { 'content-type': 'application/json' });
    return void response.end(JSON.stringify(effect.body));
  }
  const answer = await fetch(target + path, {
    method,
    headers: passedOn(Object.entries(request.headers)),
    redirect: 'manual',
    signal: AbortSignal.timeout(PASS_MS),
    ...(body.length > 0 ? { body } : {}),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (effect === 'lose') return void response.destroy();
  response.writeHead(answer.status, passedOn([...answer.headers])).end(bytes);
}

function passedOn(headers: [string, string | string[] | undefined][]): Record<string, string> {
  return Object.fromEntries(
    headers.filter(([name]) => !NOT_PASSED_ON.test(name)).map(([name, value]) => [name, String(value)]),
  );
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY) throw new Error(`a request of more than ${MAX_BODY} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
