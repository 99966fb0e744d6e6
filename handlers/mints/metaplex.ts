import { type Account, programAddress, readAddress, toAddress } from 'coinslot';
import { cleanName, cleanSymbol, cleanUri } from './clean-text.js';

/**
 * The contents of Metaplex's account for a mint: the issuer's own texts, cleaned. `updateAuthority` can change them while `mutable` is
 * true; once it is false, nobody ever can.
 */
export type Metadata = {
  address: string;
  name: string | null;
  symbol: string | null;
  uri: string | null;
  mutable: boolean;
  updateAuthority: string;
  sentence: string;
};

const METADATA_PROGRAM = 'metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s';
/** The first byte of a metadata account in version 1, the only version. */
const METADATA_V1 = 4;
/** The account has room for names of 32 bytes, symbols of 10 and URIs of 200; a longer account is not metadata. */
const MAX_TEXT_BYTES = 1_000;
const MAX_CREATORS = 64;
const CREATOR_BYTES = 34;
const ADDRESS_BYTES = 32;

/**
 * The address of a mint's metadata at Metaplex. It is derived from the mint's address, so the mint and its metadata can be read together.
 */
export function metadataAddress(mint: string): string {
  const program = bytesOf(METADATA_PROGRAM);
  return toAddress(programAddress([Buffer.from('metadata'), program, bytesOf(mint)], program));
}

/**
 * Decodes the account (`Metadata` in mpl-token-metadata's `accounts/metadata.rs`, Borsh), up to the last needed flag. The generated
 * client would add a second account framework and save only thirty lines. Null if the account is not the metadata of this mint, or cannot
 * be read.
 */
export function readMetadata(account: Account | null, mint: string): Metadata | null {
  if (account?.owner !== METADATA_PROGRAM || account.data[0] !== METADATA_V1) return null;
  try {
    return decode(account.data, mint);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function decode(data: Buffer, mint: string): Metadata | null {
  let at = 1;
  const take = (bytes: number): Buffer => {
    if (at + bytes > data.length) throw new RangeError('cut off');
    at += bytes;
    return data.subarray(at - bytes, at);
  };
  const text = (): string => {
    const bytes = take(4).readUInt32LE();
    if (bytes > MAX_TEXT_BYTES) throw new RangeError('a text that the program would not store');
    return take(bytes).toString('utf8');
  };
  const updateAuthority = toAddress(take(ADDRESS_BYTES));
  if (toAddress(take(ADDRESS_BYTES)) !== mint) return null;
  const [name, symbol, uri] = [cleanName(text()) ?? null, cleanSymbol(text()) ?? null, cleanUri(text())];
  // The royalty, which has no meaning for fungible tokens.
  take(2);
  if (take(1)[0] !== 0) {
    const creators = take(4).readUInt32LE();
    if (creators > MAX_CREATORS) throw new RangeError('creators that the program would not store');
    take(creators * CREATOR_BYTES);
  }
  // Whether the primary sale has happened, which has no meaning for fungible tokens.
  take(1);
  const mutable = take(1)[0] !== 0;
  const sentence = sentenceOf({ name, symbol, mutable, updateAuthority });
  return { address: metadataAddress(mint), name, symbol, uri, mutable, updateAuthority, sentence };
}

type Named = Pick<Metadata, 'name' | 'symbol' | 'mutable' | 'updateAuthority'>;

function sentenceOf({ name, symbol, mutable, updateAuthority }: Named): string {
  const change = mutable
    ? `${updateAuthority} can change the name and the symbol.`
    : 'Nobody can change the name or the symbol, now or later.';
  return `Metaplex's metadata calls it ${called(name, symbol)}; anyone can choose the same name. ${change}`;
}

/** `“Jupiter” (JUP)`; a name cannot close the quotation. */
function called(name: string | null, symbol: string | null): string {
  const quoted = name === null ? 'nothing' : `“${name.replace(/[“”]/g, "'")}”`;
  return symbol === null ? quoted : `${quoted} (${symbol})`;
}

const bytesOf = (address: string): Buffer => readAddress(address) ?? Buffer.alloc(0);
