import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import { canaryRoute } from './admin/canary-route.js';
import { openAdmin, placeAdmin, type AdminListener, type AdminPlace } from './admin/admin-listener.js';
import { machineRoutes } from './admin/machine-routes.js';
import { operatorPageOf } from './admin/operator-parts.js';
import type { Config } from './config.js';
import { buyCommand } from './config/command-line.js';
import type { Contract } from './contract/contract.js';
import { ConfigFault } from './config/setting-reader.js';
import { resolveEndpoints, type Endpoints } from './endpoints/endpoints.js';
import { drain, listen, reservePort } from './http/listen.js';
import { hostInUrl } from './net/host-names.js';
import type { Log } from './net/log.js';
import type { Terms } from './methods/x402/requirements.js';
import { bannerOf, linksOf } from './observe/banner.js';
import { openObservation } from './observe/observation.js';
import { createHttpOperations } from './upstreams/http-operations/http-operations.js';
import { createHttpServer } from './http/server.js';
import { MPP_HEADER_BYTES, shopMethods } from './methods/shop-methods.js';
import { serviceOf } from './methods/x402/service.js';
import { loadShop, type Shop } from './shop/load-shop.js';
import { readSettings, tokensSet } from './shop/settings.js';
import { isSandbox, type Base, type Disposer } from './compose/base.js';
import { OfferedPrices } from './offers/tell-prices.js';
import { openOffering, type Offering } from './compose/offering.js';
import { openRefunds } from './compose/refunding.js';
import { openSelling, type Selling } from './compose/selling.js';
import { Stopping } from './compose/stopping.js';
import { openTelling } from './compose/telling.js';
import { Replica, type ReplicaState } from './ledger/replica.js';
import { replicaSentence } from './operator/replica-sentence.js';
import { CanaryRuns } from './operator/canary-runs.js';
import { webhookRoutes } from './admin/webhook-routes.js';
import type { Webhooks } from './webhooks/open-webhooks.js';

/** A running server. `stop` lets open requests finish for up to 25 s. */
export type Running = {
  url: string;
  /** The admin listener. `link` opens the operator page and contains the operator's token. */
  admin: { url: string; link: string };
  /** The lines that are shown in the terminal after startup. */
  banner: string;
  stop(): Promise<void>;
};

/**
 * Builds all parts and opens the port when the server can accept payments. On `stop`, or if a step fails, closes them in reverse
 * order.
 * @throws ConfigFault, ContractFault, LedgerFault, FacilitatorFault: each message tells the operator what to do
 */
export async function compose(config: Config, onSandboxExit: () => void = () => {}): Promise<Running> {
  const shop = await loadShop(config.shopDir);
  const settings = settingsOf(shop, config);
  const terminal = process.stdout.isTTY === true;
  const observation = await openObservation(shop.contract.paid, {
    level: config.logLevel,
    terminal,
    own: config.ownWallets,
  });
  const { log, observer } = observation;
  const { variable, allowPrivateUpstreams: allowPrivate } = config;
  const apis = createHttpOperations(shop.contract, { variable, allowPrivate });
  for (const warning of apis.warnings) log.warn({}, warning);
  await makeStateDir(config.stateDir);
  const { port, release } = await reservePort(config.host, config.port);
  const adminPlace = await adminPlaceOf(shop, config, log);
  const publicUrl = config.publicUrl ?? `http://${hostInUrl(config.host)}:${port}`;
  const disposers: Disposer[] = [() => adminPlace.close(), () => apis.close(), release];
  const stopping = new Stopping();
  try {
    const endpoints = await resolveEndpoints({ config, publicUrl, log, onSandboxExit });
    disposers.unshift(() => endpoints.stop());
    const terms = termsOf(config, endpoints, shop.contract, publicUrl);
    const methods = shopMethods(terms, { mpp: config.mpp, network: config.network.name });
    const base = {
      config,
      settings,
      ...shop,
      ...{ apis, endpoints, terms, methods, log },
      observation,
      ...stopping.signals,
      disposers,
    };
    const offering = await openOffering(base);
    const told = { ...offering, refunds: openRefunds(base, offering) };
    const webhooks = await openTelling(base, told, adminPlace.url);
    const selling = await openSelling(base, offering);
    const admin = await adminOf(
      base,
      { ...offering, ...selling, webhooks, readyAsked: stopping.readyAsked },
      adminPlace,
    );
    const server = createHttpServer({ ...selling, ...stopping.signals, offers: offering.offers, observer });
    await tellPrices(base, offering);
    await release();
    await listen(server, config.host, port);
    log.info({ network: config.network.name, payTo: terms.payTo }, `ready to be paid at ${publicUrl}`);
    const links = { pages: selling.pageLinks, operator: admin.link, buy: buyCommand(config.stateDir) };
    if (!terminal) log.info(linksOf(publicUrl, links), 'pages for people');
    const banner = bannerOf(publicUrl, links, isSandbox(config) ? shop.contract.paid : []);
    const stop = stopOf(base, { server, selling, stopping });
    return { url: publicUrl, admin, banner, stop };
  } catch (error) {
    await closeAll(disposers);
    throw error;
  }
}

/** Closes everything that `compose` opened, once. */
function stopOf(
  { log, observation, disposers }: Base,
  { server, selling, stopping }: { server: Server; selling: Selling; stopping: Stopping },
): () => Promise<void> {
  const stop = async (): Promise<void> => {
    await stopping.leave();
    log.info({}, 'stopping: finishing open requests; accepting no new payments');
    stopping.close();
    await drain(server, () => selling.idle());
    await closeAll(disposers);
    observation.flush();
    log.info({}, 'stopped');
  };
  let stopped: Promise<void> | undefined;
  return () => (stopped ??= stop());
}

function adminPlaceOf({ handlers }: Shop, config: Config, log: Log): Promise<AdminPlace> {
  const pageTokens = tokensSet(handlers, config.reader());
  return placeAdmin({
    ...config,
    anyPort: config.port === 0,
    pageTokens,
    isSandbox: isSandbox(config),
    log,
  });
}

/** Records the prices before any challenge uses them, and refreshes the record while the server runs. */
async function tellPrices({ contract: { paid }, disposers, log }: Base, { ledger }: Offering): Promise<void> {
  const prices = new OfferedPrices({ paid, ledger, log });
  disposers.unshift(() => prices.stop());
  await prices.start();
}

/**
 * Starts serving the operator. The listener closes after open requests have ended and before everything else, so that it works while the
 * server drains.
 */
async function adminOf(
  base: Base,
  parts: Offering & Selling & { webhooks: Webhooks } & Pick<Stopping, 'readyAsked'>,
  place: AdminPlace,
): Promise<AdminListener> {
  const { config, log, disposers } = base;
  const canary = new CanaryRuns(parts.ledger);
  const machines = machineRoutes({ ...base, ...parts });
  const routes = [...machines, ...webhookRoutes(parts.webhooks), canaryRoute(canary)];
  const replica = replicaOf(base, parts.ledger);
  const page = operatorPageOf({ ...base, ...parts, canary, replica }, place);
  const admin = await openAdmin(place, config.stateDir, { routes, page, log });
  disposers.unshift(() => admin.close());
  return admin;
}

/** The replica of the database, from which only reports are read; undefined if there is none. */
function replicaOf(
  { config: { databaseReadUrl: url }, log, disposers }: Base,
  primary: Offering['ledger'],
): Replica | undefined {
  if (url === undefined) return undefined;
  const onChange = (state: ReplicaState): void =>
    'unusable' in state ? log.warn({}, replicaSentence(state)) : log.info({}, replicaSentence(state));
  const replica = new Replica({ url, primary, onChange });
  disposers.unshift(() => replica.close());
  void replica.state();
  return replica;
}

/** @throws ConfigFault with everything that is wrong */
function settingsOf({ handlers }: Shop, config: Config): Record<string, object> {
  const reader = config.reader();
  const settings = readSettings(handlers, reader, config.network.name);
  reader.finish();
  return settings;
}

async function closeAll(disposers: Disposer[]): Promise<void> {
  for (const dispose of disposers.splice(0)) await dispose().catch(() => {});
}

async function makeStateDir(stateDir: string): Promise<void> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new ConfigFault(`STATE_DIR: ${stateDir} cannot be used as a folder: ${(error as Error).message}`);
  });
}

function termsOf(config: Config, { payTo }: Endpoints, contract: Contract, publicUrl: string): Terms {
  const { caip2, v1, usdcMint } = config.network;
  const service = serviceOf(contract, publicUrl);
  const otherMethodsBytes = config.mpp ? MPP_HEADER_BYTES : 0;
  return { network: caip2, v1Network: v1, asset: usdcMint, payTo, publicUrl, service, otherMethodsBytes };
}
