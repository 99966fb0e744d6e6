const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;

/**
 * Whether JSON has more than `most` members, counted without parsing it: the members of all objects and arrays, plus the objects and
 * arrays themselves. Takes time linear in the number of bytes; strings are skipped. Invalid JSON is left to the parser.
 */
export function hasMoreMembers(bytes: Buffer, most: number): boolean {
  let members = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === COMMA || byte === OPEN_BRACKET || byte === OPEN_BRACE) members += 1;
    if (members > most) return true;
  }
  return false;
}

/** The index of the quote that ends the string that begins at `start`; the length of the bytes if it does not end. */
export function endOfString(bytes: Buffer, start: number): number {
  const end = bytes.indexOf(QUOTE, start + 1);
  if (end < 0) return bytes.length;
  // A string may have millions of escaped quotes, and a search for each would cost as much as reading dozens of bytes.
  return bytes[end - 1] === BACKSLASH ? endOfEscaped(bytes, start) : end;
}

function endOfEscaped(bytes: Buffer, start: number): number {
  for (let index = start + 1; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === BACKSLASH) index += 1;
    else if (byte === QUOTE) return index;
  }
  return bytes.length;
}
