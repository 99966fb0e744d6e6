import { existsSync } from 'node:fs';
import { clockOf } from './clock.js';
import { openEngine, opening } from './engines/open-engine.js';
import { pathOf } from './engines/sqlite-file.js';
import { offeredHintsOf } from './offered-hints.js';
import { inspect, type ServerIdentity } from './migrate.js';

/**
 * - `none`: there is no ledger yet; the first start creates it.
 * - `older`: it has an older schema; the next start brings it up to date.
 * - `unsold`: nothing was sold on it, so it belongs to no receiver.
 * - `ours`: it belongs to the configured receiver.
 */
export type LedgerState = { kind: 'none' | 'older' | 'unsold' | 'ours'; hasHints: boolean };

/**
 * Looks at a ledger before a start, also while servers use it, and changes nothing.
 * @throws LedgerFault if a start would be refused
 */
export async function inspectLedger(url: string, identity: ServerIdentity): Promise<LedgerState> {
  if (url.startsWith('file:') && !existsSync(pathOf(url))) return { kind: 'none', hasHints: false };
  const engine = await openEngine(url, 'check');
  try {
    const found = await opening(engine.read(() => inspect(engine.dialect, identity)));
    if (found === 'none' || found === 'older') return { kind: found, hasHints: false };
    const offered = await offeredHintsOf({ engine, now: clockOf(engine.dialect) }).offeredHints();
    return { kind: found.has('pay_to') ? 'ours' : 'unsold', hasHints: offered.length > 0 };
  } finally {
    await engine.close();
  }
}
