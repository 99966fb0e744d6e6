import { lookup as lookUp, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';

/** Not public: IANA's special-purpose registry for IPv4, multicast, and the one metadata service that has a public address. */
const SPECIAL_V4 = blockList('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]);
/** The only block of global unicast addresses. Mapped IPv4, NAT64, unique local and link-local addresses lie outside of it. */
const GLOBAL_V6 = blockList('ipv6', ['2000::/3']);
/** Parts of 2000::/3 that are not public: they are for tunnels, protocols and documentation. */
const SPECIAL_V6 = blockList('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** A connection was refused because its address is not public. */
class PrivateAddress extends Error {
  readonly code = 'ERR_PRIVATE_ADDRESS';

  constructor() {
    super('the address is private or reserved');
  }
}

function blockList(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** Whether an IP address, as text without brackets, is a public unicast address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !SPECIAL_V4.check(address, 'ipv4');
  return family === 6 && GLOBAL_V6.check(address, 'ipv6') && !SPECIAL_V6.check(address, 'ipv6');
}

/** The host of a URL without the brackets of an IPv6 address. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Whether a URL's host is private as written, without a look-up. */
export function isPrivateHost(hostname: string): boolean {
  const host = bareHost(hostname);
  return /(^|\.)localhost\.?$/.test(host) || (isIP(host) !== 0 && !isPublicAddress(host));
}

export type Resolver = (
  host: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * Opens connections to public addresses only. Each address is checked inside the look-up whose result the socket connects to, so a name cannot pass
 * the check with one address and then be connected to another. A name with several addresses is refused if one of them is private.
 */
export function publicConnector(timeoutMs: number, resolve: Resolver = lookUp): buildConnector.connector {
  const lookup: LookupFunction = (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error || !first) return callback(error ?? new PrivateAddress(), '', 0);
      if (!addresses.every(({ address }) => isPublicAddress(address)))
        return callback(new PrivateAddress(), '', 0);
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
  const connect = buildConnector({ timeout: timeoutMs, lookup });
  return (options, callback) => {
    // Sockets do not look up IP addresses, so these are checked here.
    const host = bareHost(options.hostname);
    if (isIP(host) !== 0 && !isPublicAddress(host)) return callback(new PrivateAddress(), null);
    connect(options, callback);
  };
}
