import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { Keypair } from '@solana/web3.js';
import { Routes } from '../../src/contract/routes.js';
import { createHttpServer, type HttpDeadlines, type Listener } from '../../src/http/server.js';
import { Offers } from '../../src/offers/offers.js';
import { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import { SUMMARIZE } from './test-chain.js';
import { sellingOf } from './selling.js';

/** The HTTP server with one priced operation, whose handler is given by the test. */
export type BareServer = { server: Server; url: string; close(): void };

export async function openBareServer(handle: Listener, deadlines: HttpDeadlines): Promise<BareServer> {
  const address = Keypair.generate().publicKey.toBase58();
  const terms = {
    network: 'n',
    v1Network: 'v',
    asset: address,
    payTo: address,
    publicUrl: 'http://127.0.0.1',
  };
  const hints = new SolanaHints(address);
  const offers = new Offers(sellingOf(terms).methods, hints);
  const routes = await Routes.create({
    document: { info: {}, paths: {} },
    paid: [SUMMARIZE],
    given: [],
    free: [],
  });
  const parts = { app: handle, offers, routes, documents: new Map(), exposed: '' };
  const server = createHttpServer(parts, deadlines);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    hints.close();
    server.closeAllConnections();
    server.close();
  };
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** Connections that a suite opens by hand; they are closed when the suite ends. */
export class Sockets {
  readonly #open: Socket[] = [];

  /** Starts connecting, and returns the socket before it is connected. */
  begin(url: string): Socket {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname).on('error', () => {});
    this.#open.push(socket);
    return socket;
  }

  async open(url: string): Promise<Socket> {
    const socket = this.begin(url);
    await once(socket, 'connect');
    return socket;
  }

  close(): void {
    for (const socket of this.#open.splice(0)) socket.destroy();
  }
}
