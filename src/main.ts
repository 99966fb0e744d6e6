import './quiet.js';
import { createServer as createNetServer, type AddressInfo, type Server as NetServer } from 'node:net';
import { realpathSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { ConfigFault, readConfig, type Config } from './config.js';
import { COMPILED_FILE, CONTRACT_FILE, ContractFault, loadContract, type Contract } from './contract.js';
import { LedgerFault } from './ledger/fault.js';
import { openLedger } from './ledger/store.js';
import { Lobby } from './lobby.js';
import { MAX_HEADER_BYTES, renderChallenge } from './payments/challenge.js';
import { Desk } from './payments/desk.js';
import { FacilitatorFault, httpFacilitator } from './payments/facilitator.js';
import { SharedFeePayers } from './payments/fee-payers.js';
import { Heights } from './payments/heights.js';
import type { Terms } from './payments/offer.js';
import type { Log } from './payments/outcome.js';
import { receiverAccount, TOKEN_PROGRAM } from './payments/transaction.js';
import { readInfo, type SandboxInfo } from './sandbox/info.js';
import { createHttpServer } from './server.js';
import type { Front, Shop } from './shop.js';
import { createChain, type Account, type SolanaChain, type SurveyedServer } from './upstreams/solana/rpc.js';
import { isGenesisOf } from './upstreams/solana/rpc-server.js';
import { firstFeePayer, rememberedFeePayers, Watch } from './watch.js';

const SHUTDOWN_DEADLINE_MS = 25_000;
const CHAIN_TRY_MS = 3_000;
const CHAIN_CHECK_MS = 5_000;
/** How long a stop waits for a shop that is opening to notice. */
const STOP_OPENING_MS = 10_000;
/** Between two packages of the second half: long enough for a call to be heard and answered. */
const REST_MS = 5;

/** A server. `stop` finishes what is in flight within 25 s. */
export type Running = { url: string; stop(): Promise<void> };

/**
 * A server that says what calls cost, and lets whoever pays wait until it sells: then `ready` resolves. Where that fails, `ready`
 * rejects once all is closed, with a fault like those of `open`.
 */
export type Opened = Running & { ready: Promise<void> };

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

/** Builds everything once and listens. Resolves when the server is ready to be paid; throws like `open`. */
export async function start(config: Config, onSandboxExit?: () => void): Promise<Running> {
  const opened = await open(config, onSandboxExit);
  await opened.ready;
  return opened;
}

type OpenShop = (front: Front) => Promise<Shop>;

/**
 * Builds what a call without payment needs, checks chain, facilitator and ledger, and listens; what sells is loaded behind the open
 * door, since that takes most of a start.
 * @throws ConfigFault, ContractFault, LedgerFault, FacilitatorFault: each with sentences for the operator
 */
export async function open(
  config: Config,
  onSandboxExit: () => void = () => {},
  openShop: OpenShop = loadShop,
): Promise<Opened> {
  const log = pino({
    level: config.logLevel,
    serializers: { error: pino.stdSerializers.err, cause: pino.stdSerializers.err },
  });
  const contract = loadContract(CONTRACT_FILE, COMPILED_FILE);
  await mkdir(config.stateDir, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new ConfigFault(
      `STATE_DIR: ${config.stateDir} can't be used as a folder: ${(error as Error).message}`,
    );
  });
  const port = await freePort(config.host, config.port);
  const publicUrl = config.publicUrl ?? `http://${hostInUrl(config.host)}:${port}`;
  const undo: Front['undo'] = [];
  const closing = new AbortController();
  try {
    const connection = await connect(config, publicUrl, onSandboxExit);
    undo.unshift(() => connection.stop());
    if (connection.sandbox) announce(connection.sandbox, config.stateDir, log);
    const parts = { config, contract, connection, log, closing: closing.signal, undo };
    const front = await openFront(parts, termsOf(config, connection, publicUrl));
    const lobby = new Lobby();
    const server = createHttpServer(lobby.receive, front.desk, contract.paid);
    await listen(server, config.host, port);
    return openDoor({ front, server, lobby, closing }, openShop);
  } catch (error) {
    await runAll(undo);
    throw error;
  }
}

type Parts = Pick<Front, 'config' | 'contract' | 'log' | 'closing' | 'undo'> & { connection: Connection };

/** Checks whom the money goes to and who moves it, and finds out all that a challenge says. */
async function openFront({ connection, ...parts }: Parts, terms: Terms): Promise<Front> {
  const { config, contract, log, undo } = parts;
  const { network } = terms;
  const chain = createChain({ urls: connection.rpcUrls, network, timeoutMs: CHAIN_TRY_MS, log });
  undo.unshift(() => chain.close());
  await checkChain(chain, terms, log);
  const ledger = await openLedger({
    url: config.databaseUrl,
    payTo: terms.payTo,
    network: terms.network,
    answerBudgetBytes: config.answerBudgetBytes,
  });
  undo.unshift(() => ledger.close());
  for (const warning of ledger.warnings) log.warn({}, warning);
  const { facilitatorUrl, marketUrl } = connection;
  const facilitator = httpFacilitator(facilitatorUrl);
  undo.unshift(() => facilitator.close());
  const remembered = await rememberedFeePayers(ledger);
  const feePayer = await firstFeePayer(facilitator, terms.network, remembered, log);
  const desk = new Desk(contract.paid, terms, feePayer, remembered);
  checkHeaderSizes(contract, desk);
  const heights = new Heights(ledger);
  const feePayers = new SharedFeePayers({ ledger, desk, log });
  const watch = new Watch({ desk, chain, heights, feePayers, facilitator, ledger, log });
  undo.unshift(async () => {
    watch.stop();
    desk.close();
  });
  await watch.start();
  return { ...parts, terms, facilitatorUrl, marketUrl, chain, heights, feePayers, ledger, facilitator, desk };
}

type Door = { front: Front; server: Server; lobby: Lobby; closing: AbortController };

/** Lets the shop open behind the front, and callers in when it has. */
function openDoor({ front, server, lobby, closing }: Door, openShop: OpenShop): Opened {
  const { log, terms, undo } = front;
  let shop: Shop | undefined;
  const opening = openShop(front).then(opened => {
    shop = opened;
    closing.signal.throwIfAborted();
    lobby.open(shop.app);
  });
  const close = async (): Promise<void> => {
    log.info({}, 'stopping: what is in flight is finished, nothing new is sold');
    closing.abort(new Error('the server is shutting down'));
    lobby.close();
    await drain(server, async () => shop?.idle());
    await Promise.race([opening.catch(() => {}), sleep(STOP_OPENING_MS, undefined, { ref: false })]);
    await runAll(undo);
    log.info({}, 'stopped');
  };
  let closed: Promise<void> | undefined;
  const stop = (): Promise<void> => (closed ??= close());
  const ready = opening.then(
    () =>
      log.info(
        { network: front.config.network.name, payTo: terms.payTo },
        `ready to be paid at ${terms.publicUrl}`,
      ),
    async (error: unknown) => {
      await stop();
      throw error;
    },
  );
  // Who stops a server that is still opening need not wait for `ready`.
  ready.catch(() => {});
  return { url: terms.publicUrl, ready, stop };
}

/** What sells. CommonJS, and ordered so that each comes after what it loads itself. */
const PACKAGES = [
  'koa',
  '@koa/router',
  'ajv',
  'ajv/dist/2020.js',
  'ajv-formats',
  'openapi-backend',
  'cockatiel',
];

/**
 * Loads one package after the other. A call takes several turns of the event loop to be heard and answered, so there is a rest between
 * two: a call for the price waits for one package at most.
 */
async function loadShop(front: Front): Promise<Shop> {
  const require = createRequire(import.meta.url);
  for (const name of PACKAGES) {
    await sleep(REST_MS);
    front.closing.throwIfAborted();
    require(name);
  }
  const { openShop } = await import('./shop.js');
  return openShop(front);
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
  const signal = AbortSignal.timeout(CHAIN_CHECK_MS);
  const account = receiverAccount(terms);
  let receiver: Account | null;
  try {
    receiver = await chain.account(account, signal);
  } catch (error) {
    refuseForeignChain(await chain.survey(AbortSignal.timeout(CHAIN_CHECK_MS)), terms);
    log.warn({ error }, 'starting without the chain: paid calls answer 503 until it is back');
    return;
  }
  void chain.survey(signal).then(servers => reportForeignChains(servers, terms, log));
  // Lamports sent to the address before the account was created leave an account that takes no USDC.
  if (receiver?.owner !== TOKEN_PROGRAM) {
    throw new ConfigFault(
      `PAY_TO: ${terms.payTo} has no USDC token account ${account}: create it, for instance with ` +
        `spl-token create-account ${terms.asset} --owner ${terms.payTo} --fee-payer <your keypair>`,
    );
  }
}

type Foreign = { name: string; genesis: string };

function foreignAmong(servers: SurveyedServer[], { network }: Terms): Foreign[] {
  return servers.filter(
    (server): server is Foreign => server.genesis !== undefined && !isGenesisOf(network, server.genesis),
  );
}

/** Of the servers that answer, none serves our chain. */
function refuseForeignChain(servers: SurveyedServer[], terms: Terms): void {
  const foreign = foreignAmong(servers, terms);
  const answering = servers.filter(({ genesis }) => genesis !== undefined);
  if (foreign.length === 0 || foreign.length < answering.length) return;
  const each = foreign.map(({ name, genesis }) => `${name} (its genesis is ${genesis})`);
  throw new ConfigFault(`SOLANA_RPC_URL: serves another network than ${terms.network}: ${each.join(', ')}`);
}

/** One that is asked only when others fail would else be found out only then. */
function reportForeignChains(servers: SurveyedServer[], terms: Terms, log: Log): void {
  for (const { name, genesis } of foreignAmong(servers, terms))
    log.error(
      { rpc: name, genesis },
      `the RPC server ${name} of SOLANA_RPC_URL serves another network than ${terms.network} and is never believed: remove it`,
    );
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
async function drain(server: Server, idle: () => Promise<void>): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise(resolve => server.close(resolve));
  server.closeIdleConnections();
  const deadline = new Promise(resolve => setTimeout(resolve, SHUTDOWN_DEADLINE_MS).unref());
  await Promise.race([idle().then(() => server.closeIdleConnections()), deadline]);
  await Promise.race([closed, new Promise(resolve => setTimeout(resolve, 500))]);
  server.closeAllConnections();
}

async function runAll(steps: (() => Promise<unknown>)[]): Promise<void> {
  for (const step of steps.splice(0)) await step().catch(() => {});
}

const FAULTS = [ConfigFault, ContractFault, FacilitatorFault, LedgerFault];

async function main(): Promise<void> {
  let opened: Opened | undefined;
  let stopping = false;
  const stop = (status: number): void => {
    if (stopping) return;
    stopping = true;
    void (opened?.stop() ?? Promise.resolve()).finally(() => process.exit(status));
  };
  process.once('SIGINT', () => stop(0));
  process.once('SIGTERM', () => stop(0));
  try {
    opened = await open(readConfig(), () => {
      process.stderr.write('The sandbox has ended, so nothing can be paid any more: stopping.\n');
      stop(1);
    });
    await opened.ready;
  } catch (error) {
    if (stopping) return;
    const known = FAULTS.some(fault => error instanceof fault);
    process.stderr.write(`${known ? (error as Error).message : String((error as Error)?.stack ?? error)}\n`);
    process.exit(1);
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
