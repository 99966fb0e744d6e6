import { OwedRefunds } from '../operator/refund-owed.js';
import { RefundWatch } from '../operator/refund-watch.js';
import { LEAST_KEPT } from '../operator/refund-transaction.js';
import { serversAt } from '../operator/refund-with-key.js';
import type { Base } from './base.js';
import type { Offering } from './offering.js';

/**
 * Continues refunds that operators started and, if configured, refunds orders that were given up. @returns undefined if that is not configured
 */
export function openRefunds(base: Base, { ledger, chain }: Offering): OwedRefunds | undefined {
  const { terms, endpoints, config, log, disposers } = base;
  const servers = serversAt(endpoints.rpcUrls, terms.network);
  const parts = { ledger, chain, servers, mint: terms.asset, log };
  const watch = new RefundWatch(parts);
  const { refunds, feePayer } = config;
  const own = feePayer.keyPair;
  const owed =
    refunds &&
    new OwedRefunds({
      ...parts,
      policy: refunds,
      floor: refunds.floor,
      wallet: {
        keyPair: refunds.keyPair,
        feePayer: own ?? refunds.keyPair,
        floor: own ? feePayer.limits.floor : LEAST_KEPT,
      },
    });
  watch.start();
  owed?.start();
  disposers.unshift(async () => {
    await Promise.all([watch.stop(), owed?.stop()]);
    await Promise.all(servers.map(each => each.close()));
  });
  return owed;
}
