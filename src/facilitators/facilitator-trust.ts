import type { Log } from '../net/log.js';
import type { Ledger } from '../ledger/store.js';
import type { Facilitators } from './facilitators.js';

/** Once a facilitator has reported a false settlement, each of its successes is looked up on chain before the answer is sent. */
export type FacilitatorTrust = {
  /** Whether the facilitator that pays with this fee payer has ever done so. True if that facilitator is not known. */
  lied(feePayer: string): boolean;
};

/** The trust in each facilitator as stored in the ledger: shared by all servers, kept across restarts. */
export type StoredFacilitatorTrust = FacilitatorTrust & {
  /** Whether the facilitator of this name has ever done so. */
  isLiar(name: string): boolean;
  /**
   * Records a false report of the facilitator with this fee payer. It takes effect here at once and resolves once the ledger has it for
   * other servers and later starts.
   */
  distrust(feePayer: string): Promise<void>;
  /** Reads what other servers have recorded. */
  refresh(): Promise<void>;
};

export async function loadFacilitatorTrust(
  ledger: Pick<Ledger, 'getMeta' | 'setMeta'>,
  facilitators: Pick<Facilitators, 'names' | 'nameOf' | 'findName'>,
  log: Log,
): Promise<StoredFacilitatorTrust> {
  const liars = new Set<string>();
  const trust: StoredFacilitatorTrust = {
    lied(feePayer) {
      const name = facilitators.nameOf(feePayer);
      return name === undefined || liars.has(name);
    },
    isLiar: name => liars.has(name),
    async distrust(feePayer) {
      const facilitator = facilitators.nameOf(feePayer) ?? (await facilitators.findName(feePayer));
      if (facilitator === undefined) {
        log.error({ feePayer }, 'a facilitator that is no longer in FACILITATOR_URL reported it');
        return;
      }
      liars.add(facilitator);
      await ledger.setMeta(keyOf(facilitator), new Date().toISOString());
    },
    async refresh() {
      for (const facilitator of facilitators.names) {
        if (liars.has(facilitator) || (await ledger.getMeta(keyOf(facilitator))) === undefined) continue;
        liars.add(facilitator);
        log.warn(
          { facilitator },
          'this facilitator once reported a settlement that never happened: every settlement of it is checked on chain',
        );
      }
    },
  };
  await trust.refresh();
  return trust;
}

function keyOf(facilitator: string): string {
  return `facilitator-lied ${facilitator}`;
}
