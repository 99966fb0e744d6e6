import { BuyFault, reasonOf } from './shop-client.js';
import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  StreamableHTTPClientTransport,
  type FetchLike,
  type Tool,
} from '@modelcontextprotocol/client';
import type { Json } from '../contract/json.js';
import { orAbort, withDeadline } from '../net/deadline.js';
import { isLocal } from '../net/host-names.js';
import type { Challenge } from './offer.js';
import { challengeOfError, type ToolResult } from './tool-result.js';

/** The outcome of one request. `lost`: the shop may or may not have received it. `refused`: it answered with a JSON-RPC error. */
export type ShopReply =
  | { kind: 'result'; result: ToolResult }
  | { kind: 'challenge'; challenge: Challenge }
  | { kind: 'refused'; error: string }
  | { kind: 'lost'; error: string };

export type Progress = { progress: number; total?: number; message?: string };
export type CallOptions = { withinMs: number; signal: AbortSignal; onProgress: (progress: Progress) => void };

const CONNECT_MS = 15_000;
const LIST_MS = 30_000;
const CLOSE_MS = 2_000;
/** How long to wait after the end of a stream for its answer, which the library delivers a little later. */
const SETTLE_MS = 250;
const CUT = new Error('the connection was cut');
const MAX_TOOLS_PAGES = 20;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const ABOUT = { name: 'coinslot-wallet', version: '1.0.0' };

/** Checks that the wallet may pay at a URL. @throws BuyFault */
export function payableUrl(text: string, allowHttp: boolean): URL {
  if (!/^https?:/.test(text) || !URL.canParse(text)) throw new BuyFault(`${text} is not an http(s) URL.`);
  const url = new URL(text);
  if (url.protocol === 'http:' && !isLocal(url.hostname) && !allowHttp)
    throw new BuyFault(
      `${text} has no TLS: anyone on the network path could change who is paid. Use https, or --allow-http (allowHttp).`,
    );
  return url;
}

/** The MCP endpoint of a shop, from its own URL or the shop's. @throws BuyFault */
export function endpointOf(text: string, allowHttp: boolean): string {
  const url = payableUrl(text, allowHttp);
  if (url.pathname === '/') url.pathname = '/mcp';
  return url.href;
}

/** The MCP server of a shop over Streamable HTTP, with or without sessions. */
export class Shop {
  readonly endpoint: string;

  constructor(endpoint: string) {
    this.endpoint = endpoint;
  }

  /** All tools of the shop. @throws Error */
  async tools(): Promise<Tool[]> {
    return this.#with(async client => (await client.listTools(undefined, { timeout: LIST_MS })).tools);
  }

  /** @throws Error with the shop's own message, if it answers with one */
  async read(uri: string, withinMs = LIST_MS): Promise<Json> {
    return this.#with(
      async client => (await client.readResource({ uri }, { timeout: withinMs })) as unknown as Json,
    );
  }

  /** The shop's instructions for models. @throws Error */
  async instructions(): Promise<string | undefined> {
    return this.#with(async client => client.getInstructions());
  }

  /** Calls a tool once, on its own connection, so that a lost connection affects no other call. Never rejects. */
  async call(name: string, args: Json, meta: Json, options: CallOptions): Promise<ShopReply> {
    const { withinMs, signal, onProgress } = options;
    const cut = new AbortController();
    try {
      return await withDeadline(withinMs, signal, ends =>
        this.#with(async client => {
          const answer = client.request(
            { method: 'tools/call', params: { name, arguments: args, _meta: meta } },
            {
              timeout: withinMs,
              signal: ends,
              onprogress: onProgress,
              onRequestStreamEnd: () => void setTimeout(() => cut.abort(CUT), SETTLE_MS).unref(),
            },
          );
          const result = (await orAbort(answer, cut.signal)) as unknown as ToolResult;
          return { kind: 'result', result };
        }),
      );
    } catch (error) {
      return replyOf(error);
    }
  }

  async #with<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const options = { versionNegotiation: { mode: 'auto' }, listMaxPages: MAX_TOOLS_PAGES } as const;
    const client = new Client(ABOUT, options);
    const transport = new StreamableHTTPClientTransport(new URL(this.endpoint), {
      fetch: boundedFetch,
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: 1_000,
        maxReconnectionDelay: 1_000,
        reconnectionDelayGrowFactor: 1,
      },
    });
    try {
      await client.connect(transport, { timeout: CONNECT_MS });
      return await work(client);
    } finally {
      const leave = withDeadline(CLOSE_MS, new AbortController().signal, () => transport.terminateSession());
      await leave.catch(() => {});
      await client.close().catch(() => {});
    }
  }
}

/** Shops are not trusted, so the size of their answers is limited. */
const boundedFetch: FetchLike = async (url, init) => {
  const answer = await fetch(url, init);
  if (!answer.body) return answer;
  let bytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) controller.error(new Error('the answer is larger than 64 MB'));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = answer;
  return new Response(answer.body.pipeThrough(counter), { status, statusText, headers });
};

function replyOf(error: unknown): ShopReply {
  if (error instanceof ProtocolError) {
    const challenge = challengeOfError(error.code, error.data);
    if (challenge) return { kind: 'challenge', challenge };
    return { kind: 'refused', error: error.message.slice(0, 300) };
  }
  return { kind: 'lost', error: lostBecause(error) };
}

/** Why a request got no answer, in a few words. */
export function lostBecause(error: unknown): string {
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) return 'no answer in time';
  if (error instanceof Error && error.name === 'TimeoutError') return 'no answer in time';
  return reasonOf(error).slice(0, 200);
}
