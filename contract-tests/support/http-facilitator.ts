import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FacilitatorRequest } from '../../src/facilitators/facilitator.js';
import { DEVNET, DEVNET_USDC } from './craft.js';

/** A request to the facilitator that names this fee payer. Its transaction is not valid. */
export function facilitatorRequest(feePayer: string): FacilitatorRequest {
  return {
    transaction: 'AAAA',
    requirements: {
      scheme: 'exact',
      network: DEVNET,
      amount: '10000',
      asset: DEVNET_USDC,
      payTo: 'Receiver',
      maxTimeoutSeconds: 60,
      extra: { feePayer },
    },
  };
}

type Reply = (request: IncomingMessage, response: ServerResponse) => void;
type Seen = { url: string; method: string; headers: IncomingHttpHeaders; body: unknown };

/** A real HTTP server whose answers a test sets, and which keeps the requests that it got. */
export class FakeHttpFacilitator {
  readonly seen: Seen[] = [];
  reply: Reply = (_request, response) => response.end('{}');
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { url = '', method = '', headers } = request;
      const text = Buffer.concat(chunks).toString();
      this.seen.push({ url, method, headers, body: text && JSON.parse(text) });
      this.reply(request, response);
    });
  });

  says(status: number, body: unknown): void {
    this.reply = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
  }

  /** @returns its URL */
  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
