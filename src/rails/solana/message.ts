/** 32 bytes as a string of 32 Latin-1 characters, which can be compared and used as a map key and is much cheaper than base58. */
export type Key = string;

export type Instruction = { program: number; accounts: Buffer; data: Buffer };

/**
 * A Solana transaction, legacy or of version 0. `accounts`, `data` and `message` are views of the bytes it was read from. Indexes
 * are as written in the transaction; `isSane` checks that they are in range.
 */
export type SolanaTransaction = {
  version: 'legacy' | 0;
  /** The number of signatures: 64 bytes each, starting at the second byte. */
  signatures: number;
  /** The bytes that the signatures cover. */
  message: Buffer;
  readonlySigners: number;
  readonlyOthers: number;
  keys: Key[];
  blockhash: Key;
  instructions: Instruction[];
  lookups: { table: Key; writable: Buffer; readonly: Buffer }[];
};

/** The bytes are not a supported transaction, or not in canonical encoding. */
export class MessageFault extends Error {}

const SIGNATURE_BYTES = 64;
const KEY_BYTES = 32;
const VERSIONED = 0x80;
/** The first byte of a transaction of version 1, which begins with the version of its message. */
const VERSION_1 = 0x81;

const undecodable = (): MessageFault => new MessageFault('cannot be decoded as a Solana transaction');

/**
 * Reads a transaction in one pass. Rejects trailing bytes and overlong lengths, so that each message has exactly one accepted encoding
 * and need not be encoded again to check it.
 * @throws MessageFault
 */
export function readTransaction(bytes: Buffer): SolanaTransaction {
  if (bytes[0] === VERSION_1) throw new MessageFault('must be of version 0 or legacy');
  const reader = new Reader(bytes);
  const signatures = reader.length();
  reader.skip(signatures * SIGNATURE_BYTES);
  const start = reader.at;
  const version = readVersion(reader);
  const signers = reader.byte();
  // Each signer has a slot, even if it has not signed.
  if (signers !== signatures) throw undecodable();
  const transaction = {
    version,
    signatures,
    message: bytes.subarray(start),
    readonlySigners: reader.byte(),
    readonlyOthers: reader.byte(),
    keys: reader.list(() => reader.key()),
    blockhash: reader.key(),
    instructions: reader.list(() => readInstruction(reader)),
    lookups: version === 0 ? reader.list(() => readLookup(reader)) : [],
  };
  if (reader.at !== bytes.length) throw new MessageFault('not in canonical encoding');
  return transaction;
}

/**
 * The bytes that the signatures of a landed transaction cover, whatever its version.
 * @throws MessageFault
 */
export function signedPartOf(bytes: Buffer): Buffer {
  const reader = new Reader(bytes);
  const signatures = reader.length();
  const message = bytes.subarray(SIGNATURE_BYTES * signatures + reader.at);
  if (signatures === 0 || message.length === 0) throw undecodable();
  return message;
}

/**
 * Whether all indexes of the transaction are in range, which the runtime checks first. Only for transactions without lookup tables.
 */
export function isSane(transaction: SolanaTransaction): boolean {
  const { signatures, readonlySigners, readonlyOthers } = transaction;
  const count = transaction.keys.length;
  if (readonlySigners >= signatures || signatures + readonlyOthers > count) return false;
  return transaction.instructions.every(
    ({ program, accounts }) => program > 0 && program < count && accounts.every(index => index < count),
  );
}

function readVersion(reader: Reader): 'legacy' | 0 {
  const prefix = reader.peek();
  if (prefix < VERSIONED) return 'legacy';
  if (prefix === VERSION_1) throw new MessageFault('must be of version 0 or legacy');
  if (prefix > VERSIONED) throw undecodable();
  reader.byte();
  return 0;
}

function readInstruction(reader: Reader): Instruction {
  return { program: reader.byte(), accounts: reader.bytes(), data: reader.bytes() };
}

function readLookup(reader: Reader): SolanaTransaction['lookups'][number] {
  return { table: reader.key(), writable: reader.bytes(), readonly: reader.bytes() };
}

class Reader {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  peek(): number {
    const byte = this.#bytes[this.at];
    if (byte === undefined) throw undecodable();
    return byte;
  }

  byte(): number {
    const byte = this.peek();
    this.at += 1;
    return byte;
  }

  /** Reads a compact-u16: seven bits per byte, lowest first, in as few bytes as possible. */
  length(): number {
    const first = this.byte();
    if (first < 0x80) return first;
    const second = this.byte();
    if (second === 0) throw new MessageFault('not in canonical encoding');
    if (second < 0x80) return (first & 0x7f) | (second << 7);
    const third = this.byte();
    if (third === 0) throw new MessageFault('not in canonical encoding');
    if (third > 3) throw undecodable();
    return (first & 0x7f) | ((second & 0x7f) << 7) | (third << 14);
  }

  /** Skips bytes. @returns the position at which they begin */
  skip(length: number): number {
    const start = this.at;
    this.at += length;
    if (this.at > this.#bytes.length) throw undecodable();
    return start;
  }

  /** Reads bytes with a length prefix. */
  bytes(): Buffer {
    const start = this.skip(this.length());
    return this.#bytes.subarray(start, this.at);
  }

  key(): Key {
    const start = this.skip(KEY_BYTES);
    return this.#bytes.toString('latin1', start, this.at);
  }

  /** Reads items with a length prefix. An item takes at least one byte, so the size of the transaction bounds their number. */
  list<T>(item: () => T): T[] {
    const items: T[] = [];
    for (let left = this.length(); left > 0; left--) items.push(item());
    return items;
  }
}
