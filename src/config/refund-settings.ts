import { toAtomic } from '../price/amount.js';
import type { KeyPair } from '../rails/solana/key-pair.js';
import { keyPairOf } from './facilitator-settings.js';
import type { SettingReader } from './setting-reader.js';

/**
 * Refunds owed orders with this key, a set time after they were given up: at most `dailyCap` in 24 hours, and always leaving `floor` in
 * the wallet. Atomic units of USDC.
 */
export type RefundConfig = { afterMs: number; keyPair: KeyPair; floor: bigint; dailyCap: bigint };

const MINUTE_MS = 60_000;
const MAX_MINUTES = 43_200;

/** `REFUND_OWED_AFTER` and the settings of its wallet. Undefined if it is not set: then only the operator refunds. */
export function readRefunds(read: SettingReader): RefundConfig | undefined {
  const keyPair = keyPairOf(read, 'REFUND_KEYPAIR');
  const [floor, dailyCap] = [usdcOf(read, 'REFUND_FLOOR'), usdcOf(read, 'REFUND_DAILY_CAP')];
  if (read.text('REFUND_OWED_AFTER') === undefined) return undefined;
  const afterMs = read.integer('REFUND_OWED_AFTER', 0, 0, MAX_MINUTES) * MINUTE_MS;
  read.demand(keyPair, 'REFUND_KEYPAIR', 'the file with the key pair of the wallet that refunds owed orders');
  read.demand(dailyCap, 'REFUND_DAILY_CAP', 'the most USDC that REFUND_OWED_AFTER refunds in 24 hours');
  if (!keyPair || dailyCap === undefined) return undefined;
  return { afterMs, keyPair, floor: floor ?? 0n, dailyCap };
}

function usdcOf(read: SettingReader, name: string): bigint | undefined {
  const text = read.text(name);
  if (text === undefined) return undefined;
  try {
    return toAtomic(text);
  } catch (error) {
    read.fault(`${name}: ${(error as Error).message}`);
    return undefined;
  }
}
