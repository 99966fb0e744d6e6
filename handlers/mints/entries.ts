/** One extension as Token-2022 stores it: its type (`ExtensionType` in the program's `extension/mod.rs`) and its bytes. */
export type Entry = { type: number; value: Buffer };

/** The bytes after the account type of a mint. `unreadable` counts the bytes at the end that are not a whole entry. */
export type Entries = { entries: Entry[]; unreadable: number };

const HEAD_BYTES = 4;
/** Ends the list; the bytes after it are unused. */
const UNINITIALIZED = 0;

/**
 * Splits the extensions of a mint: each is preceded by two bytes for its type and two for its length, little-endian. A length is
 * accepted only if that many bytes are there, and a type only once, because the program itself never writes a type twice.
 */
export function splitEntries(data: Buffer): Entries {
  const entries: Entry[] = [];
  const seen = new Set<number>();
  let at = 0;
  while (data.length - at >= HEAD_BYTES) {
    const type = data.readUInt16LE(at);
    if (type === UNINITIALIZED) return { entries, unreadable: 0 };
    const end = at + HEAD_BYTES + data.readUInt16LE(at + 2);
    if (end > data.length || seen.has(type)) return { entries, unreadable: data.length - at };
    seen.add(type);
    entries.push({ type, value: data.subarray(at + HEAD_BYTES, end) });
    at = end;
  }
  const rest = data.subarray(at);
  return { entries, unreadable: rest.every(byte => byte === 0) ? 0 : rest.length };
}
