import { resolve } from 'node:path';
import { messageOf } from '../../ledger/fault.js';
import { toAtomic } from '../../price/amount.js';
import { KeyPairFault, readSecretKeyFile } from '../../rails/solana/key-pair.js';
import { endpointOf } from '../../wallet/shop-connection.js';
import type { Limits } from '../../wallet/purchase.js';

/** An option is wrong. */
export class OptionFault extends Error {}

const text = { type: 'string' } as const;

/** The wallet's options, for parseArgs. */
export const WALLET_OPTIONS = {
  url: text,
  keypair: text,
  'max-price': { ...text, default: '0.05' },
  budget: { ...text, default: '1.00' },
  rpc: text,
  state: text,
  timeout: { ...text, default: '50' },
  'allow-http': { type: 'boolean', default: false },
} as const;

export type WalletValues = {
  url?: string | undefined;
  keypair?: string | undefined;
  'max-price': string;
  budget: string;
  rpc?: string | undefined;
  state?: string | undefined;
  timeout: string;
  'allow-http': boolean;
};

/** The validated options. */
export type WalletSettings = {
  /** The URL of the shop's MCP endpoint. */
  endpoint: string;
  secretKey: Uint8Array;
  limits: Limits;
  rpcUrl: string | undefined;
  folder: string | undefined;
  timeoutMs: number;
};

const MAX_SECONDS = 3_600;

/** @throws OptionFault, or the error for an invalid shop address */
export function walletSettings(values: WalletValues): WalletSettings {
  const { url, state } = values;
  if (url === undefined) throw new OptionFault('--url is missing: coinslot mcp --help says more.');
  return {
    endpoint: endpointOf(url, values['allow-http']),
    secretKey: secretKeyOf(values.keypair),
    limits: {
      maxPrice: amountOf('--max-price', values['max-price']),
      budget: amountOf('--budget', values.budget),
    },
    rpcUrl: rpcOf(values.rpc),
    folder: state === undefined ? undefined : resolve(state),
    timeoutMs: secondsOf(values.timeout) * 1_000,
  };
}

function secretKeyOf(file: string | undefined): Uint8Array {
  if (file === undefined) throw new OptionFault('--keypair is missing: coinslot mcp --help says more.');
  try {
    return readSecretKeyFile(resolve(file));
  } catch (error) {
    if (error instanceof KeyPairFault) throw new OptionFault(`--keypair ${file}: ${error.message}`);
    throw error;
  }
}

function amountOf(option: string, amount: string): bigint {
  try {
    return toAtomic(amount);
  } catch (error) {
    throw new OptionFault(`${option} ${messageOf(error)}`);
  }
}

function secondsOf(seconds: string): number {
  const number = Number(seconds);
  if (number > 0 && number <= MAX_SECONDS) return number;
  throw new OptionFault(`--timeout must be a number of seconds, more than 0 and at most ${MAX_SECONDS}`);
}

function rpcOf(url: string | undefined): string | undefined {
  if (url === undefined || (/^https?:/.test(url) && URL.canParse(url))) return url;
  throw new OptionFault('--rpc is not an http(s) URL.');
}
