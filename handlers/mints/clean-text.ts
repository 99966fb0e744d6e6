/**
 * Cleans a text that a token's issuer chose: NFKC; control, format (direction marks, zero-width), private, unassigned and markup
 * characters removed; white space collapsed and trimmed; at most `max` UTF-16 units. Undefined if it is not a string or if nothing
 * is left.
 */
export function cleanText(value: unknown, max: number): string | undefined {
  if (typeof value !== 'string') return undefined;
  const plain = value
    .slice(0, 1_000)
    // NFKC first: it turns full-width angle brackets and similar characters into those removed below.
    .normalize('NFKC')
    .replace(/\s+/gu, ' ')
    .replace(/[\p{C}<>&"`{}[\]\\|]/gu, '')
    .replace(/ +/g, ' ')
    .trim();
  let kept = '';
  for (const character of plain) {
    if (kept.length + character.length > max) break;
    kept += character;
  }
  return kept.trim() || undefined;
}

export const cleanSymbol = (value: unknown) => cleanText(value, 32);
export const cleanName = (value: unknown) => cleanText(value, 64);

/** A URI in metadata: visible ASCII without characters that could end a quotation or a tag. */
const URI = /^[!#-;=?-[\]-_a-z~]{1,200}$/;

/** A URI that a token's issuer chose, without the zeros that pad it; null if it is not a URI. */
export function cleanUri(value: string): string | null {
  const uri = value.replaceAll('\0', '');
  return URI.test(uri) ? uri : null;
}
