import type { Ledger } from '../ledger/store.js';
import type { Log } from './outcome.js';

/** Whether the facilitator's word is enough. Once it lied, every success is looked up on chain before the answer goes out. */
export type Trust = { facilitatorLied: boolean };

/** What the ledger knows of a facilitator's word. Setting `facilitatorLied` is remembered across restarts. */
export async function trustIn(ledger: Ledger, facilitatorUrl: string, log: Log): Promise<Trust> {
  const key = `facilitator-lied ${facilitatorUrl}`;
  let lied = (await ledger.getMeta(key)) !== undefined;
  if (lied)
    log.warn(
      { facilitatorUrl },
      'this facilitator once reported a settlement that never happened: its word is checked',
    );
  return {
    get facilitatorLied() {
      return lied;
    },
    set facilitatorLied(value: boolean) {
      lied = value;
      if (value) void ledger.setMeta(key, new Date().toISOString()).catch(() => {});
    },
  };
}
