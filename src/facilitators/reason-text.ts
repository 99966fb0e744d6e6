const MAX_REASON = 300;

/** Reduces somebody else's text, which goes into answers and headers, to one bounded line of printable ASCII. */
export function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, MAX_REASON);
}
