import { once } from 'node:events';
import { createServer } from 'node:http';
import { performance } from 'node:perf_hooks';
import Koa from 'koa';
import { createOperatorPage } from '../dist/src/admin/operator-page.js';
import { PAY_TO } from './terms.js';

/** Serves the operator page of a ledger without selling anything. */

const TOKEN = 'a-token-for-the-benchmark';
const COUNTING = 'Earlier sales are still being counted';

const silent = () => {};
const nothing = { version: '0', uptimeSeconds: 1, status: 'ok', upstreams: {} };

/** @param {import('../dist/src/ledger/store.js').Ledger} ledger @returns {Promise<{ url: string, close: () => void }>} */
export async function serve(ledger) {
  const app = new Koa();
  // The page needs the server's own address, which is known once it listens.
  app.use((ctx, next) => page(ctx, next));
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  const closing = new AbortController();
  const page = createOperatorPage({
    ledger,
    shop: 'Coinslot',
    network: 'sandbox',
    payTo: PAY_TO,
    publicUrl: url,
    health: () => nothing,
    facilitators: () => [],
    breakers: () => [],
    listings: async () => [],
    counted: () => ({ since: Date.now(), operations: [] }),
    canary: async () => [],
    ownWallets: new Set(),
    refund: async () => {},
    retry: async () => {},
    log: { info: silent, warn: silent, error: silent },
    signal: closing.signal,
    token: TOKEN,
    url,
  });
  const close = () => {
    closing.abort();
    server.closeAllConnections();
    server.close();
  };
  return { url, close };
}

/** @param {string} url @returns {Promise<string>} the cookie */
export async function signIn(url) {
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const answer = await fetch(`${url}/login`, {
    method: 'POST',
    headers,
    body: `token=${TOKEN}`,
    redirect: 'manual',
  });
  return (answer.headers.get('set-cookie') ?? '').split(';')[0];
}

/** @returns {Promise<{ ms: number, counting: boolean }>} */
export async function look(url, cookie, path = '/overview') {
  const began = performance.now();
  const answer = await fetch(`${url}${path}`, { headers: { cookie } });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`the page answered ${answer.status}`);
  return { ms: performance.now() - began, counting: text.includes(COUNTING) };
}
