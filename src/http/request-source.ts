import { isIPv6 } from 'node:net';

const GROUPS_OF_64_BITS = 4;
const GROUPS = 8;
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** The source that an address counts as: an IPv4 address, or the /64 of an IPv6 address, because one caller usually owns it. */
export function sourceOf(address: string | undefined): string {
  if (address === undefined || !isIPv6(address)) return address ?? '';
  const mapped = MAPPED_IPV4.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [bare = ''] = address.split('%', 1);
  const [head = '', tail] = bare.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : GROUPS - before.length - after.length;
  return [...before, ...Array<string>(Math.max(zeros, 0)).fill('0'), ...after]
    .slice(0, GROUPS_OF_64_BITS)
    .join(':');
}
