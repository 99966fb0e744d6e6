import type { IncomingHttpHeaders } from 'node:http';
import { hostnameOf, isAddress, isLocal } from '../net/host-names.js';

/** The names under which this server and its site are reached. */
export type OwnHosts = { publicUrl: string; siteUrl: string };

/**
 * Why a request may come from a web page that reaches this server under a name of its own (DNS rebinding), or undefined. Such a page
 * needs a name, so that addresses in `Host` are harmless. Pages of this service, of its site and of the same machine are welcome.
 */
export function foreignHost(
  { host, origin }: IncomingHttpHeaders,
  { publicUrl, siteUrl }: OwnHosts,
): string | undefined {
  const own = new URL(publicUrl).hostname;
  const name = hostnameOf(`http://${host ?? ''}`);
  if (name === undefined || !(isAddress(name) || isLocal(name) || name === own))
    return `The Host header names ${shown(host)}, which is not this server: use ${publicUrl}/mcp.`;
  if (origin === undefined) return undefined;
  const page = hostnameOf(origin);
  const welcome = page !== undefined && (isLocal(page) || page === own || page === new URL(siteUrl).hostname);
  return welcome ? undefined : `Web pages of ${shown(origin)} may not call this server.`;
}

function shown(text = 'nothing'): string {
  return text.slice(0, 100);
}
