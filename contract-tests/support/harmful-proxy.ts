import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * What happens to a request on its way: the connection is cut before the request arrives or in the middle of
 * its answer; two copies arrive concurrently; its answer is `late`; or a gateway answers 503.
 */
export type Harm = 'none' | 'cut before' | 'cut after' | 'repeat' | 'late' | '503';

/** A request, with the payment from its header. */
export type Passing = { number: number; method: string; path: string; payment: string | undefined };

export type HarmfulProxy = {
  url: string;
  /** The payments of all requests so far; one that was sent twice is listed twice. */
  payments: string[];
  /** How many times each kind of harm was done. */
  done: Map<Harm, number>;
  harm(next: (passing: Passing) => Harm): void;
  close(): void;
};

/** An HTTP proxy in front of a shop. It forwards everything, headers included, and does to each request the harm that the test chooses. */
export async function harmfulProxy(target: string, lateMs: number): Promise<HarmfulProxy> {
  const payments: string[] = [];
  const done = new Map<Harm, number>();
  let choose: (passing: Passing) => Harm = () => 'none';
  let number = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = 'GET', url: path = '/', headers } = request;
    const payment = headers['payment-signature'];
    if (typeof payment === 'string') payments.push(payment);
    const harm = choose({ number: (number += 1), method, path, payment: payment?.toString() });
    done.set(harm, (done.get(harm) ?? 0) + 1);
    if (harm === 'cut before') return void response.destroy();
    if (harm === '503') return void response.writeHead(503, { 'content-type': 'text/plain' }).end('busy');
    const sent = Object.entries(headers).filter(([name]) => !/^(host|connection|content-length)$/.test(name));
    const pass = (): Promise<Response> =>
      fetch(target + path, {
        method,
        headers: Object.fromEntries(sent) as Record<string, string>,
        ...(method === 'POST' ? { body: Buffer.concat(chunks) } : {}),
      });
    const [answer] = await Promise.all(harm === 'repeat' ? [pass(), pass()] : [pass()]);
    const body = Buffer.from(await answer.arrayBuffer());
    const received = [...answer.headers].filter(([name]) => !/^(connection|keep-alive)$/.test(name));
    if (harm === 'late') await pause(lateMs);
    response.writeHead(answer.status, Object.fromEntries(received));
    if (harm !== 'cut after') return void response.end(body);
    response.write(body.subarray(0, body.length / 2));
    response.destroy();
  }

  const server = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    payments,
    done,
    harm: next => void (choose = next),
    close: () => server.close().closeAllConnections(),
  };
}
