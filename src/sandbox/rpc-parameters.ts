import type { AccountEncoding } from './rpc-encoding.js';
import type { DataSlice } from './rpc-encoding.js';
import type { Commitment } from './chain.js';
import { isSignature } from './wire-transaction.js';
import { readAddress } from '../rails/solana/address.js';
import { RpcFault } from './rpc-fault.js';

export type Settings = { [name: string]: unknown };

export type Params = unknown[];

export function address(params: Params, at: number): string {
  const value = text(params, at);
  if (readAddress(value) === undefined)
    throw new RpcFault(-32602, 'Invalid param: not an address (32 bytes in base58)');
  return value;
}

export function signatureOrNone(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isSignature(value)) throw new RpcFault(-32602, 'Invalid param: not a signature (64 bytes in base58)');
  return value;
}

export function settings(params: Params, at: number): Settings {
  const value = params[at] ?? {};
  if (typeof value !== 'object' || Array.isArray(value))
    throw new RpcFault(-32602, `Invalid params: [${at}] is not an object`);
  return value as Settings;
}

export function text(params: Params, at: number): string {
  const value = params[at];
  if (typeof value !== 'string') throw new RpcFault(-32602, `Invalid params: [${at}] must be a string`);
  return value;
}

export function count(params: Params, at: number, max = Number.MAX_SAFE_INTEGER): number {
  const value = params[at];
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > max) {
    throw new RpcFault(-32602, `Invalid params: [${at}] must be a whole number from 0 to ${max}`);
  }
  return value;
}

export function list(params: Params, at: number, max: number): unknown[] {
  const value = params[at];
  if (!Array.isArray(value)) throw new RpcFault(-32602, `Invalid params: [${at}] must be a list`);
  if (value.length > max) throw new RpcFault(-32602, `Too many inputs provided; max ${max}`);
  return value as unknown[];
}

export function commitmentOf(config: Settings): Commitment {
  switch (config['commitment'] ?? 'finalized') {
    case 'processed':
    case 'recent':
      return 'processed';
    case 'confirmed':
    case 'single':
    case 'singleGossip':
      return 'confirmed';
    case 'finalized':
    case 'max':
    case 'root':
      return 'finalized';
    default:
      throw new RpcFault(-32602, 'Invalid params: commitment must be processed, confirmed or finalized');
  }
}

export function encodingOf(config: Settings): { encoding: AccountEncoding; slice?: DataSlice } {
  const encoding = config['encoding'] ?? 'binary';
  const known: unknown[] = [
    'binary',
    'base58',
    'base64',
    'base64+zstd',
    'jsonParsed',
  ] satisfies AccountEncoding[];
  if (!known.includes(encoding)) throw new RpcFault(-32602, 'Invalid params: unknown encoding');
  const slice = config['dataSlice'] as { offset?: unknown; length?: unknown } | null | undefined;
  if (typeof slice !== 'object' || slice === null) return { encoding: encoding as AccountEncoding };
  const [offset, length] = [count([slice.offset], 0), count([slice.length], 0)];
  return { encoding: encoding as AccountEncoding, slice: { offset, length } };
}
