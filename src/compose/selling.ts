import type { Json } from '../contract/json.js';
import { createApp } from '../http/app.js';
import { createBackends, type BuiltBackends, type Panel } from '../upstreams/backends.js';
import { BodyReader } from '../http/body.js';
import type { Serving, ServingFree } from '../contract/operation.js';
import { exposedHeaders } from '../http/exposed-headers.js';
import { Deliveries } from '../http/deliveries.js';
import { readInfo } from '../sandbox/info.js';
import { freeAnswers } from '../http/free-answers.js';
import { orderWork } from '../http/run-handler.js';
import { Health } from '../http/health.js';
import type { Ledger } from '../ledger/store.js';
import type { OwnHosts } from '../mcp/allowed-hosts.js';
import { McpEndpoint, type McpParts } from '../mcp/mcp-endpoint.js';
import { openPanel } from '../panel/open-panel.js';
import { AnswerKeys } from '../sale/answer-keys.js';
import { boundedHistory } from '../rails/solana/chain-heights.js';
import { OrderWorker } from '../sale/order-worker.js';
import { Reconciler } from '../sale/reconciler.js';
import { RecentCalls } from '../http/recent-calls.js';
import { replyStoreOf } from '../upstreams/people/reply-store.js';
import { answersUrl, PickUps } from '../http/serve-pick-up.js';
import { Routes } from '../contract/routes.js';
import { SourceLimits } from '../http/source-limits.js';
import type { HttpParts } from '../http/server.js';
import type { Shop } from '../shop/load-shop.js';
import { openPages } from '../site/open-pages.js';
import { Respondents } from '../upstreams/people/respondents.js';
import type { Base } from './base.js';
import { createCharge } from './create-charge.js';
import type { Offering } from './offering.js';

const FIRST_LOOK_MS = 5_000;
/** Hosts of MCP tools end a call after 60 s. */
const MCP_HOLD_MS = 45_000;

/** The parts that serve calls. `idle` resolves when no payment is being processed. */
export type Selling = Omit<HttpParts, 'offers'> & {
  idle(): Promise<void>;
  health: Health;
  orders: OrderWorker;
  /** The backends of the operations. */
  backends: string[];
  /** Opens the panel; undefined if nobody is asked. */
  panelLink: string | undefined;
};

/** Builds the request handling, and checks unresolved payments once. */
export async function openSelling(base: Base, offering: Offering): Promise<Selling> {
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
  routes.register(handlers);
  const handlerParts = { routes, handlers, log, calls };
  const work = orderWork(handlerParts);
  const { orderMs: attemptMs, orderAttempts: maxAttempts } = config;
  const orders = new OrderWorker({ ledger, work, log, observer, attemptMs, maxAttempts });
  const charge = createCharge(base, offering, orders);
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
  routes.register(live);
  const limits = new SourceLimits({ ...config, log, observer });
  const memory = { bodies: new BodyReader(), deliveries: new Deliveries(), limits };
  const answerKeys = await AnswerKeys.open(ledger, answersUrl(contract, terms.publicUrl));
  const pickUps = new PickUps(contract, answerKeys, charge);
  const sampleMint = readInfo(config.stateDir)?.mints.classic;
  const from = { ...offering, ...base, ...memory, sampleMint, siteUrl, exposed, answers, routes };
  const pages = await openPages(from);
  const { documents } = pages;
  const paying = { charge, offers, closing, answerKeys, pickUps };
  const serving = { ...handlerParts, ...memory, ...paying, observer, exposed };
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
    backends: [...new Set(Object.values(handlers).flatMap(({ backend }) => backend ?? []))],
    idle: () => charge.idle(),
    panelLink: page?.link,
  };
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
  serving: Omit<McpParts, 'contract' | keyof OwnHosts | 'holdMs'>,
  siteUrl: string,
): McpEndpoint {
  const { trustedProxies } = config;
  const holdMs = Math.min(config.holdMs, MCP_HOLD_MS);
  const mcp = new McpEndpoint({ ...serving, contract, publicUrl, siteUrl, trustedProxies, holdMs });
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
