import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Keypair } from '@solana/web3.js';
import pino from 'pino';
import type { Contract } from '../../src/contract/contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import type { Serving } from '../../src/contract/operation.js';
import { createApp } from '../../src/http/app.js';
import { BodyReader } from '../../src/http/body.js';
import { Deliveries } from '../../src/http/deliveries.js';
import { exposedHeaders } from '../../src/http/exposed-headers.js';
import { FreeCalls } from '../../src/http/free-calls.js';
import { SignIns } from '../../src/sign-in/sign-ins.js';
import { Health, type HealthReport } from '../../src/http/health.js';
import type { People } from '../../src/http/people.js';
import { RecentCalls } from '../../src/http/recent-calls.js';
import { Routes } from '../../src/contract/routes.js';
import { orderWork } from '../../src/http/run-handler.js';
import { PickUps } from '../../src/http/serve-pick-up.js';
import { SourceLimits } from '../../src/http/source-limits.js';
import { createHttpServer } from '../../src/http/server.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { UNOBSERVED, type Event } from '../../src/observe/observer.js';
import { saleLog } from '../../src/observe/sale-log.js';
import { AnswerKeys } from '../../src/http/answer-keys.js';
import { Charge } from '../../src/sale/charge.js';
import { servedContract, type Selling } from '../../src/documents/discovery.js';
import { McpEndpoint } from '../../src/mcp/mcp-endpoint.js';
import type { Methods } from '../../src/methods/methods.js';
import { Offers } from '../../src/offers/offers.js';
import { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import { OrderWorker } from '../../src/sale/order-worker.js';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import {
  createHttpOperations,
  type HttpOperations,
} from '../../src/upstreams/http-operations/http-operations.js';
import type { HostCircuitOptions } from '../../src/upstreams/http-operations/host-circuit.js';
import { asked, FakeFacilitator, FEE_PAYER, RECIPE, TERMS } from './charge-world.js';
import { craftPayment, v2Header } from './craft.js';
import { PRICES } from '../../src/price/prices.js';
import { call, type Answer } from './world.js';
import type { Hinting, Rail } from '../../src/rails/rail.js';
import { sellingOf } from './selling.js';
import { solanaRail } from './solana-rail.js';

/** How orders are attempted. */
type OrderOptions = Pick<ConstructorParameters<typeof OrderWorker>[0], 'maxAttempts' | 'firstPauseMs'>;

/** A request that a test's upstream got. */
export type UpstreamCall = {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
  /** The body as it arrived. */
  bytes: Buffer;
};

/** A real server on a free port that records its requests. */
export class TestUpstream {
  readonly calls: UpstreamCall[] = [];
  connections = 0;
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"value":1}');
  };
  readonly #server: Server;
  url = '';

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on('connection', () => (this.connections += 1));
  }

  static async open(): Promise<TestUpstream> {
    const upstream = new TestUpstream();
    upstream.#server.listen(0, '127.0.0.1');
    await once(upstream.#server, 'listening');
    upstream.url = `http://127.0.0.1:${(upstream.#server.address() as AddressInfo).port}`;
    return upstream;
  }

  /** Answers every call with a status, a body and headers. */
  says(status: number, body: string | Buffer, headers: Record<string, string> = {}): void {
    this.answer = (_request, response) => {
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(body);
    };
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    this.calls.push({ method, url, headers, body: bytes.toString(), bytes });
    this.answer(request, response);
  }
}

type Parameter = { name: string; in: 'path' | 'query'; schema?: object };

const CENT = { mode: 'fixed', currency: 'USD', amount: '0.01' };

/** One operation for sale. */
export type OperationForSale = {
  id: string;
  path: string;
  upstream?: object;
  method?: 'get' | 'post';
  flow?: 'authorization' | 'upfront';
  /** The value of `x-free`. */
  free?: object;
  /** The value of `x-price`, without `flow`. Default: 0.01 USD. */
  price?: object;
  parameters?: Parameter[];
  /** Schema of the body. */
  body?: object;
  /** Content types of the 200 answer and their schemas. Default: JSON with a number `value`. */
  content?: Record<string, object>;
  /** Names of headers of the 200 answer. */
  headers?: string[];
  /** The answers that are sold, by status, instead of 200. */
  sold?: Record<string, object>;
};

export const VALUE = {
  type: 'object',
  required: ['value'],
  properties: { value: { type: 'number', maximum: 100 } },
};

const ANSWERS = {
  '/answers/{key}': {
    get: {
      operationId: 'getAnswer',
      'x-answers': true,
      summary: 'An answer',
      parameters: [{ name: 'key', in: 'path', required: true, schema: { type: 'string' }, example: 'a' }],
      responses: { 200: { description: 'The answer.' } },
    },
  },
};

/** @param paths further paths, which are free */
export function contractOf(
  operations: readonly OperationForSale[],
  paths: Record<string, object> = {},
  prices = PRICES,
): Contract {
  return parseContract(JSON.stringify(documentOf(operations, paths)), 'shop.yaml', prices);
}

/** The contract of a shop that sells these operations, and has the other paths given. */
export function documentOf(
  operations: readonly OperationForSale[],
  paths: Record<string, object> = {},
): object {
  for (const operation of operations) {
    const { id, path, upstream, method = 'get', flow = 'authorization', parameters = [], body } = operation;
    const { content = { 'application/json': VALUE }, headers = [], price = CENT, sold } = operation;
    const other = {
      description: 'No answer.',
      content: { 'application/json': { schema: { type: 'object' } } },
    };
    paths[path] = {
      [method]: {
        operationId: id,
        tags: ['Shop'],
        summary: id,
        'x-price': { ...price, flow },
        ...(operation.free ? { 'x-free': operation.free } : {}),
        'x-upstream': upstream,
        parameters: parameters.map(({ schema = { type: 'string' }, ...parameter }) => ({
          ...parameter,
          ...(parameter.in === 'path' ? { required: true, example: 'a' } : {}),
          schema,
        })),
        ...(body
          ? {
              requestBody: { required: true, content: { 'application/json': { schema: body, example: {} } } },
            }
          : {}),
        responses: {
          ...(sold ?? {
            200: {
              description: 'What is sold.',
              headers: Object.fromEntries(headers.map(name => [name, { schema: { type: 'string' } }])),
              content: Object.fromEntries(
                Object.entries(content).map(([type, schema]) => [type, { schema }]),
              ),
            },
          }),
          400: other,
          402: other,
          502: other,
          503: other,
        },
      },
    };
  }
  return { openapi: '3.1.0', info: { title: 'A shop', version: '1.0.0' }, paths };
}

export type ShopOptions = {
  breaker?: HostCircuitOptions;
  allowPrivate?: boolean;
  orders?: OrderOptions;
  /** The payment method. Default: x402. */
  methods?: Methods;
  /** Whether its facilitator also pays the fees of MPP payments. */
  sponsored?: boolean;
  /** The rail. Default: Solana, with a facilitator whose answers the test sets. */
  rail?: Rail & Hinting;
  /** The kinds of price that operations may have. Default: those that come with Coinslot. */
  prices?: typeof PRICES;
  /** Handlers that serve operations instead of their upstreams. */
  handlers?: Serving;
  /** Further operations, by path, as in a contract. */
  paths?: Record<string, object>;
  /** How many proxies forward the callers' addresses. Default: none, and callers have no limits. */
  trustedProxies?: number;
  /** The clock of the ledger and of the free calls. */
  now?: () => number;
  /** Wallets that the operator has blocked. */
  blocked?: ReadonlySet<string>;
  /** The pages that browsers get. Default: browsers get the same answers as programs. */
  people?: People;
  /** The ledger of another shop; this shop uses it too, as a second server. */
  ledger?: Ledger;
  /** Called with every response before it is written. */
  watch?: (response: ServerResponse) => void;
};

/** The URL at which buyers fetch answers, without the key that follows it. */
export const ANSWERS_URL = 'https://shop.example/answers/';

/** A shop whose operations are served by HTTP APIs. Only the facilitator and the chain are not real. */
export class UpstreamShop {
  readonly facilitator = new FakeFacilitator();
  readonly contract: Contract;
  readonly ledger: Ledger;
  /** Everything that was logged, as text. */
  logged = '';
  readonly #closers: (() => Promise<unknown> | void)[] = [];
  readonly #folder: string;
  url = '';
  charge: Charge | undefined;
  #health: Health | undefined;
  #methods = sellingOf(TERMS).methods;

  private constructor(contract: Contract, ledger: Ledger, folder: string) {
    this.contract = contract;
    this.ledger = ledger;
    this.#folder = folder;
  }

  static async open(
    operations: readonly OperationForSale[],
    env: Record<string, string> = {},
    options: ShopOptions = {},
  ): Promise<UpstreamShop> {
    const contract = contractOf(operations, { ...ANSWERS, ...options.paths }, options.prices);
    const settings = { variable: (name: string) => env[name], allowPrivate: options.allowPrivate ?? true };
    const http = createHttpOperations(contract, settings, options.breaker);
    const folder = await mkdtemp(join(tmpdir(), 'coinslot-upstreams-'));
    const ledger =
      options.ledger ??
      (await openLedger({
        url: `file:${folder}/ledger.db`,
        payTo: TERMS.payTo,
        network: TERMS.network,
        ...(options.now && { now: options.now }),
      }));
    const shop = new UpstreamShop(contract, ledger, folder);
    shop.#methods = options.methods ?? shop.#methods;
    await shop.#serve(http, options);
    return shop;
  }

  /** What the shop's observer was called with. */
  readonly events: Event[] = [];

  /** The OpenAPI document that buyers see. */
  get openapi(): string {
    return JSON.stringify(servedContract(this.contract, this.#selling, TERMS.publicUrl));
  }

  get #selling(): Selling {
    return { publicUrl: TERMS.publicUrl, methods: this.#methods };
  }

  health(): HealthReport {
    if (!this.#health) throw new Error('the shop is not open');
    return this.#health.report();
  }

  /** Probes all upstreams now. */
  async probe(): Promise<void> {
    this.#health?.start();
    await new Promise(resolve => setTimeout(resolve, 200));
    this.#health?.stop();
  }

  /** A header that pays for an operation. */
  pay(id: string, payer = Keypair.generate()): Record<string, string> {
    const operation = this.contract.paid.find(each => each.id === id);
    if (!operation) throw new Error(`no operation ${id}`);
    const { transaction } = craftPayment({ ...RECIPE, payer, amount: operation.price.atomic });
    return { 'PAYMENT-SIGNATURE': v2Header(requirementsOf(operation, TERMS, FEE_PAYER), transaction) };
  }

  /** Calls an operation with a new payment. */
  buy(id: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call(path, { ...this.pay(id), ...headers }, body);
  }

  call(path: string, headers: Record<string, string>, body?: object): Promise<Answer> {
    const json = body && { method: 'POST', body: JSON.stringify(body) };
    const type: Record<string, string> = body ? { 'Content-Type': 'application/json' } : {};
    return call(this.url + path, { ...json, headers: { ...type, ...headers } });
  }

  /** The states of all payments in the ledger. */
  async states(): Promise<string[]> {
    return (await this.ledger.list({ limit: 1_000 })).map(({ state }) => state);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #serve(
    http: HttpOperations,
    { handlers: own = {}, watch = () => {}, orders: timing, ...options }: ShopOptions,
  ): Promise<void> {
    const { contract, ledger, facilitator } = this;
    const destination = { write: (line: string) => void (this.logged += line) };
    const serializers = { error: pino.stdSerializers.err, cause: pino.stdSerializers.err };
    const log = pino({ level: 'trace', serializers }, destination);
    const routes = await Routes.create(contract);
    const calls = new RecentCalls();
    const handlers = calls.observe({ ...http.served, ...own });
    routes.register(handlers);
    const parts = { routes, handlers, log, calls };
    const hints = new SolanaHints(FEE_PAYER);
    if (options.sponsored) hints.sponsor = () => FEE_PAYER;
    hints.setView({ blockhash: Keypair.generate().publicKey.toBase58(), slot: 1000, height: 900 });
    const sales = saleLog(log);
    const tell = (event: Event): void => {
      this.events.push(event);
      sales.hear(event);
    };
    const observer = { ...UNOBSERVED, tell };
    const orders = new OrderWorker({
      ledger,
      work: orderWork(parts),
      log,
      observer,
      attemptMs: 60_000,
      ...timing,
    });
    const confirm = async (): Promise<boolean> => true;
    const from = { hints, facilitator: asked(facilitator), ledger, terms: TERMS };
    const rail = options.rail ?? solanaRail(from, { confirm });
    const offers = new Offers(this.#methods, options.rail ?? hints);
    const charge = new Charge({
      ledger,
      rail,
      methods: this.#methods,
      log,
      orders,
      maxUnsettledPerPayer: 256,
    });
    this.charge = charge;
    this.#health = new Health('1.0.0', http.probes, calls);
    const exposed = exposedHeaders(contract, this.#methods);
    const answerKeys = await AnswerKeys.open(ledger, ANSWERS_URL);
    const limits = new SourceLimits({ trustedProxies: options.trustedProxies ?? 0 });
    const signIns = new SignIns({ publicUrl: TERMS.publicUrl, chainId: TERMS.network }, options.now);
    const { blocked = new Set<string>() } = options;
    const { paid } = contract;
    const freeCalls = new FreeCalls({ ...parts, ledger, limits, signIns, blocked, paid }, options.now);
    const serving = {
      ...parts,
      freeCalls,
      observer,
      charge,
      offers,
      answerKeys,
      pickUps: new PickUps(contract, answerKeys, charge, offers.methods),
      bodies: new BodyReader(),
      deliveries: new Deliveries(),
      limits,
      exposed,
      documents: new Map(),
      pages: [],
      holdMs: 10_000,
      closing: new AbortController().signal,
      ...(options.people && { people: options.people }),
    };
    const callback = createApp(serving).callback();
    const { trustedProxies = 0 } = options;
    const addresses = { publicUrl: TERMS.publicUrl, siteUrl: TERMS.publicUrl, trustedProxies };
    const mcp = new McpEndpoint({ ...serving, contract, ...addresses });
    const server = createHttpServer({
      app: (request, response) => {
        watch(response);
        void (mcp.serves(request) ? mcp.serve(request, response) : callback(request, response));
      },
      offers,
      routes,
      documents: new Map(),
      exposed,
      ...(options.people && { people: options.people }),
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.#closers.push(
      () => (options.ledger ? undefined : ledger.close()),
      () => http.close(),
      () => hints.close(),
      () => mcp.close(),
      () => charge.idle(),
      () => orders.stop(),
      () => {
        server.closeAllConnections();
        server.close();
      },
    );
  }
}
