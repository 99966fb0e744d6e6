import { resolve } from 'node:path';
import { KeyPairFault, readKeyPairFile, type KeyPair } from '../rails/solana/key-pair.js';
import type { SettingReader } from './setting-reader.js';

/** A facilitator in `FACILITATOR_URL`; `embedded` is the server's own. */
export type FacilitatorConfig =
  | {
      kind: 'http';
      url: string;
      /** A header sent with every request; the name in lower case. Secret, like the key. */
      header?: { name: string; value: string };
      /** How many requests per second it allows, if known. */
      rate?: number;
      /** The key that signs each request, for Coinbase's facilitator. */
      cdp?: { id: string; secret: string };
    }
  | { kind: 'embedded' };

/** The fee payer of the embedded facilitator. Without a key pair, the sandbox makes one. Limits in lamports. */
export type FeePayerConfig = {
  keyPair: KeyPair | undefined;
  /** A second key, while the key pair is being changed: it signs payments that name it, but is not offered. */
  second: KeyPair | undefined;
  limits: { floor: bigint; hourlyCap: bigint };
};

const CDP_HOST = 'api.cdp.coinbase.com';
const MAX_RATE = 1_000_000;

/** `FACILITATOR_URL` and the settings of its entries. `fallback` replaces a list that is not set. */
export function readFacilitators(read: SettingReader, fallback: string | undefined): FacilitatorConfig[] {
  const text = read.text('FACILITATOR_URL') ?? fallback;
  if (text === undefined) return [];
  const entries = text.split(',').map(part => part.trim());
  checkNumbers(read, entries);
  return entries.flatMap((entry, n) => facilitatorOf(read, entry, `FACILITATOR_${n + 1}`));
}

/** Facilitators that settle some sales so that their directories list the shop, and the time between two such sales. */
export type CatalogueConfig = { facilitators: readonly FacilitatorConfig[]; everyMs: number };

/** `CATALOGUE_FACILITATORS`, which can't contain `embedded`, and `CATALOGUE_HOURS`. */
export function readCatalogue(read: SettingReader): CatalogueConfig {
  const name = 'CATALOGUE_FACILITATORS';
  const everyMs = read.integer('CATALOGUE_HOURS', 6, 1, 168) * 60 * 60 * 1_000;
  const facilitators = (read.urls(name) ?? []).map((url): FacilitatorConfig => {
    const cdp = new URL(url).hostname === CDP_HOST ? cdpKeyOf(read) : undefined;
    return { kind: 'http', url, ...(cdp && { cdp }) };
  });
  return { facilitators, everyMs };
}

/** The key pair and the limits of the embedded facilitator. */
export function readFeePayer(read: SettingReader): FeePayerConfig {
  const lamports = (name: string, fallback: number, least: number): bigint =>
    BigInt(read.integer(name, fallback, least, 9_999_999_999));
  return {
    keyPair: keyPairOf(read, 'FEE_PAYER_KEYPAIR'),
    second: keyPairOf(read, 'FEE_PAYER_SECOND_KEYPAIR'),
    limits: {
      // An account without data must keep 890 880 lamports.
      floor: lamports('FEE_PAYER_FLOOR', 10_000_000, 1_000_000),
      hourlyCap: lamports('FEE_PAYER_HOURLY_CAP', 500_000_000, 30_000),
    },
  };
}

function facilitatorOf(read: SettingReader, entry: string, prefix: string): FacilitatorConfig[] {
  if (entry === 'embedded') return [{ kind: 'embedded' }];
  const url = read.checkUrl('FACILITATOR_URL', entry);
  const header = headerOf(read, `${prefix}_HEADER`);
  const rate = read.integer(`${prefix}_RATE`, 0, 1, MAX_RATE);
  if (url === undefined) return [];
  const cdp = new URL(url).hostname === CDP_HOST ? cdpKeyOf(read) : undefined;
  return [{ kind: 'http', url, ...(header && { header }), ...(rate > 0 && { rate }), ...(cdp && { cdp }) }];
}

/** Reports numbered settings that would be ignored, because the entry with that number is missing or is `embedded`. */
function checkNumbers(read: SettingReader, entries: string[]): void {
  for (const name of read.names()) {
    const [, number] = /^FACILITATOR_(\d+)_(?:HEADER|RATE)$/.exec(name) ?? [];
    const entry = number === undefined ? '' : entries[Number(number) - 1];
    if (entry !== undefined && entry !== 'embedded') continue;
    if (read.text(name) !== undefined) read.fault(`${name}: FACILITATOR_URL has no URL with this number`);
  }
}

function headerOf(read: SettingReader, name: string): { name: string; value: string } | undefined {
  const text = read.text(name);
  if (text === undefined) return undefined;
  const [, header, value] = /^([\w-]+):([\x20-\x7e]+)$/.exec(text) ?? [];
  if (header !== undefined && value?.trim()) return { name: header.toLowerCase(), value: value.trim() };
  read.fault(`${name}: must be a header such as "Authorization: Bearer …"`);
  return undefined;
}

function cdpKeyOf(read: SettingReader): { id: string; secret: string } | undefined {
  const [id, secret] = [read.text('CDP_API_KEY_ID'), read.text('CDP_API_KEY_SECRET')];
  if (id !== undefined && secret !== undefined) return { id, secret };
  read.fault(`CDP_API_KEY_ID and CDP_API_KEY_SECRET: must be set for the facilitator at ${CDP_HOST}`);
  return undefined;
}

/** The key pair in the file that a setting names. */
export function keyPairOf(read: SettingReader, name: string): KeyPair | undefined {
  const file = read.text(name);
  if (file === undefined) return undefined;
  try {
    return readKeyPairFile(resolve(file));
  } catch (error) {
    if (!(error instanceof KeyPairFault)) throw error;
    read.fault(`${name}: ${file} is not usable: ${error.message}`);
    return undefined;
  }
}
