import type { Json } from '../contract/json.js';
import { productName } from '../contract/product-name.js';
import type { Finding, Probe } from '../contract/probe.js';
import { createApp } from '../http/app.js';
import { BodyReader } from '../http/body.js';
import { exposedHeaders } from '../http/exposed-headers.js';
import { Deliveries } from '../http/deliveries.js';
import type { SharedNotes } from '../pages/session.js';
import { readInfo } from '../config/sandbox-file.js';
import { freeAnswers } from '../http/free-answers.js';
import { FreeCalls, type FreeCallsParts } from '../http/free-calls.js';
import { servePages } from '../http/handler-pages.js';
import { orderWork, type HandlerParts } from '../http/run-handler.js';
import { Health } from '../http/health.js';
import type { Order } from '../ledger/store.js';
import type { OwnHosts } from '../mcp/allowed-hosts.js';
import { McpEndpoint, type McpParts } from '../mcp/mcp-endpoint.js';
import { AnswerKeys } from '../http/answer-keys.js';
import { buyersReceipts } from '../http/buyers-receipts.js';
import { explorerOf } from '../rails/solana/explorer.js';
import { SECRETS_READ_EVERY_MS } from '../http/answer-secrets.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { BlockedPayers } from '../admission/blocked-payers.js';
import { isAddress } from '../rails/solana/address.js';
import { anonymizer } from '../operator/anonymizer.js';
import { Charge } from '../sale/charge.js';
import { readRequestText } from '../contract/fingerprint.js';
import { OrderWorker } from '../sale/order-worker.js';
import { Reconciler } from '../sale/reconciler.js';
import { RecentCalls } from '../http/recent-calls.js';
import { answersUrl, PickUps } from '../http/serve-pick-up.js';
import { Routes } from '../contract/routes.js';
import { SourceLimits } from '../http/source-limits.js';
import { Trimmer } from '../sale/trimmer.js';
import type { HttpParts } from '../http/server.js';
import type { OrderInProgress } from '../shop/handler-context.js';
import { openHandlers, type OpenHandlers } from '../shop/open-handlers.js';
import { keepPageLinks } from '../shop/page-links.js';
import { SignIns } from '../sign-in/sign-ins.js';
import { openPages } from '../site/open-pages.js';
import type { Base } from './base.js';
import type { Offering } from './offering.js';
import { openReceipts, withKeys } from './signing.js';

const FIRST_LOOK_MS = 5_000;
/** Well below the 60 s after which MCP hosts end a call. */
const MCP_HOLD_MS = 45_000;

/** The parts that serve calls. `idle` resolves when no payment is being processed. */
export type Selling = Omit<HttpParts, 'offers'> & {
  idle(): Promise<void>;
  health: Health;
  orders: OrderWorker;
  /** The backends of the operations. */
  backends: string[];
  /** Sections of operations on the operator page, by operationId. */
  sections: OpenHandlers['sections'];
  /** Links that open the pages of operations. */
  pageLinks: readonly { name: string; url: string }[];
};

/** Builds the request handling, and checks unresolved payments once. */
export async function openSelling(base: Base, offering: Offering): Promise<Selling> {
  const { config, contract, apis, terms, methods, log, closing, disposers } = base;
  const { observer } = base.observation;
  const { ledger, offers, rail } = offering;
  const shop = await openEntries(base, offering);
  const routes = await Routes.create(contract);
  const calls = new RecentCalls(undefined, observer);
  const handlers = calls.observe({ ...shop.serving, ...apis.served });
  routes.register(handlers);
  const handlerParts = { routes, handlers, log, calls };
  const work = orderWork(handlerParts);
  const { orderMs: attemptMs, orderAttempts: maxAttempts, maxUnsettledPerPayer, unsoldPerHour } = config;
  const orders = new OrderWorker({ ledger, work, log, observer, attemptMs, maxAttempts });
  const sale = { ledger, rail, log, observer, blocked: await openBlocked(base) };
  const charge = new Charge({ ...sale, methods, orders, maxUnsettledPerPayer, unsoldPerHour });
  const reconciler = new Reconciler(sale);
  disposers.unshift(() => reconciler.stop());
  await reconciler.start(FIRST_LOOK_MS);
  orders.start();
  startTrimming(base, offering);
  disposers.unshift(() => orders.stop());
  const health = healthOf(base, offering, shop, calls);
  disposers.unshift(async () => health.stop());
  const siteUrl = config.siteUrl ?? terms.publicUrl;
  const exposed = exposedHeaders(contract, methods);
  const selling = { publicUrl: terms.publicUrl, methods };
  const { live, ...answers } = freeAnswers({ ...base, ...shop, selling, siteUrl, health, handlers, exposed });
  routes.register(live);
  const limits = new SourceLimits({ ...config, log, observer });
  const memory = { bodies: new BodyReader(), deliveries: new Deliveries(), limits };
  const answerKeys = await openAnswerKeys(base, offering);
  const pickUps = new PickUps(contract, answerKeys, charge, methods);
  const sampleMint = readInfo(config.stateDir)?.mints.classic;
  const from = { ...offering, ...base, ...memory, sampleMint, siteUrl, exposed, answers, routes };
  const pages = await openPages(from);
  const receipts = await openReceipts(base, offering);
  const documents = withKeys(pages.documents, receipts, exposed);
  const paying = { charge, offers, closing, answerKeys, pickUps, ...(receipts ? { receipts } : {}) };
  const given = { freeCalls: freeCallsOf(base, handlerParts, { ...sale, limits }), people: pages.people };
  const serving = { ...handlerParts, ...memory, ...paying, ...given, observer, exposed };
  const own = [...shop.pages.map(each => servePages(each, log)), receiptsFor(base, offering, answerKeys)];
  const app = createApp({ ...serving, documents, holdMs: config.holdMs, pages: own }).callback();
  const mcp = mcpOf(base, serving, siteUrl);
  const beside = pages.wallet ? [mcp, pages.wallet] : [mcp];
  void routes.warm();
  return {
    app: (request, response) => {
      const server = beside.find(each => each.serves(request));
      void (server ? server.serve(request, response) : app(request, response));
    },
    ...{ ...memory, routes, documents, people: pages.people, exposed },
    ...(pages.landing ? { landing: pages.landing } : {}),
    health,
    orders,
    backends: [...new Set(Object.values(handlers).flatMap(({ backend }) => backend ?? []))],
    idle: () => charge.idle(),
    sections: shop.sections,
    pageLinks: await keepPageLinks(shop.pages, config.stateDir, log),
  };
}

function startTrimming({ config, log, disposers }: Base, { ledger, rail }: Offering): void {
  const retention = { ...config.retention, own: config.ownWallets, anonymizer };
  const trimmer = new Trimmer({ ledger, rail, log, retention });
  trimmer.start();
  disposers.unshift(() => trimmer.stop());
}

/** Rereads the secrets for answer keys, because an operator may change them while servers run. */
async function openAnswerKeys(
  { contract, terms, log, disposers }: Base,
  { ledger }: Offering,
): Promise<AnswerKeys> {
  const keys = await AnswerKeys.open(ledger, answersUrl(contract, terms.publicUrl));
  const read = (): void =>
    void keys.refresh(ledger).catch((error: unknown) => {
      log.warn({ error }, 'could not read the secrets for answer keys from the ledger');
    });
  const timer = setInterval(read, SECRETS_READ_EVERY_MS).unref();
  disposers.unshift(async () => clearInterval(timer));
  return keys;
}

async function openBlocked({ config, log, disposers }: Base): Promise<BlockedPayers> {
  const blocked = new BlockedPayers({ file: config.blockedPayers, isPayer: isAddress, log });
  await blocked.start();
  disposers.unshift(async () => blocked.stop());
  return blocked;
}

function freeCallsOf(
  { terms, contract: { paid } }: Base,
  handlerParts: HandlerParts,
  counting: Pick<FreeCallsParts, 'ledger' | 'limits' | 'blocked'>,
): FreeCalls {
  const { publicUrl, network: chainId } = terms;
  return new FreeCalls({ ...handlerParts, ...counting, signIns: new SignIns({ publicUrl, chainId }), paid });
}

function receiptsFor(
  { config, contract, terms }: Base,
  { ledger }: Offering,
  answerKeys: AnswerKeys,
): ReturnType<typeof buyersReceipts> {
  const network = config.network.name;
  const explorer = explorerOf(config.explorer, network);
  return buyersReceipts({ contract, terms, network, ledger, answerKeys, explorer });
}

/**
 * The handlers' notes, stored under a prefix that keeps them apart from the engine's. The panel's notes keep the names that they had before there was
 * a prefix.
 */
function notesOf(ledger: Offering['ledger']): SharedNotes {
  const nameOf = (key: string): string => (key.startsWith('panel-') ? key : `handlers:${key}`);
  return {
    getMeta: key => ledger.getMeta(nameOf(key)),
    setMeta: (key, value) => ledger.setMeta(nameOf(key), value),
  };
}

/** The handlers of the shop. */
async function openEntries(
  { config, contract, handlers, settings, endpoints, terms, log, closing, disposers }: Base,
  { chain, ledger }: Offering,
): Promise<OpenHandlers> {
  const shop = await openHandlers(contract, handlers, settings, {
    network: config.network,
    chain,
    log,
    shopName: productName(contract),
    publicUrl: terms.publicUrl,
    sandboxServices: endpoints.marketUrl,
    notes: notesOf(ledger),
    openStore: definition => ledger.openStore(definition),
    ordersInProgress: async operation => (await ledger.openOrders(operation)).map(inProgress),
    closing,
  });
  disposers.unshift(() => shop.close());
  return shop;
}

function inProgress({ payment: id, request, wanted, done, deadline, attempts }: Order): OrderInProgress {
  return { id, body: readRequestText(request).body, wanted, done, deadline, attempt: attempts };
}

function healthOf(
  { contract, apis }: Base,
  { chain, facilitator, ledger }: Offering,
  shop: OpenHandlers,
  calls: RecentCalls,
): Health {
  const probes: Record<string, Probe> = {
    ...apis.probes,
    solana: signal => chainHealth(chain, signal),
    ...shop.probes,
    facilitator: async () => facilitator.report(),
    ledger: () => ledger.check(),
  };
  const health = new Health(String((contract.document.info as Json).version), probes, calls);
  health.start();
  return health;
}

async function chainHealth(chain: SolanaChain, signal: AbortSignal): Promise<Finding> {
  const { answering, servers } = await chain.health(signal);
  if (answering === 0) throw new Error('no RPC server answers');
  return answering < servers ? { detail: `${answering} of ${servers} RPC servers answer` } : {};
}

function mcpOf(
  { contract, config, terms: { publicUrl }, disposers }: Base,
  serving: Omit<McpParts, 'contract' | keyof OwnHosts | 'holdMs'>,
  siteUrl: string,
): McpEndpoint {
  const { trustedProxies } = config;
  const holdMs = Math.min(config.holdMs, MCP_HOLD_MS);
  const mcp = new McpEndpoint({ ...serving, contract, publicUrl, siteUrl, trustedProxies, holdMs });
  disposers.unshift(() => mcp.close());
  return mcp;
}
