import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createTokenBrief, type TokenBriefOptions } from '../../handlers/sol-token-brief/brief.js';
import type { MarketSource } from '../../handlers/sol-token-brief/source.js';
import { createMarketSources } from '../../handlers/sol-token-brief/sources.js';

export const MINT = 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN';
export const OTHER = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
export const open = () => new AbortController().signal;

export type Behaviour = (request: IncomingMessage, response: ServerResponse) => void;
export type Kind = 'jupiter' | 'dexscreener' | 'geckoterminal';
export const KINDS: Kind[] = ['jupiter', 'dexscreener', 'geckoterminal'];

export const json =
  (body: unknown, status = 200): Behaviour =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

export const jupiterToken = (more: object = {}) => ({
  id: MINT,
  name: 'Jupiter',
  symbol: 'JUP',
  icon: null,
  decimals: 6,
  circSupply: 3_000,
  holderCount: 857_247,
  fdv: 10_000,
  mcap: 3_000,
  usdPrice: 1,
  liquidity: 2_000,
  stats24h: { priceChange: -8.27, buyVolume: 300, sellVolume: 200.5 },
  organicScore: 98.08,
  audit: { mintAuthorityDisabled: true, topHoldersPercentage: 15.45 },
  isVerified: true,
  firstPool: { id: OTHER, createdAt: '2024-01-29T17:33:29Z' },
  updatedAt: '2026-01-01T23:59:50Z',
  ...more,
});

export const pool = (priceUsd: unknown, more: object = {}) => ({
  chainId: 'solana',
  dexId: 'orca',
  baseToken: { address: MINT, name: 'Jupiter', symbol: 'JUP' },
  quoteToken: { address: OTHER, name: 'USD Coin', symbol: 'USDC' },
  priceNative: '1',
  priceUsd,
  volume: { h24: 100 },
  liquidity: { usd: 700, base: 1, quote: 1 },
  fdv: 10_000,
  marketCap: 3_100,
  ...more,
});

export const geckoToken = (more: object = {}) => ({
  data: {
    id: `solana_${MINT}`,
    type: 'token',
    attributes: {
      address: MINT,
      name: 'Jupiter',
      symbol: 'JUP',
      price_usd: '1.02',
      fdv_usd: '10200.0',
      total_reserve_in_usd: '2500.5',
      volume_usd: { h24: '450.25' },
      market_cap_usd: null,
      ...more,
    },
  },
});

export const GOOD: Record<Kind, Behaviour> = {
  jupiter: json([jupiterToken()]),
  dexscreener: json([pool('1.01'), pool('1.0'), pool('1.02')]),
  geckoterminal: json(geckoToken()),
};

/** A way for a source to misbehave, and the failure that is expected then. */
export const FAILURES: Record<string, { behave: Behaviour; kind: 'failed' | 'unavailable' }> = {
  'never answers': { behave: () => {}, kind: 'failed' },
  'stops in mid-answer': {
    kind: 'failed',
    behave: (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 5_000 });
      response.write('[{"id":');
      setTimeout(() => response.destroy(), 20);
    },
  },
  'stalls in mid-answer': {
    kind: 'failed',
    behave: (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 5_000 });
      response.write('[{"id":');
    },
  },
  'answers too much': {
    kind: 'failed',
    behave: (_request, response) => response.end(`["${'x'.repeat(2_100_000)}"]`),
  },
  'answers 429': {
    kind: 'unavailable',
    behave: (_request, response) =>
      response.writeHead(429, { 'retry-after': '7' }).end('{"message":"slow down"}'),
  },
  'answers 500': { behave: json({ error: 'boom' }, 500), kind: 'failed' },
  'answers 401': { behave: json({ code: 401, message: 'no' }, 401), kind: 'failed' },
  'answers a redirect': {
    behave: (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end(),
    kind: 'failed',
  },
  'answers a page of HTML': { behave: json('<html><h1>Just a moment…</h1></html>'), kind: 'failed' },
  'answers a 404 page of HTML': { behave: json('<html>no such page</html>', 404), kind: 'failed' },
  'answers JSON of another shape': { behave: json({ pairs: 'none' }), kind: 'failed' },
  'answers null': { behave: json('null'), kind: 'failed' },
  'cuts the connection': { behave: request => request.socket.destroy(), kind: 'failed' },
};

/** A short deadline, used only where the deadline itself ends the call. */
export const deadlineFor = (what: string, short = 500): number => (/never|stalls/.test(what) ? short : 4_000);

/** The three aggregators on one server; `behave` can change their behaviour at any time. */
export class Aggregators {
  readonly behave: Record<Kind, Behaviour> = { ...GOOD };
  readonly asked: IncomingMessage[] = [];
  readonly connections = new Set<unknown>();
  readonly #server: Server = createServer((request, response) => {
    this.asked.push(request);
    const kind = KINDS.find(name => request.url?.startsWith(`/${name}/`));
    if (kind) this.behave[kind](request, response);
    else response.writeHead(404).end();
  });
  url = '';

  async start(): Promise<this> {
    this.#server.on('connection', socket => this.connections.add(socket));
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  count(kind: Kind): number {
    return this.asked.filter(request => request.url?.startsWith(`/${kind}/`)).length;
  }

  async stop(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

export let market: Aggregators;

let opened: { close(): Promise<void> }[];

export type Options = Parameters<typeof createMarketSources>[0];

export function sources(options: Options = {}): Record<Kind, MarketSource> {
  const [jupiter, dexscreener, geckoterminal] = createMarketSources({ marketUrl: market.url, ...options });
  if (!jupiter || !dexscreener || !geckoterminal) throw new Error('a source is missing');
  opened.push(jupiter, dexscreener, geckoterminal);
  return { jupiter, dexscreener, geckoterminal };
}

export function service(options: Partial<TokenBriefOptions> = {}, sourceOptions: Options = {}) {
  const made = createTokenBrief({
    sources: createMarketSources({ marketUrl: market.url, deadlineMs: 4_000, ...sourceOptions }),
    mintOf: async () => ({ supply: '10000.000000', findings: [] }),
    ...options,
  });
  opened.push(made);
  return made;
}

export async function openMarket(): Promise<void> {
  market = await new Aggregators().start();
}

/** Gives every test of a suite a market of its own, and closes its sources afterwards. */
export function eachWithANewMarket(): void {
  beforeEach(async () => {
    await openMarket();
    opened = [];
  });
  afterEach(async () => {
    await market.stop();
    await Promise.all(opened.map(each => each.close()));
  });
}
