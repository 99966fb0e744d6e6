/** 32 bytes as a string of as many Latin-1 characters: compared, hashed and looked up at once, and cheaper than base58 by far. */
export type Key = string;

export type Instruction = { program: number; accounts: Buffer; data: Buffer };

/**
 * A Solana transaction, legacy or of version 0. `accounts`, `data` and `message` are views of the bytes it was read from. Indexes
 * are as they were written: `isSane` says whether they point at anything.
 */
export type SolanaTransaction = {
  version: 'legacy' | 0;
  /** How many there are: 64 bytes each, from the second byte on. */
  signatures: number;
  /** What the signatures cover. */
  message: Buffer;
  readonlySigners: number;
  readonlyOthers: number;
  keys: Key[];
  blockhash: Key;
  instructions: Instruction[];
  lookups: { table: Key; writable: Buffer; readonly: Buffer }[];
};

/** The bytes are no transaction that we read, or not in the one encoding that we accept. */
export class MessageFault extends Error {}

const SIGNATURE_BYTES = 64;
const KEY_BYTES = 32;
const VERSIONED = 0x80;
/** A transaction of version 1 begins with its message, and that with its version. */
const VERSION_1 = 0x81;

const undecodable = (): MessageFault => new MessageFault('cannot be decoded as a Solana transaction');

/**
 * Reads a whole transaction in one pass. Trailing bytes and lengths longer than they need be are refused as they are met, so that
 * there is one encoding of each message, and nothing has to be encoded again to know.
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
  // Each signer has its slot, signed or not.
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
 * Whether everything that the transaction points at is there, as the runtime demands of it before it looks at anything else. Only for
 * transactions without lookup tables.
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

  /** A compact-u16: seven bits to a byte, the lowest first, in as few bytes as it takes. */
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

  /** Where the bytes begin that it passes over. */
  skip(length: number): number {
    const start = this.at;
    this.at += length;
    if (this.at > this.#bytes.length) throw undecodable();
    return start;
  }

  /** As many bytes as the length before them says. */
  bytes(): Buffer {
    const start = this.skip(this.length());
    return this.#bytes.subarray(start, this.at);
  }

  key(): Key {
    const start = this.skip(KEY_BYTES);
    return this.#bytes.toString('latin1', start, this.at);
  }

  /** As many items as the length before them says: an item takes at least a byte, so their number is bounded by the bytes. */
  list<T>(item: () => T): T[] {
    const items: T[] = [];
    for (let left = this.length(); left > 0; left--) items.push(item());
    return items;
  }
}
