/**
 * Whether a request has a header. Takes the raw headers, because Node builds its header object on first access.
 * @param name in lower case
 */
export function hasHeader(rawHeaders: string[], name: string): boolean {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] ?? '';
    if (header.length === name.length && header.toLowerCase() === name) return true;
  }
  return false;
}
