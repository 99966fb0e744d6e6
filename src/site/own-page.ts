import type { IncomingHttpHeaders } from 'node:http';
import { isAddress } from '../net/host-names.js';

/**
 * The reason why a request does not come from a page of this server, or undefined. Only its own pages may spend from the sandbox wallet:
 * the browser must send an origin, which must be that of the public URL or the host of the request. In the second case the host must be
 * an IP address or localhost, because other sites can point their own host names to this server (DNS rebinding).
 */
export function foreignPage(
  { host = '', origin, 'sec-fetch-site': site }: IncomingHttpHeaders,
  publicUrl: string,
): string | undefined {
  if (origin === undefined)
    return 'Only pages of this server may use the sandbox wallet: Origin is missing. Programs pay with an x402 client and a wallet of their own.';
  if (site !== undefined && site !== 'same-origin') return refusal(origin);
  if (origin === new URL(publicUrl).origin) return undefined;
  const asked = `http://${host}`;
  if (!URL.canParse(asked) || origin !== new URL(asked).origin) return refusal(origin);
  return isNear(new URL(asked).hostname) ? undefined : refusal(origin);
}

function refusal(origin: string): string {
  return `Only pages of this server may use its sandbox wallet, not those of ${origin.slice(0, 100)}. Nothing was signed.`;
}

function isNear(name: string): boolean {
  return name === 'localhost' || isAddress(name);
}
