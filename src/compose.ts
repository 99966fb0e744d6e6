import type { Log } from './net/log.js';
import type { Json } from './contract/json.js';
import { mkdir } from 'node:fs/promises';
import { openAdmin, placeAdmin, type AdminListener, type AdminPlace } from './admin/admin-listener.js';
import { machineRoutes } from './admin/machine-routes.js';
import { operatorPageOf } from './admin/operator-parts.js';
import { createApp } from './http/app.js';
import { createBackends, type BuiltBackends, type Panel } from './upstreams/backends.js';
import { BodyReader } from './http/body.js';
import type { Serving, ServingFree } from './contract/operation.js';
import type { Config } from './config.js';
import { commandLine } from './config/command-line.js';
import { ConfigFault } from './config/setting-reader.js';
import { exposedHeaders } from './http/exposed-headers.js';
import { Deliveries } from './http/deliveries.js';
import { resolveEndpoints, type Endpoints } from './sandbox/endpoints.js';
import { readInfo } from './sandbox/info.js';
import { freeAnswers } from './http/free-answers.js';
import { orderWork } from './http/run-handler.js';
import { Health } from './http/health.js';
import { durabilityOf } from './ledger/durability.js';
import { openLedger, type Ledger } from './ledger/store.js';
import { drain, findFreePort, listen } from './http/listen.js';
import { hostInUrl } from './net/host-names.js';
import { McpEndpoint, type McpParts } from './mcp/mcp-endpoint.js';
import { openPanel } from './panel/open-panel.js';
import { AnswerKeys } from './payments/answer-keys.js';
import { BlockhashLife } from './payments/blockhash-life.js';
import { Charge } from './payments/charge.js';
import { Offers } from './payments/offers.js';
import { createFacilitators } from './payments/create-facilitators.js';
import type { FeePayerGuard } from './payments/fee-payer-guard.js';
import type { Facilitators } from './payments/facilitators.js';
import { SharedFeePayers } from './payments/shared-fee-payers.js';
import { boundedHistory, ChainHeights } from './payments/chain-heights.js';
import type { Terms } from './payments/requirements.js';
import { bannerOf } from './observe/banner.js';
import { ledgerWatch } from './observe/ledger-watch.js';
import { openObservation, type Observation } from './observe/observation.js';
import { OrderWorker } from './payments/order-worker.js';
import { confirmTransfer, findDenied } from './payments/find-transfer.js';
import { Reconciler } from './payments/reconciler.js';
import type { Confirm, FindDenied } from './payments/settlement.js';
import { loadFacilitatorTrust, type StoredFacilitatorTrust } from './payments/facilitator-trust.js';
import { RecentCalls } from './http/recent-calls.js';
import { createHttpOperations, type HttpOperations } from './upstreams/http-operations/http-operations.js';
import { replyStoreOf } from './upstreams/people/reply-store.js';
import { answersUrl, PickUps } from './http/serve-pick-up.js';
import { Routes } from './http/router.js';
import { SourceLimits } from './http/source-limits.js';
import { createHttpServer, type HttpParts } from './http/server.js';
import { heed, runChecks } from './payments/preflight.js';
import { serviceOf } from './payments/service.js';
import { loadShop, type Shop } from './shop/load-shop.js';
import { openPages } from './site/open-pages.js';
import { startupChecks } from './payments/startup-checks.js';
import { Respondents } from './upstreams/people/respondents.js';
import { recentBlockhashes } from './solana/recent-blockhashes.js';
import { createChain, type SolanaChain } from './solana/rpc.js';
import { firstFeePayer, rememberedFeePayers, OfferRefresher } from './payments/refresh-offers.js';

const CHAIN_TRY_MS = 3_000;
const FIRST_LOOK_MS = 5_000;
/** Hosts of MCP tools end a call after 60 s. */
const MCP_HOLD_MS = 45_000;

/** A running server. `stop` lets open requests finish for up to 25 s. */
export type Running = {
  url: string;
  /** The admin listener. `link` opens the operator page and holds the operator's token. */
  admin: { url: string; link: string };
  stop(): Promise<void>;
};

type Disposer = () => Promise<unknown>;

/** Shared by all other parts. */
type Base = Shop & {
  config: Config;
  /** Sold by `x-upstream`. */
  apis: HttpOperations;
  endpoints: Endpoints;
  terms: Terms;
  log: Log;
  observation: Observation;
  /** Aborts when the server shuts down. */
  closing: AbortSignal;
  /** Called in reverse order when the server closes. */
  disposers: Disposer[];
};

/** The parts that a payment challenge needs. */
type Offering = {
  chain: SolanaChain;
  ledger: Ledger;
  facilitator: Facilitators;
  heights: ChainHeights;
  offers: Offers;
  feePayers: SharedFeePayers;
  trust: StoredFacilitatorTrust;
  /** Of the embedded facilitator's fee payer. */
  guard: FeePayerGuard | undefined;
};

/** The parts that serve calls. `idle` resolves when no payment is being processed. */
type Selling = Omit<HttpParts, 'offers'> & {
  idle(): Promise<void>;
  health: Health;
  orders: OrderWorker;
  /** Opens the panel; undefined if nobody is asked. */
  panelLink: string | undefined;
};

/**
 * Builds all parts and opens the port when the server can accept payments. On `stop`, or if a step fails, closes them in reverse
 * order.
 * @throws ConfigFault, ContractFault, LedgerFault, FacilitatorFault: each message tells the operator what to do
 */
export async function compose(config: Config, onSandboxExit: () => void = () => {}): Promise<Running> {
  const shop = await loadShop(config.shopDir);
  const terminal = process.stdout.isTTY === true;
  const observation = await openObservation(shop.contract.paid, { level: config.logLevel, terminal });
  const { log, observer } = observation;
  const { variable, allowPrivateUpstreams: allowPrivate } = config;
  const apis = createHttpOperations(shop.contract, { variable, allowPrivate });
  for (const warning of apis.warnings) log.warn({}, warning);
  await makeStateDir(config.stateDir);
  const port = await findFreePort(config.host, config.port);
  const adminPlace = await placeAdmin({
    ...config,
    anyPort: config.port === 0,
    isSandbox: isSandbox(config),
    log,
  });
  const publicUrl = config.publicUrl ?? `http://${hostInUrl(config.host)}:${port}`;
  const disposers: Disposer[] = [() => apis.close()];
  const closing = new AbortController();
  try {
    const endpoints = await resolveEndpoints({ config, publicUrl, log, onSandboxExit });
    disposers.unshift(() => endpoints.stop());
    const terms = { ...termsOf(config, endpoints, publicUrl), service: serviceOf(shop.contract, publicUrl) };
    const base = {
      config,
      ...shop,
      apis,
      endpoints,
      terms,
      log,
      observation,
      closing: closing.signal,
      disposers,
    };
    const offering = await openOffering(base);
    const selling = await openSelling(base, offering);
    const admin = await adminOf(base, offering, selling, adminPlace);
    const server = createHttpServer({ ...selling, offers: offering.offers, observer });
    await listen(server, config.host, port);
    log.info({ network: config.network.name, payTo: terms.payTo }, `ready to be paid at ${publicUrl}`);
    const links = { panel: selling.panelLink, operator: admin.link, buy: commandLine('buy') };
    if (terminal)
      process.stdout.write(bannerOf(publicUrl, links, isSandbox(config) ? shop.contract.paid : []));
    const close = async (): Promise<void> => {
      log.info({}, 'stopping: finishing open requests; accepting no new payments');
      closing.abort(new Error('the server is shutting down'));
      await drain(server, () => selling.idle());
      await closeAll(disposers);
      observation.flush();
      log.info({}, 'stopped');
    };
    let closed: Promise<void> | undefined;
    return { url: publicUrl, admin, stop: () => (closed ??= close()) };
  } catch (error) {
    await closeAll(disposers);
    throw error;
  }
}

/** Closes after open requests have ended and before everything else, so that it can be read while the server drains. */
async function adminOf(
  base: Base,
  offering: Offering,
  selling: Selling,
  place: AdminPlace,
): Promise<AdminListener> {
  const { config, log, disposers } = base;
  const routes = machineRoutes({ ...base, ...offering, ...selling });
  const page = operatorPageOf({ ...base, ...offering, ...selling }, place);
  const admin = await openAdmin(place, config.stateDir, { routes, page, log });
  disposers.unshift(() => admin.close());
  return admin;
}

async function closeAll(disposers: Disposer[]): Promise<void> {
  for (const dispose of disposers.splice(0)) await dispose().catch(() => {});
}

function isSandbox({ network }: Config): boolean {
  return network.name === 'sandbox';
}

async function makeStateDir(stateDir: string): Promise<void> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new ConfigFault(`STATE_DIR: ${stateDir} cannot be used as a folder: ${(error as Error).message}`);
  });
}

function termsOf(config: Config, { payTo }: Endpoints, publicUrl: string): Terms {
  const { caip2, v1, usdcMint } = config.network;
  return { network: caip2, v1Network: v1, asset: usdcMint, payTo, publicUrl };
}

/** Checks everything that sales depend on, and builds the offers that a challenge contains. */
async function openOffering(base: Base): Promise<Offering> {
  const { config, contract, endpoints, terms, log, observation, disposers } = base;
  const { observer } = observation;
  const { network, payTo } = terms;
  const chain = createChain({ urls: endpoints.rpcUrls, network, timeoutMs: CHAIN_TRY_MS, log });
  disposers.unshift(() => chain.close());
  const { databaseUrl: url, answerBudgetBytes } = config;
  const ledger = await openLedger({ url, payTo, network, answerBudgetBytes, watch: ledgerWatch(observer) });
  disposers.unshift(() => ledger.close());
  const { feePayer: ownFeePayer } = endpoints;
  let guard: FeePayerGuard | undefined;
  const onGuard = (made: FeePayerGuard): void => void (guard = made);
  const { limits } = config.feePayer;
  const own = { chain, feePayer: ownFeePayer, limits, log, observer, onGuard };
  const facilitator = await createFacilitators(endpoints.facilitators, own);
  disposers.unshift(() => facilitator.close());
  const remembered = facilitator.learn(await rememberedFeePayers(ledger));
  const checks = startupChecks({
    contract,
    terms,
    network: config.network.name,
    chain,
    facilitators: facilitator,
    hadFeePayer: remembered.length > 0,
    durability: () => durabilityOf(url, answerBudgetBytes),
  });
  heed(await runChecks(checks), { isSandbox: isSandbox(config), log });
  const offers = new Offers(contract.paid, terms, firstFeePayer(facilitator, remembered), remembered);
  const heights = new ChainHeights(ledger);
  const feePayers = new SharedFeePayers({ ledger, offers, facilitators: facilitator, log });
  const watch = new OfferRefresher({ offers, chain, heights, feePayers, facilitator, ledger, log });
  disposers.unshift(async () => {
    watch.stop();
    offers.close();
  });
  await watch.start();
  const trust = await loadFacilitatorTrust(ledger, facilitator, log);
  return { chain, ledger, facilitator, heights, offers, feePayers, trust, guard };
}

/** Builds the request handling, and checks unresolved payments once. */
async function openSelling(base: Base, offering: Offering): Promise<Selling> {
  const { config, contract, apis, endpoints, terms, log, closing, disposers } = base;
  const { observer } = base.observation;
  const { chain, ledger, offers, heights, trust } = offering;
  const presence = new Respondents({ notes: ledger, presentMs: config.respondentMs });
  const panel = { replyStore: replyStoreOf(ledger), presence };
  const backends = await createBackends(config, chain, panel, endpoints.marketUrl);
  disposers.unshift(() => backends.close());
  const routes = await Routes.create(contract);
  const calls = new RecentCalls(undefined, observer);
  const { serving: served, free } = servedBy(base, backends);
  const handlers = calls.observe({ ...served, ...apis.served });
  const handlerParts = { routes, handlers, log, calls };
  const work = orderWork(handlerParts);
  const orders = new OrderWorker({ ledger, work, log, observer, attemptMs: config.orderMs });
  const charge = chargeOf(base, offering, orders);
  const reconciler = new Reconciler({ ledger, chain: boundedHistory(chain, heights), trust, log, observer });
  disposers.unshift(() => reconciler.stop());
  await reconciler.start(FIRST_LOOK_MS);
  orders.start();
  disposers.unshift(() => orders.stop());
  const health = healthOf(base, offering, backends, calls);
  disposers.unshift(async () => health.stop());
  const siteUrl = config.siteUrl ?? terms.publicUrl;
  const exposed = exposedHeaders(contract);
  const { live, ...answers } = freeAnswers({ ...base, siteUrl, health, handlers, free, exposed });
  const limits = new SourceLimits({ ...config, log });
  const memory = { bodies: new BodyReader(), deliveries: new Deliveries(), limits };
  const answerKeys = await AnswerKeys.open(ledger, answersUrl(contract, terms.publicUrl));
  const pickUps = new PickUps(contract, answerKeys, charge);
  const sampleMint = readInfo(config.stateDir)?.mints.classic;
  const from = { ...offering, ...base, ...memory, sampleMint, siteUrl, exposed, answers, routes };
  const pages = await openPages(from);
  const { documents } = pages;
  const paying = { charge, offers, closing, answerKeys, pickUps };
  const serving = { ...handlerParts, ...memory, ...paying, observer, live, exposed };
  // Without a handler that asks people, there is no page on which they answer.
  const page = backends.uses('people') ? await pageOf(base, ledger, panel) : undefined;
  const callback = createApp({ ...serving, documents, holdMs: config.holdMs, ...page }).callback();
  const mcp = mcpOf(base, serving, siteUrl);
  const beside = pages.wallet ? [mcp, pages.wallet] : [mcp];
  void routes.warm();
  return {
    app: (request, response) => {
      const server = beside.find(each => each.serves(request));
      void (server ? server.serve(request, response) : callback(request, response));
    },
    ...{ ...memory, routes, documents, exposed },
    ...(pages.landing ? { landing: pages.landing } : {}),
    health,
    orders,
    idle: () => charge.idle(),
    panelLink: page?.link,
  };
}

function chargeOf(base: Base, offering: Offering, orders: OrderWorker): Charge {
  const { config, log, observation, closing } = base;
  const { observer } = observation;
  const { chain, ledger, offers } = offering;
  const life = new BlockhashLife({ offers, recent: signal => recentBlockhashes(chain, signal), closing });
  return new Charge({
    ...offering,
    orders,
    log,
    observer,
    confirm: confirmIn(ledger, chain),
    findDenied: findDeniedIn(ledger, chain, offers),
    blocksLeft: blockhash => life.blocksLeft(blockhash),
    maxUnsettledPerPayer: config.maxUnsettledPerPayer,
  });
}

/** The handlers of the shop, built from its backends. */
function servedBy(
  { contract, handlers }: Shop,
  backends: BuiltBackends,
): { serving: Serving; free: ServingFree } {
  const costs = new Set(contract.paid.map(({ id }) => id));
  const all = Object.entries(handlers).map(([id, create]) => [id, create(backends)] as const);
  return {
    serving: Object.fromEntries(all.filter(([id]) => costs.has(id))) as Serving,
    free: Object.fromEntries(all.filter(([id]) => !costs.has(id))) as ServingFree,
  };
}

function confirmIn(ledger: Ledger, chain: SolanaChain): Confirm {
  return async (id, signature) => {
    const row = await ledger.find(id);
    return row !== undefined && confirmTransfer(chain, row, signature);
  };
}

function findDeniedIn(ledger: Ledger, chain: SolanaChain, offers: Offers): FindDenied {
  return async id => {
    const row = await ledger.find(id);
    const view = offers.view();
    return row && view ? findDenied(chain, row, view.slot) : { kind: 'unclear' };
  };
}

function healthOf(
  { contract, apis }: Base,
  { facilitator, ledger }: Offering,
  backends: BuiltBackends,
  calls: RecentCalls,
): Health {
  const probes = {
    ...apis.probes,
    ...backends.probes(),
    facilitator: async () => facilitator.report(),
    ledger: () => ledger.check(),
  };
  const health = new Health(String((contract.document.info as Json).version), probes, calls);
  health.start();
  return health;
}

function mcpOf(
  { contract, config, terms: { publicUrl }, disposers }: Base,
  serving: Omit<McpParts, 'contract' | 'publicUrl' | 'siteUrl' | 'holdMs'>,
  siteUrl: string,
): McpEndpoint {
  const holdMs = Math.min(config.holdMs, MCP_HOLD_MS);
  const mcp = new McpEndpoint({ ...serving, contract, publicUrl, siteUrl, holdMs });
  disposers.unshift(() => mcp.close());
  return mcp;
}

function pageOf(
  { config, contract, terms, log, closing: signal }: Base,
  ledger: Ledger,
  panel: Panel,
): ReturnType<typeof openPanel> {
  const { panelToken, stateDir } = config;
  return openPanel({
    ...panel,
    contract,
    notes: ledger,
    panelToken,
    publicUrl: terms.publicUrl,
    stateDir,
    log,
    signal,
  });
}
