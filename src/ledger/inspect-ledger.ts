import { existsSync } from 'node:fs';
import { clockOf } from './clock.js';
import { execute, type TransactionBody } from './engine.js';
import { openEngine, opening } from './engines/open-engine.js';
import { pathOf } from './engines/sqlite-file.js';
import { offeredHintsOf } from './offered-hints.js';
import { getMeta, noteKey } from './queries/meta.js';
import { inspect, type ServerIdentity } from './migrate.js';

/**
 * - `none`: there is no ledger yet; the server creates it when it first starts.
 * - `older`: it has an older schema; the server upgrades it at its next start.
 * - `unsold`: nothing has been sold with it, so it belongs to no receiver.
 * - `ours`: it belongs to the configured receiver.
 */
export type LedgerState = {
  kind: 'none' | 'older' | 'unsold' | 'ours';
  hasHints: boolean;
  /** The values of the requested notes, if they exist. */
  notes: ReadonlyMap<string, string>;
};

/**
 * Checks, without changing anything, whether a server could start on a ledger. Works while other servers use it.
 * @param notes the keys of notes (stored texts) to read
 * @throws LedgerFault if the server would refuse to start
 */
export async function inspectLedger(
  url: string,
  identity: ServerIdentity,
  notes: readonly string[] = [],
): Promise<LedgerState> {
  if (url.startsWith('file:') && !existsSync(pathOf(url))) return nothingIn('none');
  const engine = await openEngine(url, 'check');
  try {
    const found = await opening(engine.read(() => inspect(engine.dialect, identity)));
    if (found === 'none' || found === 'older') return nothingIn(found);
    const offered = await offeredHintsOf({ engine, now: clockOf(engine.dialect) }).offeredHints();
    const kept = await engine.read(() => readNotes(notes));
    return { kind: found.has('pay_to') ? 'ours' : 'unsold', hasHints: offered.length > 0, notes: kept };
  } finally {
    await engine.close();
  }
}

function nothingIn(kind: 'none' | 'older'): LedgerState {
  return { kind, hasHints: false, notes: new Map() };
}

function* readNotes(keys: readonly string[]): TransactionBody<Map<string, string>> {
  const found = new Map<string, string>();
  for (const key of keys) {
    const [row] = yield* execute(getMeta({ key: noteKey(key) }));
    if (row) found.set(key, row.value);
  }
  return found;
}
