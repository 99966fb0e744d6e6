import { resolve } from 'node:path';
import { readAddress } from './solana/address.js';
import { KeyPairFault, readKeyPairFile, type KeyPair } from './solana/key-pair.js';
import { NETWORKS, type Network, type NetworkName } from './solana/networks.js';
import { shownUrl } from './net/endpoint.js';

/** Invalid configuration. `message` lists all errors, each with the name of its variable. */
export class ConfigFault extends Error {}

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

/** A facilitator in `FACILITATOR_URL`; `embedded` is the server's own. */
export type FacilitatorConfig =
  | {
      kind: 'http';
      url: string;
      /** Sent with every request; the name in lower case. A secret, as is the key. */
      header?: { name: string; value: string };
      /** How many requests per second it allows, if that is known. */
      rate?: number;
      /** The key that signs each request, for Coinbase's facilitator. */
      cdp?: { id: string; secret: string };
    }
  | { kind: 'embedded' };

const CDP_HOST = 'api.cdp.coinbase.com';
const MAX_RATE = 1_000_000;

/** The longest time that a call may wait for its answer, also where its caller prefers another. */
export const MAX_HOLD_SECONDS = 600;

/** All settings. Times are in milliseconds, money is in atomic units. */
export type Config = Readonly<{
  host: string;
  port: number;
  /** Without trailing slash. If undefined, derived from host and port when the server listens. */
  publicUrl: string | undefined;
  siteUrl: string | undefined;
  network: Network;
  /** The folder of the shop: its openapi.yaml and its handlers. */
  shopDir: string;
  stateDir: string;
  databaseUrl: string;
  /** If empty, the embedded sandbox is started. */
  rpcUrls: readonly string[];
  /** In order of preference. If empty, that of the embedded sandbox. */
  facilitators: readonly FacilitatorConfig[];
  /** Pays the fees where the embedded facilitator settles. Without a key pair, the sandbox makes one. Limits in lamports. */
  feePayer: { keyPair: KeyPair | undefined; limits: { floor: bigint; hourlyCap: bigint } };
  payTo: string | undefined;
  sandboxRpcPort: number;
  sandboxFacilitatorPort: number;
  holdMs: number;
  maxUnsettledPerPayer: number;
  /** Space for paid answers until they expire. While it is full, the server accepts no new payments. */
  answerBudgetBytes: number;
  /** Who answers questions: the operator's own panel, the panel with sample respondents, or a marketplace. */
  people: 'panel' | 'sandbox' | 'rapidata';
  /** Signs people in to the panel page. If undefined, a new token is generated and logged at start. */
  panelToken: string | undefined;
  /** Orders are sold until this long after a respondent was last seen on the panel page. */
  respondentMs: number;
  /** An order is delivered after this time at the latest, with the replies received so far. */
  orderMs: number;
  rapidata: { clientId: string; clientSecret: string; budget: string } | undefined;
  summarizer: { url: string; model: string; apiKey: string | undefined } | undefined;
  piperUrl: string | undefined;
  jupiterApiKey: string | undefined;
  /** Whether the APIs that the contract names (`x-upstream`) may have private addresses. */
  allowPrivateUpstreams: boolean;
  /** The value of an environment variable that the contract names; undefined if it is not set. */
  variable: (name: string) => string | undefined;
  logLevel: string;
}>;

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/**
 * Reads the environment.
 * @throws ConfigFault that lists all errors together.
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const read = new Reader(env);
  const name = read.oneOf('NETWORK', ['sandbox', 'devnet', 'mainnet'] as const, 'sandbox');
  const stateDir = resolve(read.text('STATE_DIR') ?? '.coinslot');
  const config: Config = {
    host: read.text('HOST') ?? '127.0.0.1',
    port: read.integer('PORT', 8402, 0, 65535),
    publicUrl: read.origin('PUBLIC_URL'),
    siteUrl: read.url('SITE_URL'),
    network: NETWORKS[name],
    shopDir: resolve(read.text('SHOP_DIR') ?? '.'),
    stateDir,
    databaseUrl: read.database('DATABASE_URL') ?? `file:${stateDir}/ledger.db`,
    rpcUrls: read.urls('SOLANA_RPC_URL') ?? (DEFAULT_RPC[name] ? [DEFAULT_RPC[name]] : []),
    facilitators: read.facilitators(DEFAULT_FACILITATOR[name]),
    feePayer: read.feePayer(),
    payTo: read.address('PAY_TO'),
    sandboxRpcPort: read.integer('SANDBOX_RPC_PORT', 8899, 0, 65535),
    sandboxFacilitatorPort: read.integer('SANDBOX_FACILITATOR_PORT', 8403, 0, 65535),
    holdMs: read.integer('HOLD_SECONDS', 55, 1, MAX_HOLD_SECONDS) * 1000,
    answerBudgetBytes: read.integer('ANSWER_STORE_MB', 4096, 64, 1_000_000) * 1024 * 1024,
    maxUnsettledPerPayer: read.integer('MAX_UNSETTLED_PER_PAYER', 256, 1, 1_000_000),
    people: read.oneOf(
      'PEOPLE',
      ['panel', 'sandbox', 'rapidata'] as const,
      name === 'sandbox' ? 'sandbox' : 'panel',
    ),
    panelToken: read.secret('PANEL_TOKEN', 16),
    respondentMs: read.integer('RESPONDENT_MINUTES', 10, 1, 10_080) * 60_000,
    orderMs: read.integer('ORDER_MINUTES', 30, 1, 1440) * 60_000,
    rapidata: read.rapidata(),
    summarizer: read.summarizer(),
    piperUrl: read.url('PIPER_URL'),
    jupiterApiKey: read.text('JUPITER_API_KEY'),
    allowPrivateUpstreams: read.oneOf('ALLOW_PRIVATE_UPSTREAMS', ['true', 'false'], 'false') === 'true',
    variable: variable => read.text(variable),
    logLevel: read.oneOf('LOG_LEVEL', LOG_LEVELS, 'info'),
  };
  checkTogether(read, config);
  read.finish();
  return Object.freeze(config);
}

/** Checks that involve more than one variable. */
function checkTogether(read: Reader, config: Config): void {
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
  if (!sandbox) read.demand(config.publicUrl, 'PUBLIC_URL', 'the URL at which agents reach this server');
  const needsChain = config.facilitators.some(({ kind }) => kind === 'http');
  if (sandbox && (read.text('SOLANA_RPC_URL') ? !read.text('FACILITATOR_URL') : needsChain)) {
    read.fault('SOLANA_RPC_URL and FACILITATOR_URL: in the sandbox, set both or neither');
  }
  if (config.people === 'sandbox' && !sandbox) {
    read.fault('PEOPLE: sample respondents are only available in the sandbox; set it to panel or rapidata');
  }
  if (config.people === 'rapidata') {
    read.demand(
      config.rapidata,
      'RAPIDATA_CLIENT_ID',
      'PEOPLE=rapidata needs RAPIDATA_CLIENT_ID and RAPIDATA_CLIENT_SECRET',
    );
  }
}

/** Reads variables and collects their errors, so that all are reported together. */
class Reader {
  readonly #faults: string[] = [];
  readonly #env: NodeJS.ProcessEnv;

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
  }

  fault(message: string): void {
    this.#faults.push(message);
  }

  finish(): void {
    if (this.#faults.length) {
      throw new ConfigFault(`Invalid configuration:\n  ${this.#faults.join('\n  ')}`);
    }
  }

  demand(value: unknown, name: string, what: string): void {
    if (value === undefined && !this.#env[name]?.trim()) this.fault(`${name}: must be set: ${what}`);
  }

  text(name: string): string | undefined {
    return this.#env[name]?.trim() || undefined;
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const text = this.text(name);
    if (text === undefined) return fallback;
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return value;
    this.fault(`${name}: '${text}' is not a whole number from ${min} to ${max}`);
    return fallback;
  }

  oneOf<T extends string>(name: string, values: readonly T[], fallback: T): T {
    const text = this.text(name);
    if (text === undefined) return fallback;
    if ((values as readonly string[]).includes(text)) return text as T;
    this.fault(`${name}: '${text}' is not one of ${values.join(', ')}`);
    return fallback;
  }

  url(name: string): string | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : this.#checkUrl(name, text);
  }

  urls(name: string): string[] | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const urls = text.split(',').map(part => this.#checkUrl(name, part.trim()));
    return urls.filter(url => url !== undefined);
  }

  facilitators(fallback: string | undefined): FacilitatorConfig[] {
    const text = this.text('FACILITATOR_URL') ?? fallback;
    if (text === undefined) return [];
    const entries = text.split(',').map(part => part.trim());
    this.#checkNumbers(entries);
    return entries.flatMap((entry, n) => this.#facilitator(entry, `FACILITATOR_${n + 1}`));
  }

  #facilitator(entry: string, prefix: string): FacilitatorConfig[] {
    if (entry === 'embedded') return [{ kind: 'embedded' }];
    const url = this.#checkUrl('FACILITATOR_URL', entry);
    const header = this.#header(`${prefix}_HEADER`);
    const rate = this.integer(`${prefix}_RATE`, 0, 1, MAX_RATE);
    if (url === undefined) return [];
    const cdp = new URL(url).hostname === CDP_HOST ? this.#cdpKey() : undefined;
    return [{ kind: 'http', url, ...(header && { header }), ...(rate > 0 && { rate }), ...(cdp && { cdp }) }];
  }

  /** Settings of an entry that is not in the list, or is our own, would be ignored. */
  #checkNumbers(entries: string[]): void {
    for (const name of Object.keys(this.#env)) {
      const [, number] = /^FACILITATOR_(\d+)_(?:HEADER|RATE)$/.exec(name) ?? [];
      const entry = number === undefined ? '' : entries[Number(number) - 1];
      if (entry !== undefined && entry !== 'embedded') continue;
      if (this.text(name) !== undefined)
        this.fault(`${name}: FACILITATOR_URL has no facilitator with this number that is reached by a URL`);
    }
  }

  #header(name: string): { name: string; value: string } | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const [, header, value] = /^([\w-]+):([\x20-\x7e]+)$/.exec(text) ?? [];
    if (header !== undefined && value?.trim()) return { name: header.toLowerCase(), value: value.trim() };
    this.fault(`${name}: must be a header such as "Authorization: Bearer …"`);
    return undefined;
  }

  #cdpKey(): { id: string; secret: string } | undefined {
    const [id, secret] = [this.text('CDP_API_KEY_ID'), this.text('CDP_API_KEY_SECRET')];
    if (id !== undefined && secret !== undefined) return { id, secret };
    this.fault(`CDP_API_KEY_ID and CDP_API_KEY_SECRET: must be set for the facilitator at ${CDP_HOST}`);
    return undefined;
  }

  feePayer(): Config['feePayer'] {
    const lamports = (name: string, fallback: number, least: number): bigint =>
      BigInt(this.integer(name, fallback, least, 9_999_999_999));
    return {
      keyPair: this.#keyPair('FEE_PAYER_KEYPAIR'),
      limits: {
        // An account without data must keep 890 880 lamports.
        floor: lamports('FEE_PAYER_FLOOR', 10_000_000, 1_000_000),
        hourlyCap: lamports('FEE_PAYER_HOURLY_CAP', 500_000_000, 30_000),
      },
    };
  }

  origin(name: string): string | undefined {
    const url = this.url(name);
    if (url === undefined) return undefined;
    const { origin, href } = new URL(url);
    if (href === `${origin}/`) return origin;
    this.fault(
      `${name}: '${shownUrl(url)}' must be an origin such as ${origin}, without path, query or credentials`,
    );
    return undefined;
  }

  database(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined || /^(file:.|postgres(ql)?:\/\/)/.test(text)) return text;
    this.fault(`${name}: must begin with file: or postgres://`);
    return undefined;
  }

  address(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined || readAddress(text)) return text;
    this.fault(`${name}: '${text}' is not a Solana address`);
    return undefined;
  }

  secret(name: string, minLength: number): string | undefined {
    const text = this.text(name);
    if (text === undefined || text.length >= minLength) return text;
    this.fault(`${name}: must have at least ${minLength} characters`);
    return undefined;
  }

  rapidata(): Config['rapidata'] {
    const clientId = this.text('RAPIDATA_CLIENT_ID');
    const clientSecret = this.text('RAPIDATA_CLIENT_SECRET');
    const budget = this.text('RAPIDATA_BUDGET') ?? '0.40';
    if (!/^\d{1,6}(\.\d{1,6})?$/.test(budget)) {
      this.fault(`RAPIDATA_BUDGET: '${budget}' is not an amount in dollars such as 0.40`);
      return undefined;
    }
    if (!clientId && !clientSecret) return undefined;
    if (clientId && clientSecret) return { clientId, clientSecret, budget };
    this.fault('RAPIDATA_CLIENT_ID and RAPIDATA_CLIENT_SECRET: set both or neither');
    return undefined;
  }

  summarizer(): Config['summarizer'] {
    const url = this.url('SUMMARIZER_URL');
    const model = this.text('SUMMARIZER_MODEL');
    if (!url && !model) return undefined;
    if (url && model) return { url, model, apiKey: this.text('SUMMARIZER_API_KEY') };
    if (!this.text('SUMMARIZER_URL') || !model)
      this.fault('SUMMARIZER_URL and SUMMARIZER_MODEL: set both or neither');
    return undefined;
  }

  #keyPair(name: string): KeyPair | undefined {
    const file = this.text(name);
    if (file === undefined) return undefined;
    try {
      return readKeyPairFile(resolve(file));
    } catch (error) {
      if (!(error instanceof KeyPairFault)) throw error;
      this.fault(`${name}: ${file} is not usable: ${error.message}`);
      return undefined;
    }
  }

  #checkUrl(name: string, text: string): string | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    // A trailing slash is removed from the path only, not from a query.
    if (url && (url.protocol === 'http:' || url.protocol === 'https:'))
      return url.search ? text : text.replace(/(?<!\/)\/+$/, '');
    this.fault(`${name}: '${shownUrl(text)}' is not an http(s) URL`);
    return undefined;
  }
}
