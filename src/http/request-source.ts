import { isIPv6 } from 'node:net';

const GROUPS_OF_64_BITS = 4;
const GROUPS = 8;
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
/** A mapped IPv4 address in the form that `URL` normalises it to. */
const MAPPED_HEX = /^::ffff:([\da-f]+):([\da-f]+)$/;

/**
 * The source that an address counts as: an IPv4 address itself, or the /64 of an IPv6 address, because one caller usually owns a whole /64.
 * All spellings of an address are one source.
 */
export function sourceOf(address: string | undefined): string {
  if (address === undefined || !isIPv6(address)) return address ?? '';
  const mapped = MAPPED_IPV4.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [bare = ''] = address.split('%', 1);
  const written = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  const [, high, low] = MAPPED_HEX.exec(written) ?? [];
  if (high !== undefined && low !== undefined) return dotted(parseInt(high, 16), parseInt(low, 16));
  const [head = '', tail] = written.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : GROUPS - before.length - after.length;
  return [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, GROUPS_OF_64_BITS).join(':');
}

function dotted(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
