import type { KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { BlockedPayersFault, readBlockedPayers } from './admission/blocked-payers.js';
import {
  keyPairOf,
  readCatalogue,
  readFacilitators,
  readFeePayer,
  type CatalogueConfig,
  type FacilitatorConfig,
  type FeePayerConfig,
} from './config/facilitator-settings.js';
import { readMpp, type MppConfig } from './config/method-settings.js';
import { readReceiptKey } from './config/receipt-key.js';
import { readRefunds, type RefundConfig } from './config/refund-settings.js';
import { SettingReader } from './config/setting-reader.js';
import { readWebhooks, type WebhookConfig } from './config/webhook-settings.js';
import { isAddress } from './rails/solana/address.js';
import { EXPLORERS, type ExplorerName } from './rails/solana/explorer.js';
import { NETWORKS, type Network, type NetworkName } from './rails/solana/networks.js';

const DEFAULT_RPC: Record<NetworkName, string | undefined> = {
  sandbox: undefined,
  devnet: 'https://api.devnet.solana.com',
  mainnet: 'https://api.mainnet-beta.solana.com',
};

const DEFAULT_FACILITATOR: Record<NetworkName, string | undefined> = {
  sandbox: undefined,
  devnet: 'https://facilitator.payai.network',
  mainnet: 'https://facilitator.payai.network',
};

/** The longest time that a call may wait for its answer, even if its caller prefers a longer one. */
export const MAX_HOLD_SECONDS = 600;

/**
 * `port` 0 chooses a free one; undefined means the default, which in the sandbox falls back to a free port. `url` is the listener's
 * address behind a proxy, without trailing slash. If there is no token, one is generated.
 */
export type AdminConfig = {
  host: string;
  port: number | undefined;
  url: string | undefined;
  token: string | undefined;
};

/** All settings. Times are in milliseconds, money is in atomic units. */
export type Config = Readonly<{
  host: string;
  port: number;
  /** Without trailing slash. If undefined, derived from host and port when the server listens. */
  publicUrl: string | undefined;
  siteUrl: string | undefined;
  /** How many proxies in front are trusted to name the caller in `X-Forwarded-For`. */
  trustedProxies: number;
  /** The listener for operators: page, metrics and readiness. */
  admin: AdminConfig;
  network: Network;
  /** The folder of the shop: its openapi.yaml and its handlers. */
  shopDir: string;
  stateDir: string;
  databaseUrl: string;
  /** The same database, without a connection pooler. */
  databaseDirectUrl: string;
  /** A replica of the database, for reports. */
  databaseReadUrl: string | undefined;
  /** If empty, the embedded sandbox is started. */
  rpcUrls: readonly string[];
  /** In order of preference. If empty, the embedded sandbox's facilitator. */
  facilitators: readonly FacilitatorConfig[];
  /** Further facilitators, used only to list operations in their directories. */
  catalogue: CatalogueConfig;
  feePayer: FeePayerConfig;
  /** Set if the shop accepts MPP as well as x402. */
  mpp: MppConfig | undefined;
  payTo: string | undefined;
  /** The key that signs receipts; undefined: the one in the state folder. */
  receiptKey: KeyObject | undefined;
  /** The operator's own wallets. */
  ownWallets: ReadonlySet<string>;
  /** Set if the server itself refunds orders that were given up. */
  refunds: RefundConfig | undefined;
  /** The file with the payers to whom nothing is sold. */
  blockedPayers: string | undefined;
  /** The explorer that pages link transactions and addresses to. */
  explorer: ExplorerName;
  /** Where events are sent. */
  webhooks: WebhookConfig;
  /** Whether operations are listed in the directories of facilitators. */
  listed: boolean;
  sandboxRpcPort: number;
  sandboxFacilitatorPort: number;
  holdMs: number;
  maxUnsettledPerPayer: number;
  /** How many calls to each backend may end without a sale per hour, in addition to the share of each payer. */
  unsoldPerHour: number;
  /** Space for paid answers until they expire. While it is full, the server accepts no new payments. */
  answerBudgetBytes: number;
  /** The days after which requests and answers, or payers' addresses, are removed; undefined: never. */
  retention: { texts: number | undefined; payers: number | undefined };
  /** How long an attempt at an order may take. A handler may extend it, once. */
  orderMs: number;
  /** How many times an order is attempted before only the operator can start another attempt. */
  orderAttempts: number;
  /** Whether the APIs that the contract names (`x-upstream`) may have private addresses. */
  allowPrivateUpstreams: boolean;
  /** The value of an environment variable that the contract names; undefined if it is not set. */
  variable: (name: string) => string | undefined;
  /** Reads the settings that the operations of the shop declare. */
  reader: () => SettingReader;
  logLevel: string;
}>;

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/**
 * Reads the environment. `read`: a reader of the environment that records which variables are read.
 * @throws ConfigFault that lists all errors together.
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env, read = new SettingReader(env)): Config {
  const name = read.oneOf('NETWORK', ['sandbox', 'devnet', 'mainnet'] as const, 'sandbox');
  const stateDir = resolve(read.text('STATE_DIR') ?? '.coinslot');
  const databaseUrl = read.database('DATABASE_URL') ?? `file:${stateDir}/ledger.db`;
  const config: Config = {
    host: read.text('HOST') ?? '127.0.0.1',
    port: read.integer('PORT', 8402, 0, 65535),
    publicUrl: read.origin('PUBLIC_URL'),
    siteUrl: read.url('SITE_URL'),
    trustedProxies: read.integer('TRUST_PROXY', 0, 0, 10),
    admin: readAdmin(read),
    network: NETWORKS[name],
    shopDir: resolve(read.text('SHOP_DIR') ?? '.'),
    stateDir,
    databaseUrl,
    databaseDirectUrl: read.database('DATABASE_DIRECT_URL') ?? databaseUrl,
    databaseReadUrl: read.database('DATABASE_READ_URL'),
    rpcUrls: read.urls('SOLANA_RPC_URL') ?? (DEFAULT_RPC[name] ? [DEFAULT_RPC[name]] : []),
    facilitators: readFacilitators(read, DEFAULT_FACILITATOR[name]),
    catalogue: readCatalogue(read),
    feePayer: readFeePayer(read),
    mpp: readMpp(read, name === 'sandbox'),
    payTo: read.address('PAY_TO'),
    receiptKey: readReceiptKey(read),
    ownWallets: readOwnWallets(read),
    refunds: readRefunds(read),
    blockedPayers: readBlockedFile(read),
    explorer: read.oneOf('EXPLORER', EXPLORERS, 'solscan'),
    webhooks: readWebhooks(read),
    sandboxRpcPort: read.integer('SANDBOX_RPC_PORT', 8899, 0, 65535),
    sandboxFacilitatorPort: read.integer('SANDBOX_FACILITATOR_PORT', 8403, 0, 65535),
    holdMs: read.integer('HOLD_SECONDS', 55, 1, MAX_HOLD_SECONDS) * 1000,
    answerBudgetBytes: read.integer('ANSWER_STORE_MB', 4096, 64, 1_000_000) * 1024 * 1024,
    retention: readRetention(read),
    maxUnsettledPerPayer: read.integer('MAX_UNSETTLED_PER_PAYER', 256, 1, 1_000_000),
    unsoldPerHour: read.integer('UNSOLD_CALLS_PER_HOUR', 1_000, 20, 1_000_000),
    orderMs: read.integer('ORDER_MINUTES', 30, 1, 1440) * 60_000,
    orderAttempts: read.integer('ORDER_ATTEMPTS', 5, 1, 100),
    listed: read.oneOf('LISTED', ['true', 'false'], 'true') === 'true',
    allowPrivateUpstreams: read.oneOf('ALLOW_PRIVATE_UPSTREAMS', ['true', 'false'], 'false') === 'true',
    variable: variable => read.text(variable),
    reader: () => new SettingReader(env),
    logLevel: read.oneOf('LOG_LEVEL', LOG_LEVELS, 'info'),
  };
  checkTogether(read, config);
  read.finish();
  return Object.freeze(config);
}

/** Includes the wallet of `coinslot canary`. */
function readOwnWallets(read: SettingReader): ReadonlySet<string> {
  const canary = keyPairOf(read, 'CANARY_KEYPAIR');
  return new Set([...read.addresses('OWN_WALLETS'), ...(canary ? [canary.address] : [])]);
}

const MAX_DAYS = 36_500;

/** 0 days means that nothing is removed. */
function readRetention(read: SettingReader): Config['retention'] {
  const days = (name: string): number | undefined => read.integer(name, 0, 0, MAX_DAYS) || undefined;
  return { texts: days('RETENTION_DAYS'), payers: days('PAYER_RETENTION_DAYS') };
}

function readBlockedFile(read: SettingReader): string | undefined {
  const text = read.text('BLOCKED_PAYERS');
  const file = text === undefined ? undefined : resolve(text);
  try {
    if (file !== undefined) readBlockedPayers(file, isAddress);
  } catch (error) {
    if (!(error instanceof BlockedPayersFault)) throw error;
    read.fault(`BLOCKED_PAYERS: ${file} can't be used: ${error.message}`);
  }
  return file;
}

/** Checks that involve more than one variable. */
function checkTogether(read: SettingReader, config: Config): void {
  const sandbox = config.network.name === 'sandbox';
  const ownSandbox = sandbox && !(config.rpcUrls.length && config.facilitators.length);
  const embedded = config.facilitators.some(({ kind }) => kind === 'embedded');
  if (embedded && !sandbox)
    read.demand(
      config.feePayer.keyPair,
      'FEE_PAYER_KEYPAIR',
      'the file with the key pair that pays the fees',
    );
  if (!ownSandbox) read.demand(config.payTo, 'PAY_TO', 'the address that receives the USDC');
  if (config.databaseReadUrl !== undefined && config.databaseUrl.startsWith('file:'))
    read.fault('DATABASE_READ_URL: only a ledger in PostgreSQL (DATABASE_URL) has replicas');
  if (!config.listed && config.catalogue.facilitators.length > 0)
    read.fault('CATALOGUE_FACILITATORS: with LISTED=false nothing is listed; set only one of the two');
  if (!sandbox) read.demand(config.publicUrl, 'PUBLIC_URL', 'the URL at which agents reach this server');
  const needsChain = config.facilitators.some(({ kind }) => kind === 'http');
  if (sandbox && (read.text('SOLANA_RPC_URL') ? !read.text('FACILITATOR_URL') : needsChain)) {
    read.fault('SOLANA_RPC_URL and FACILITATOR_URL: in the sandbox, set both or neither');
  }
}

function readAdmin(read: SettingReader): AdminConfig {
  const port = read.text('ADMIN_PORT') === undefined ? undefined : read.integer('ADMIN_PORT', 0, 0, 65535);
  const token = read.secret('ADMIN_TOKEN', 16);
  return { host: read.text('ADMIN_HOST') ?? '127.0.0.1', port, url: read.origin('ADMIN_URL'), token };
}
