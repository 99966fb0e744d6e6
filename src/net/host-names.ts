import { isIP } from 'node:net';

/** The host of a URL, without its port; undefined if it is not a URL with a host. */
export function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname || undefined : undefined;
}

/** Whether a host is an IP address. A web page that uses DNS rebinding has a host name, not an address. */
export function isAddress(name: string): boolean {
  return isIP(name.replace(/^\[|\]$/g, '')) !== 0;
}

/** Whether a host names this machine. */
export function isLocal(name: string): boolean {
  return /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(name);
}

/** A host in the form that URLs use: IPv6 addresses are in brackets. */
export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
