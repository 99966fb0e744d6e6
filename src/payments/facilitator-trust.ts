import type { Log } from '../net/log.js';
import type { Ledger } from '../ledger/store.js';

/** Once a facilitator has reported a false settlement, every success is looked up on chain before the answer is sent. */
export type FacilitatorTrust = { readonly facilitatorLied: boolean };

/** The trust in a facilitator as stored in the ledger: shared by all servers, kept across restarts. */
export type StoredFacilitatorTrust = FacilitatorTrust & {
  /** Records a false report. It takes effect here at once and resolves once the ledger has it for other servers and later starts. */
  distrust(): Promise<void>;
  /** Reads what other servers have recorded. */
  refresh(): Promise<void>;
};

/** @param facilitatorUrl its credentials are kept out of ledger and log */
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
        'this facilitator once reported a settlement that never happened: every settlement is checked on chain',
      );
    },
  };
  await trust.refresh();
  return trust;
}
