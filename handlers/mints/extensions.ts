import type { Entries, Entry } from './entries.js';
import { controls } from './controls.js';
import { display } from './display.js';
import type { MintFacts } from './mint.js';
import { toAddress } from 'coinslot';
import { addressOrNull, type Describers, type Description } from './describer.js';
import type { MintExtensions, Said } from './mint-extensions.js';

export type Described = { extensions: MintExtensions; sentences: string[] };

const DESCRIBERS: Describers = { ...controls, ...display };
/**
 * An extension that is newer than the package. It holds one address (`extension/permissioned_burn/mod.rs` of spl-token-2022-interface
 * 3.1.2).
 */
const PERMISSIONED_BURN = 28;
const ADDRESS_BYTES = 32;
/** The package does not define the fields of this extension: two ciphertexts of 64 bytes, one of 36, and a key. */
const CONFIDENTIAL_MINT_BURN = 24;
const CONFIDENTIAL_MINT_BURN_BYTES = 196;
const TOKEN_METADATA = 19;

type Decode = (entry: Entry, mint: MintFacts) => Description | undefined;

/** Loads the package, which takes 0.1 s and 20 MB, when the first mint with extensions is described. */
async function loadDecoder(): Promise<Decode> {
  const { getExtensionCodec } = await import('@solana-program/token-2022');
  const codec = getExtensionCodec();
  return ({ type, value }, mint) => {
    const bytes = Buffer.alloc(4 + value.length);
    bytes.writeUInt16LE(type, 0);
    bytes.writeUInt16LE(value.length, 2);
    value.copy(bytes, 4);
    const extension = codec.decode(bytes);
    const describe = DESCRIBERS[extension.__kind] as
      ((decoded: typeof extension, mint: MintFacts) => Description) | undefined;
    // The package ignores any bytes after the fields of an extension. Metadata has no fixed size.
    const whole = type === TOKEN_METADATA || codec.encode(extension).length === bytes.length;
    return whole ? describe?.(extension, mint) : undefined;
  };
}

/** Extensions that the package cannot read. */
function decodeHere({ type, value }: Entry): Description | undefined {
  if (type === PERMISSIONED_BURN && value.length === ADDRESS_BYTES) {
    const authority = addressOrNull(toAddress(value));
    const sentence =
      authority === null
        ? 'Holders can burn their own tokens; nobody has to agree.'
        : `Tokens can be burnt only if ${authority} agrees.`;
    return { permissionedBurn: { authority, sentence } };
  }
  if (type !== CONFIDENTIAL_MINT_BURN || value.length !== CONFIDENTIAL_MINT_BURN_BYTES) return undefined;
  const sentence =
    'Tokens can be minted and burnt in encrypted amounts: the supply given here does not count them, and the true supply cannot be read from the chain.';
  return { confidentialMintBurn: { sentence } };
}

function tryToDecode(decode: Decode, entry: Entry, mint: MintFacts): Description | undefined {
  if (entry.type === PERMISSIONED_BURN || entry.type === CONFIDENTIAL_MINT_BURN) return decodeHere(entry);
  try {
    return decode(entry, mint);
  } catch {
    // If the package cannot decode an extension, only its number is reported.
    return undefined;
  }
}

function sentencesOf(extensions: Description): string[] {
  return Object.values(extensions).map(({ sentence }) => sentence);
}

/**
 * Describes every extension of a mint. An extension that is not known, belongs to token accounts, or has bytes that the program would not
 * store appears with its number in `unknown`. Bytes that form no extension are counted in `unreadable`. Never throws because of the
 * bytes.
 */
export async function describeEntries({ entries, unreadable }: Entries, mint: MintFacts): Promise<Described> {
  const decode = await loadDecoder();
  const described: Described = { extensions: {}, sentences: [] };
  const unknown: Said<{ type: number; bytes: number }>[] = [];
  for (const entry of entries) {
    const description = tryToDecode(decode, entry, mint);
    if (description === undefined) unknown.push(unknownEntry(entry));
    else {
      Object.assign(described.extensions, description);
      described.sentences.push(...sentencesOf(description));
    }
  }
  addUnread(described, unknown, unreadable);
  return described;
}

function unknownEntry({ type, value: { length } }: Entry): Said<{ type: number; bytes: number }> {
  const sentence = `Extension number ${type} (${length} bytes) is unknown here: its effects were not checked.`;
  return { type, bytes: length, sentence };
}

/** At most this many unknown extensions are listed; the rest count as unreadable. */
const MAX_UNKNOWN = 32;

function addUnread(
  described: Described,
  unknown: Said<{ type: number; bytes: number }>[],
  unreadable: number,
): void {
  const listed = unknown.slice(0, MAX_UNKNOWN);
  if (listed.length > 0) {
    described.extensions.unknown = listed;
    described.sentences.push(...listed.map(({ sentence }) => sentence));
  }
  const bytes = unreadable + unknown.slice(MAX_UNKNOWN).reduce((sum, entry) => sum + entry.bytes + 4, 0);
  if (bytes === 0) return;
  const sentence = `The last ${bytes} bytes of its extensions could not be read: there may be more extensions than those given here.`;
  described.extensions.unreadable = { bytes, sentence };
  described.sentences.push(sentence);
}
