import type { Log } from '../net/log.js';
import type { Ledger } from '../ledger/store.js';

/** Whether the facilitator's word is enough. Once it lied, every success is looked up on chain before the answer goes out. */
export type FacilitatorTrust = { readonly facilitatorLied: boolean };

/** What the ledger knows of a facilitator's word, shared by all servers on it and kept across restarts. */
export type StoredFacilitatorTrust = FacilitatorTrust & {
  /** The facilitator lied. Counts here at once; resolves when the other servers and later starts will know it, too. */
  distrust(): Promise<void>;
  /** Learns what other servers found out. */
  refresh(): Promise<void>;
};

/** @param facilitatorUrl whose word it is; credentials in it are kept out of ledger and log */
export async function loadFacilitatorTrust(
  ledger: Pick<Ledger, 'getMeta' | 'setMeta'>,
  facilitatorUrl: string,
  log: Log,
): Promise<StoredFacilitatorTrust> {
  const { host, pathname } = new URL(facilitatorUrl);
  const key = `facilitator-lied ${host}${pathname}`;
  let lied = false;
  const trust: StoredFacilitatorTrust = {
    get facilitatorLied() {
      return lied;
    },
    async distrust() {
      lied = true;
      await ledger.setMeta(key, new Date().toISOString());
    },
    async refresh() {
      if (lied || (await ledger.getMeta(key)) === undefined) return;
      lied = true;
      const facilitator = host + pathname;
      log.warn(
        { facilitator },
        'this facilitator once reported a settlement that never happened: its word is checked',
      );
    },
  };
  await trust.refresh();
  return trust;
}
