import { isIP } from 'node:net';
import type { NetworkName } from '../rails/solana/networks.js';
import { withAbortAfter } from '../net/deadline.js';
import { hangUpIsTold } from '../net/hang-up.js';
import { bareHost, isPublicAddress } from '../net/public-addresses.js';
import type { Check, Finding } from './preflight.js';

/**
 * Host names that resolve only within a home, an office or a cluster (RFC 6761, 6762, 8375, and ICANN's
 * .internal).
 */
const PRIVATE_NAME = /(^|\.)(localhost|local|internal|lan|home\.arpa)$/;
const REACH_MS = 5_000;

/** Requests a URL. Rejects if nothing answers. */
export type Reach = (url: string, signal: AbortSignal) => Promise<void>;

/**
 * Whether agents on the Internet can use this URL. On mainnet it must be https with a public host; on devnet, a testing network, this is
 * only a warning.
 * @param reach if given, it also requests the URL from this machine. This proves little: the server may not run yet, and the network may
 * block requests from its own machines
 */
export function publicUrlCheck(publicUrl: string, network: NetworkName, reach?: Reach): Check {
  const subject = 'PUBLIC_URL';
  return {
    subject,
    async look(signal) {
      const fault = network === 'sandbox' ? undefined : publicUrlFault(new URL(publicUrl));
      if (fault) {
        const level = network === 'mainnet' ? 'error' : 'warning';
        const todo = 'set it to the https URL at which agents reach this server';
        return [{ level, subject, found: `${publicUrl} ${fault}`, todo }];
      }
      const note = reach ? await noteOf(reach, publicUrl, signal) : '';
      return [{ level: 'ok', subject, found: `${publicUrl}${note}` } satisfies Finding];
    },
  };
}

/** Why agents on the Internet can't use this URL, as the end of a sentence that begins with the URL. */
export function publicUrlFault({ protocol, hostname }: URL): string | undefined {
  if (protocol !== 'https:')
    return 'is not https: anyone on the network path could read and change payments and answers';
  const host = bareHost(hostname).replace(/\.$/, '');
  if (isIP(host))
    return isPublicAddress(host) ? undefined : 'is a private address, which agents cannot reach';
  if (!host.includes('.') || PRIVATE_NAME.test(host))
    return 'is not a public host name, so agents cannot reach it';
  return undefined;
}

/** Whether the server notices callers who hang up, even behind a proxy. No finding if that can't be known. */
export function hangUpCheck(publicUrl: string, isTold = hangUpIsTold): Check {
  const subject = 'PUBLIC_URL';
  return {
    subject,
    async look(signal) {
      const told = await isTold(publicUrl, signal);
      if (told === undefined) return [];
      if (told) return [{ level: 'ok', subject, found: 'the server notices a caller who hangs up' }];
      const found = 'a proxy in front does not pass on hang-ups, so buyers who have hung up are charged';
      const todo = 'compare its configuration with the files in ops/ (docs/explanation/promises.md, Proxies)';
      return [{ level: 'warning', subject, found, todo }];
    },
  };
}

async function noteOf(reach: Reach, publicUrl: string, signal: AbortSignal): Promise<string> {
  try {
    await withAbortAfter(REACH_MS, signal, bounded => reach(publicUrl, bounded));
    return ' answers';
  } catch {
    return ' does not answer requests from this machine (which is normal while no server is running)';
  }
}
