import type { IncomingHttpHeaders } from 'node:http';
import { hostnameOf, isAddress, isLocal } from '../net/host-names.js';

/** The names of this server and its site. `trustedProxies`: how many proxies in front are trusted to name the callers. */
export type OwnHosts = { publicUrl: string; siteUrl: string; trustedProxies: number };

/**
 * The reason to refuse a request that may come from a web page using DNS rebinding, or undefined. Such a page needs a host name, so IP
 * addresses in `Host` are harmless. A trusted proxy may name the host that its caller asked for in `X-Forwarded-Host`; a page that writes
 * that header itself is still refused for its `Origin`. Pages of this server, of its site and of the same machine are allowed.
 */
export function foreignHost(
  { host, origin, 'x-forwarded-host': forwarded }: IncomingHttpHeaders,
  { publicUrl, siteUrl, trustedProxies }: OwnHosts,
): string | undefined {
  const own = new URL(publicUrl).hostname;
  const named =
    trustedProxies > 0
      ? [
          host,
          String(forwarded ?? '')
            .split(',')
            .at(-1),
        ]
      : [host];
  if (!named.some(each => isOwn(each, own)))
    return (
      `The Host header names ${shown(host)}, which is not this server: use ${publicUrl}/mcp. ` +
      'If you called that host, the operator of this server has to set PUBLIC_URL, or its proxy has to pass on the Host of its callers ' +
      '(nginx: proxy_set_header Host $host), or X-Forwarded-Host with TRUST_PROXY set to the number of proxies.'
    );
  if (origin === undefined) return undefined;
  const page = hostnameOf(origin);
  const welcome = page !== undefined && (isLocal(page) || page === own || page === new URL(siteUrl).hostname);
  return welcome ? undefined : `Web pages from ${shown(origin)} may not call this server.`;
}

function isOwn(host: string | undefined, own: string): boolean {
  const name = hostnameOf(`http://${(host ?? '').trim()}`);
  return name !== undefined && (isAddress(name) || isLocal(name) || name === own);
}

function shown(text = 'nothing'): string {
  return text.slice(0, 100);
}
