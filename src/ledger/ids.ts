/** Payment ids are 32 bytes in the tables, and 64 lower-case hex digits everywhere else. */
export type IdBytes = Uint8Array | ArrayBuffer;

const NO_ID = Buffer.alloc(0);

/** @returns the id's bytes; for text that is not an id, an empty buffer, which no payment has and which sorts first */
export function idBytes(id: string): Buffer {
  return /^[0-9a-f]{64}$/.test(id) ? Buffer.from(id, 'hex') : NO_ID;
}

export function idOf(bytes: IdBytes): string {
  return bytesOf(bytes).toString('hex');
}

/** libsql returns an ArrayBuffer, pg a Buffer. */
export function bytesOf(value: IdBytes): Buffer {
  return value instanceof ArrayBuffer
    ? Buffer.from(value)
    : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}
