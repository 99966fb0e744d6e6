import './quiet.js';
import { createServer as createNetServer, type AddressInfo, type Server as NetServer } from 'node:net';
import { realpathSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import { fileURLToPath } from 'node:url';
import { createHash, randomBytes } from 'node:crypto';
import type { Middleware } from 'koa';
import pino from 'pino';
import { createHandlers, createReadiness } from '../handlers/index.js';
import { createApp, type FreeAnswers } from './app.js';
import { createBackends, type BuiltBackends } from './backends.js';
import { ConfigFault, readConfig, type Config } from './config.js';
import { ContractFault, loadContract, type Contract, type Json } from './contract.js';
import { orderWork, type HandlingParts } from './handling.js';
import { Health } from './health.js';
import { LedgerFault } from './ledger/fault.js';
import { openLedger } from './ledger/store.js';
import { createPanel } from './panel/panel.js';
import { MAX_HEADER_BYTES, renderChallenge } from './payments/challenge.js';
import { Charge } from './payments/charge.js';
import type { Log } from './payments/outcome.js';
import { Desk } from './payments/desk.js';
import { discoveryOf, indexOf, servedContract, type StaticDocument } from './payments/discovery.js';
import { FacilitatorFault, httpFacilitator, type Facilitator } from './payments/facilitator.js';
import type { Terms } from './payments/offer.js';
import { Orders } from './payments/orders.js';
import { confirmTransfer } from './payments/proof.js';
import { Reconciler } from './payments/reconciler.js';
import { replyBookOf } from './replybook.js';
import { receiverAccount, TOKEN_PROGRAM } from './payments/transaction.js';
import { trustIn } from './payments/trust.js';
import { Routes } from './routes.js';
import { readInfo, type SandboxInfo } from './sandbox/info.js';
import { createHttpServer } from './server.js';
import { createChain, type Account, type SolanaChain } from './upstreams/solana/rpc.js';
import { firstFeePayer, rememberedFeePayers, Watch } from './watch.js';

const ROOT = new URL('../../', import.meta.url);
const SHUTDOWN_DEADLINE_MS = 25_000;
const CHAIN_TRY_MS = 3_000;
const START_CHECK_MS = 5_000;

/** A server that is ready to be paid. `stop` finishes what is in flight within 25 s. */
export type Running = { url: string; stop(): Promise<void> };

/** Where the chain and its facilitator are, and who is paid. */
type Connection = {
  rpcUrls: string[];
  facilitatorUrl: string;
  payTo: string;
  marketUrl: string | undefined;
  /** Whom the sandbox holds ready: its buyer, sample mints and addresses. */
  sandbox?: SandboxInfo;
  stop(): Promise<void>;
};

/**
 * Builds everything once and listens.
 * @throws ConfigFault, ContractFault, LedgerFault, FacilitatorFault: each with sentences for the operator
 */
export async function start(config: Config, onSandboxExit: () => void = () => {}): Promise<Running> {
  const log = pino({
    level: config.logLevel,
    serializers: { error: pino.stdSerializers.err, cause: pino.stdSerializers.err },
  });
  const contract = loadContract(new URL('openapi.yaml', ROOT));
  await mkdir(config.stateDir, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new ConfigFault(
      `STATE_DIR: ${config.stateDir} can't be used as a folder: ${(error as Error).message}`,
    );
  });
  const port = await freePort(config.host, config.port);
  const publicUrl = config.publicUrl ?? `http://${hostInUrl(config.host)}:${port}`;
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const connection = await connect(config, publicUrl, onSandboxExit);
    undo.unshift(() => connection.stop());
    if (connection.sandbox) announce(connection.sandbox, config.stateDir, log);
    const terms = termsOf(config, connection, publicUrl);
    const chain = createChain({ urls: connection.rpcUrls, timeoutMs: CHAIN_TRY_MS });
    undo.unshift(() => chain.close());
    await checkChain(chain, terms, log);
    const parts = { config, contract, terms, connection, chain, log, undo };
    const shop = await openShop(parts);
    const server = createFront(parts, shop);
    await listen(server, config.host, port);
    void shop.handling.routes.warm();
    log.info({ network: config.network.name, payTo: terms.payTo }, `ready to be paid at ${publicUrl}`);
    return { url: publicUrl, stop: () => runAll(undo) };
  } catch (error) {
    await runAll(undo);
    throw error;
  }
}

type Parts = {
  config: Config;
  contract: Contract;
  terms: Terms;
  connection: Connection;
  chain: SolanaChain;
  log: Log;
  undo: (() => Promise<unknown>)[];
};

type Shop = {
  desk: Desk;
  charge: Charge;
  backends: BuiltBackends;
  handling: HandlingParts;
  health: Health;
};

/** Builds all that sells, on an open connection. What is started in the background is undone in reverse. */
async function openShop(parts: Parts): Promise<Shop> {
  const { config, contract, terms, connection, chain, log, undo } = parts;
  const ledger = await openLedger({
    url: config.databaseUrl,
    payTo: terms.payTo,
    network: terms.network,
    answerBudgetBytes: config.answerBudgetBytes,
  });
  undo.unshift(() => ledger.close());
  for (const warning of ledger.warnings) log.warn({}, warning);
  const facilitator = httpFacilitator(connection.facilitatorUrl);
  undo.unshift(() => facilitator.close());
  const remembered = await rememberedFeePayers(ledger);
  const feePayer = await firstFeePayer(facilitator, terms.network, remembered, log);
  const desk = new Desk(contract.paid, terms, feePayer, remembered);
  checkHeaderSizes(contract, desk);
  const backends = await createBackends(config, chain, replyBookOf(ledger), connection.marketUrl);
  undo.unshift(() => backends.close());
  const routes = await Routes.create(contract);
  const handling = { routes, handlers: createHandlers(backends), log };
  const orders = new Orders({ ledger, work: orderWork(handling, contract), log, attemptMs: config.orderMs });
  const trust = await trustIn(ledger, connection.facilitatorUrl, log);
  const charge = new Charge({
    ledger,
    facilitator,
    desk,
    log,
    orders,
    trust,
    confirm: async (id, signature) => {
      const row = await ledger.find(id);
      return row !== undefined && confirmTransfer(chain, row, signature);
    },
    maxUnsettledPerPayer: config.maxUnsettledPerPayer,
  });
  const reconciler = new Reconciler({
    ledger,
    chain,
    facilitator,
    terms,
    operations: contract.paid,
    trust,
    log,
  });
  const watch = new Watch({ desk, chain, facilitator, ledger, log });
  await Promise.all([watch.start(), reconciler.start(START_CHECK_MS)]);
  undo.unshift(async () => {
    watch.stop();
    desk.close();
    await reconciler.stop();
  });
  orders.start();
  undo.unshift(() => orders.stop());
  const health = healthOf(contract, backends, facilitator, terms);
  undo.unshift(async () => health.stop());
  return { desk, charge, backends, handling, health };
}

/** The HTTP server in front of the shop. */
function createFront(
  { config, contract, terms, log, undo }: Parts,
  { desk, charge, backends, handling, health }: Shop,
): Server {
  const closing = new AbortController();
  const app = createApp({
    ...handling,
    charge,
    desk,
    readiness: createReadiness(backends),
    free: freeAnswers(contract, terms, config.siteUrl ?? terms.publicUrl, health, backends),
    holdMs: config.holdMs,
    panel: panelOf(config, terms, backends, closing.signal, log),
    closing: closing.signal,
  });
  const callback = app.callback();
  const server = createHttpServer(
    (request, response) => void callback(request, response),
    desk,
    contract.paid,
  );
  undo.unshift(async () => {
    closing.abort(new Error('the server is shutting down'));
    await drain(server, charge);
  });
  return server;
}

function healthOf(
  contract: Contract,
  backends: BuiltBackends,
  facilitator: Facilitator,
  terms: Terms,
): Health {
  const health = new Health(String((contract.document.info as Json).version), {
    ...backends.probes,
    facilitator: async () => void (await facilitator.supported(terms.network)),
  });
  health.start();
  return health;
}

function panelOf(
  config: Config,
  terms: Terms,
  { book }: BuiltBackends,
  signal: AbortSignal,
  log: Log,
): Middleware {
  const token = config.panelToken ?? randomBytes(18).toString('base64url');
  const url = `${terms.publicUrl}/panel/`;
  if (config.panelToken === undefined) log.warn({ url, token }, `people answer at ${url}#${token}`);
  return createPanel({
    book,
    token,
    secure: terms.publicUrl.startsWith('https:'),
    signal,
  }).routes() as Middleware;
}

async function connect(config: Config, publicUrl: string, onSandboxExit: () => void): Promise<Connection> {
  const { rpcUrls, facilitatorUrl, payTo } = config;
  if (rpcUrls.length && facilitatorUrl) {
    if (!payTo) throw new ConfigFault('PAY_TO: must be set: the address that receives the USDC');
    const marketUrl = config.network.name === 'sandbox' ? readInfo(config.stateDir)?.marketUrl : undefined;
    return {
      rpcUrls: [...rpcUrls],
      facilitatorUrl,
      payTo,
      marketUrl: marketUrl ?? undefined,
      stop: async () => {},
    };
  }
  const { spawnSandbox } = await import('./sandbox/child.js');
  const sandbox = await spawnSandbox({
    stateDir: config.stateDir,
    host: config.host,
    rpcPort: config.sandboxRpcPort,
    facilitatorPort: config.sandboxFacilitatorPort,
    publicUrl,
    onExit: onSandboxExit,
  }).catch((error: unknown) => {
    throw new ConfigFault((error as Error).message);
  });
  const { info } = sandbox;
  return {
    rpcUrls: [info.rpcUrl],
    facilitatorUrl: info.facilitatorUrl,
    payTo: payTo ?? info.payTo,
    marketUrl: info.marketUrl ?? undefined,
    sandbox: info,
    stop: () => sandbox.stop(),
  };
}

function announce(info: SandboxInfo, stateDir: string, log: Log): void {
  const { buyer, feePayer, usdcMint, rpcUrl, facilitatorUrl, marketUrl, mints } = info;
  log.info(
    {
      buyer,
      keypair: `${stateDir}/buyer.json`,
      feePayer,
      usdcMint,
      rpcUrl,
      facilitatorUrl,
      marketUrl,
      mints,
    },
    'sandbox: local Solana with a funded buyer',
  );
}

function termsOf(config: Config, connection: Connection, publicUrl: string): Terms {
  const { caip2, v1, usdcMint } = config.network;
  return { network: caip2, v1Network: v1, asset: usdcMint, payTo: connection.payTo, publicUrl };
}

/** A chain of another network, or a receiver without a USDC account, would let every payment fail. */
async function checkChain(chain: SolanaChain, terms: Terms, log: Log): Promise<void> {
  const signal = AbortSignal.timeout(START_CHECK_MS);
  const account = receiverAccount(terms);
  let found: [string, Account | null];
  try {
    found = await Promise.all([chain.genesisHash(signal), chain.account(account, signal)]);
  } catch (error) {
    log.warn({ error }, 'starting without the chain: paid calls answer 503 until it is back');
    return;
  }
  const [genesis, receiver] = found;
  if (`solana:${genesis.slice(0, 32)}` !== terms.network) {
    throw new ConfigFault(
      `SOLANA_RPC_URL: serves another network than ${terms.network} (its genesis is ${genesis})`,
    );
  }
  // Lamports sent to the address before the account was created leave an account that takes no USDC.
  if (receiver?.owner !== TOKEN_PROGRAM) {
    throw new ConfigFault(
      `PAY_TO: ${terms.payTo} has no USDC token account ${account}: create it, for instance with ` +
        `spl-token create-account ${terms.asset} --owner ${terms.payTo} --fee-payer <your keypair>`,
    );
  }
}

const LONGEST_ADDRESS = 'z'.repeat(44);

/** Counts what the background look at the chain will add, so that the challenge keeps its size later. */
function checkHeaderSizes(contract: Contract, desk: Desk): void {
  for (const operation of contract.paid) {
    const live = { feePayer: LONGEST_ADDRESS, recentBlockhash: LONGEST_ADDRESS };
    const { length } = renderChallenge(operation, desk.terms, live).header;
    if (length > MAX_HEADER_BYTES) {
      throw new ConfigFault(
        `PUBLIC_URL: so long that the challenge of ${operation.id} takes ${length} header bytes, proxies cut at ${MAX_HEADER_BYTES}`,
      );
    }
  }
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

function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function listen(server: NetServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const inUse = error.code === 'EADDRINUSE';
      reject(inUse ? new ConfigFault(`PORT: ${port} is in use, set PORT to another one`) : error);
    });
    server.listen(port, host, 1024, resolve);
  });
}

/** Finds out early whether the port can be had; 0 asks for any. */
async function freePort(host: string, wanted: number): Promise<number> {
  const probe = createNetServer();
  await listen(probe, host, wanted);
  const { port } = probe.address() as AddressInfo;
  await new Promise(resolve => probe.close(resolve));
  return port;
}

/** Stops listening, lets what is in flight finish, then cuts what is left. */
async function drain(server: Server, charge: Charge): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise(resolve => server.close(resolve));
  server.closeIdleConnections();
  const deadline = new Promise(resolve => setTimeout(resolve, SHUTDOWN_DEADLINE_MS).unref());
  await Promise.race([charge.idle().then(() => server.closeIdleConnections()), deadline]);
  await Promise.race([closed, new Promise(resolve => setTimeout(resolve, 500))]);
  server.closeAllConnections();
}

async function runAll(steps: (() => Promise<unknown>)[]): Promise<void> {
  for (const step of steps.splice(0)) await step().catch(() => {});
}

const FAULTS = [ConfigFault, ContractFault, FacilitatorFault, LedgerFault];

async function main(): Promise<void> {
  let running: Running | undefined;
  let stopping = false;
  const stop = (status: number): void => {
    if (stopping) return;
    stopping = true;
    void (running?.stop() ?? Promise.resolve()).finally(() => process.exit(status));
  };
  process.once('SIGINT', () => stop(0));
  process.once('SIGTERM', () => stop(0));
  try {
    running = await start(readConfig(), () => {
      process.stderr.write('The sandbox has ended, so nothing can be paid any more: stopping.\n');
      stop(1);
    });
  } catch (error) {
    const known = FAULTS.some(fault => error instanceof fault);
    process.stderr.write(`${known ? (error as Error).message : String((error as Error)?.stack ?? error)}\n`);
    process.exit(1);
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
