import type { Extension } from '@solana-program/token-2022';
import { readAddress, SYSTEM_PROGRAM } from 'coinslot';
import type { MintExtensions } from './mint-extensions.js';
import type { MintFacts } from './mint.js';

/** The description of one extension: its fields and a sentence about them, under the extension's name. */
export type Description = Omit<MintExtensions, 'unknown' | 'unreadable'>;

type ExtensionOf<K extends Extension['__kind']> = Extract<Extension, { __kind: K }>;

/** One function per extension of mints. Each throws `RangeError` if the values are ones that the program would never store. */
export type Describers = {
  [K in Extension['__kind']]?: (extension: ExtensionOf<K>, mint: MintFacts) => Description;
};

/** An address as the package decodes it; null if it is all zeros, which Token-2022 writes for "none". */
export function addressOrNull(address: string | { __option: 'None' } | { __option: 'Some'; value: string }) {
  const found =
    typeof address === 'string' ? address : address.__option === 'Some' ? address.value : SYSTEM_PROGRAM;
  return found === SYSTEM_PROGRAM ? null : found;
}

/** A public key of an encryption scheme, which is not an address: base64, as RPC servers write it. */
export function encryptionKey(key: string | null): string | null {
  return key === null ? null : (readAddress(key) ?? Buffer.alloc(0)).toString('base64');
}
