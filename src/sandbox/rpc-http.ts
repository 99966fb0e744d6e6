import type { Chain } from './chain.js';
import { serveHttp, type HttpAnswer, type HttpServer } from './http-server.js';
import { RpcFault } from './rpc-fault.js';
import { METHODS } from './rpc-methods.js';

/** Names the chain in every answer, so that a caller can tell this sandbox from another on the same port. */
export const ID_HEADER = 'coinslot-sandbox';

const MAX_BODY = 1 << 20;
const MAX_BATCH = 100;

type RpcAnswer = { jsonrpc: '2.0'; id: unknown } & ({ result: unknown } | { error: object });

/**
 * Serves the chain as a Solana node does: JSON-RPC 2.0 over POST, single or in batches of at most 100, bodies up to 1 MB;
 * GET /health answers `ok`. Errors carry Solana's codes.
 */
export function serveRpc(chain: Chain, { host, port }: { host: string; port: number }): Promise<HttpServer> {
  return serveHttp({
    host,
    port,
    portName: 'SANDBOX_RPC_PORT',
    maxBody: MAX_BODY,
    headers: { [ID_HEADER]: chain.genesis.id },
    handle: async ({ method, path, body }): Promise<HttpAnswer> => {
      if (method === 'GET' && path === '/health') return { status: 200, body: 'ok' };
      if (method === 'POST') return { status: 200, body: await answerAll(chain, body) };
      const error = 'POST a JSON-RPC 2.0 request to this address, or GET /health.';
      return { status: method === 'GET' ? 404 : 405, body: { error } };
    },
  });
}

async function answerAll(chain: Chain, body: string): Promise<RpcAnswer | RpcAnswer[]> {
  let requests: unknown;
  try {
    requests = JSON.parse(body);
  } catch {
    return toError(null, new RpcFault(-32700, 'Parse error'));
  }
  if (!Array.isArray(requests)) return answer(chain, requests);
  if (requests.length === 0 || requests.length > MAX_BATCH) {
    return toError(null, new RpcFault(-32600, `Invalid request: a batch holds 1 to ${MAX_BATCH} calls`));
  }
  return Promise.all(requests.map(request => answer(chain, request)));
}

async function answer(chain: Chain, request: unknown): Promise<RpcAnswer> {
  const {
    id = null,
    method,
    params = [],
  } = (request ?? {}) as { id?: unknown; method?: unknown; params?: unknown };
  try {
    if (typeof method !== 'string') throw new RpcFault(-32600, 'Invalid request');
    const called = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
    if (!called) throw new RpcFault(-32601, 'Method not found');
    if (!Array.isArray(params)) throw new RpcFault(-32602, 'Invalid params: a list is expected');
    return { jsonrpc: '2.0', id, result: await called(chain, params as unknown[]) };
  } catch (error) {
    return toError(id, error);
  }
}

function toError(id: unknown, error: unknown): RpcAnswer {
  if (error instanceof RpcFault) {
    const { code, message, data } = error;
    return { jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } };
  }
  const message = `Internal error: ${error instanceof Error ? error.message : 'unexpected fault'}`;
  return { jsonrpc: '2.0', id, error: { code: -32603, message } };
}
