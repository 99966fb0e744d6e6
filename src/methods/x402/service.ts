import type { Contract } from '../../contract/contract.js';
import { objectOf } from '../../contract/references.js';

/** How this service presents itself in the challenges (x402 v2 ResourceInfo) and documents. */
export type Service = {
  /** At most 32 printable ASCII characters. */
  name: string;
  iconUrl: string;
};

/** x402's limits for the length of `serviceName` and of each tag, and for the number of tags. */
const MAX_NAME = 32;
const MAX_TAGS = 5;

/** The server's default icon. */
export const ICON_PATH = '/icon.png';

/**
 * The service as `info` in the contract describes it: its title, and the icon in `x-logo.url` if there is
 * one.
 */
export function serviceOf({ document }: Contract, publicUrl: string): Service {
  const { title, 'x-logo': logo } = objectOf(document.info);
  const { url } = objectOf(logo);
  const icon = typeof url === 'string' ? url : ICON_PATH;
  return {
    name: printable(String(title)) ?? new URL(publicUrl).hostname.slice(0, MAX_NAME),
    iconUrl: URL.canParse(icon) ? icon : publicUrl + icon.replace(/^(?!\/)/, '/'),
  };
}

/** The tags of an operation, limited in number and length by x402. */
export function tagsOf(tags: readonly string[]): string[] {
  return tags.flatMap(tag => printable(tag) ?? []).slice(0, MAX_TAGS);
}

/** The text reduced to the characters and the length that x402 accepts; undefined if nothing is left. */
function printable(text: string): string | undefined {
  const kept = text
    .normalize('NFKD')
    .replace(/[^\x20-\x7e]/g, '')
    .trim()
    .slice(0, MAX_NAME)
    .trim();
  return kept || undefined;
}
