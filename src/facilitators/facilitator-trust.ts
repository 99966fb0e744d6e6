import type { Log } from '../net/log.js';
import type { Ledger } from '../ledger/store.js';
import type { Trust } from '../rails/solana/solana-rail.js';
import type { Facilitators } from './facilitators.js';

/** The trust in each facilitator as stored in the ledger: shared by all servers, kept across restarts. */
export type FacilitatorTrust = Trust & {
  /** Whether the facilitator of this name has ever reported a false settlement. */
  isLiar(name: string): boolean;
};

export async function loadFacilitatorTrust(
  ledger: Pick<Ledger, 'getMeta' | 'setMeta'>,
  facilitators: Pick<Facilitators, 'names' | 'nameOf' | 'findName'>,
  log: Log,
): Promise<FacilitatorTrust> {
  const liars = new Set<string>();
  const trust: FacilitatorTrust = {
    lied(feePayer) {
      const name = facilitators.nameOf(feePayer);
      return name === undefined || liars.has(name);
    },
    isLiar: name => liars.has(name),
    async distrust(feePayer) {
      const facilitator = facilitators.nameOf(feePayer) ?? (await facilitators.findName(feePayer));
      if (facilitator === undefined) {
        log.error(
          { feePayer },
          'a false settlement was reported by a facilitator that is no longer in FACILITATOR_URL',
        );
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
          'this facilitator once reported a settlement that never happened: all of its settlements are checked on chain',
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
