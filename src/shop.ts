import { createHash, randomBytes } from 'node:crypto';
import type { Middleware } from 'koa';
import { BACKENDS_ASKED, createHandlers, createReadiness } from '../handlers/index.js';
import { createApp, type FreeAnswers } from './app.js';
import { BodyReader } from './body.js';
import { createBackends, type BuiltBackends, type Panel } from './backends.js';
import { checkHandlers } from './check-handlers.js';
import type { Config } from './config.js';
import type { Contract, Json } from './contract.js';
import { orderWork } from './handling.js';
import { Deliveries } from './deliveries.js';
import { Health } from './health.js';
import type { Ledger } from './ledger/store.js';
import { createPanel } from './panel/panel.js';
import { BlockhashLife } from './payments/blockhash-life.js';
import { Charge } from './payments/charge.js';
import type { Confirm } from './payments/settlement.js';
import type { Desk } from './payments/desk.js';
import { discoveryOf, indexOf, servedContract, type StaticDocument } from './payments/discovery.js';
import type { Facilitator } from './payments/facilitator.js';
import type { SharedFeePayers } from './payments/fee-payers.js';
import { boundedHistory, type Heights } from './payments/heights.js';
import type { Terms } from './payments/offer.js';
import { Orders } from './payments/orders.js';
import type { Log } from './payments/outcome.js';
import { confirmTransfer } from './payments/proof.js';
import { Reconciler } from './payments/reconciler.js';
import { trustIn } from './payments/trust.js';
import { RecentCalls } from './recent-calls.js';
import { replyBookOf } from './replybook.js';
import { Routes } from './routes.js';
import type { Listener } from './server.js';
import { Presence } from './upstreams/people/presence.js';
import { recentBlockhashes } from './upstreams/solana/recent-blockhashes.js';
import type { SolanaChain } from './upstreams/solana/rpc.js';

const FIRST_LOOK_MS = 5_000;

/** What the server has when it can say what a call costs: all but what sells. */
export type Front = {
  config: Config;
  contract: Contract;
  terms: Terms;
  facilitatorUrl: string;
  marketUrl: string | undefined;
  chain: SolanaChain;
  heights: Heights;
  feePayers: SharedFeePayers;
  ledger: Ledger;
  facilitator: Facilitator;
  desk: Desk;
  log: Log;
  /** Aborts when the server shuts down. */
  closing: AbortSignal;
  /** What is to be closed, the last opened first. */
  undo: (() => Promise<unknown>)[];
};

/** What sells. `idle` resolves when no payment is in flight. */
export type Shop = { app: Listener; idle(): Promise<void> };

/**
 * Builds all that sells behind a front that names prices already. What is started in the background is undone in reverse.
 * @throws ConfigFault, ContractFault, LedgerFault: each with sentences for the operator; or why the server shuts down
 */
export async function openShop(front: Front): Promise<Shop> {
  const { config, contract, terms, chain, ledger, facilitator, desk, log, closing, undo } = front;
  const presence = new Presence({ notes: ledger, presentMs: config.respondentMs });
  const panel = { book: replyBookOf(ledger), presence };
  const backends = await createBackends(config, chain, panel, front.marketUrl);
  undo.unshift(() => backends.close());
  const routes = await Routes.create(contract);
  const calls = new RecentCalls();
  const handlers = calls.watch(createHandlers(backends), BACKENDS_ASKED);
  const handling = { routes, handlers, log };
  const orders = new Orders({ ledger, work: orderWork(handling, contract), log, attemptMs: config.orderMs });
  const readiness = createReadiness(backends);
  checkHandlers(contract, handling.handlers, readiness);
  const trust = await trustIn(ledger, front.facilitatorUrl, log);
  const { maxUnsettledPerPayer } = config;
  const confirm = confirmIn(ledger, chain);
  const life = new BlockhashLife({ desk, recent: signal => recentBlockhashes(chain, signal), closing });
  const charge = new Charge({
    ledger,
    facilitator,
    desk,
    log,
    orders,
    trust,
    confirm,
    blocksLeft: blockhash => life.blocksLeft(blockhash),
    maxUnsettledPerPayer,
  });
  const reconciler = new Reconciler({
    ledger,
    chain: boundedHistory(chain, front.heights),
    trust,
    log,
  });
  closing.throwIfAborted();
  undo.unshift(() => reconciler.stop());
  await reconciler.start(FIRST_LOOK_MS);
  closing.throwIfAborted();
  orders.start();
  undo.unshift(() => orders.stop());
  const health = healthOf(backends, front, calls);
  undo.unshift(async () => health.stop());
  const app = createApp({
    ...handling,
    charge,
    desk,
    feePayers: front.feePayers,
    bodies: new BodyReader(),
    deliveries: new Deliveries(),
    readiness,
    free: freeAnswers(contract, terms, config.siteUrl ?? terms.publicUrl, health, backends),
    holdMs: config.holdMs,
    panel: panelOf(front, panel),
    closing,
  });
  const callback = app.callback();
  void routes.warm();
  return { app: (request, response) => void callback(request, response), idle: () => charge.idle() };
}

function confirmIn(ledger: Ledger, chain: SolanaChain): Confirm {
  return async (id, signature) => {
    const row = await ledger.find(id);
    return row !== undefined && confirmTransfer(chain, row, signature);
  };
}

function healthOf(
  backends: BuiltBackends,
  { contract, facilitator, ledger, terms }: Front,
  calls: RecentCalls,
): Health {
  const probes = {
    ...backends.probes,
    facilitator: async () => void (await facilitator.supported(terms.network)),
    ledger: () => ledger.check(),
  };
  const health = new Health(String((contract.document.info as Json).version), probes, calls);
  health.start();
  return health;
}

function panelOf({ config, terms, ledger, closing, log }: Front, panel: Panel): Middleware {
  const token = config.panelToken ?? randomBytes(18).toString('base64url');
  const url = `${terms.publicUrl}/panel/`;
  if (config.panelToken === undefined) log.warn({ url, token }, `people answer at ${url}#${token}`);
  return createPanel({
    ...panel,
    notes: ledger,
    token,
    secure: terms.publicUrl.startsWith('https:'),
    signal: closing,
  }).routes() as Middleware;
}

function freeAnswers(
  contract: Contract,
  terms: Terms,
  siteUrl: string,
  health: Health,
  backends: BuiltBackends,
): FreeAnswers {
  const tagged = (...tags: string[]) =>
    documentOf(
      discoveryOf(
        contract.paid.filter(operation => tags.includes(operation.tag)),
        terms,
      ),
    );
  return {
    documents: {
      getIndex: documentOf(indexOf(contract, siteUrl)),
      getDiscovery: documentOf(discoveryOf(contract.paid, terms)),
      getSellerDiscovery: tagged('Text', 'Solana'),
      getBrandDiscovery: tagged('Humans'),
      getTtsDiscovery: tagged('Audio'),
      getOpenapi: documentOf(servedContract(contract, terms, siteUrl)),
    },
    live: {
      getHealth: async () => health.report(),
      getBrandHealth: async () => health.report(['people']),
      getTtsHealth: async () => health.report(['speech']),
      listVoices: () => backends.speaker.voices(),
    },
  };
}

function documentOf(value: Json): StaticDocument {
  const body = Buffer.from(JSON.stringify(value));
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` };
}
