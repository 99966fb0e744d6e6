import { openLedger } from '../../src/ledger/store.js';
import type { Ledger, LedgerOptions } from '../../src/ledger/store.js';
import { OWNER } from './ledgers.js';
import type { LedgerPlace } from './ledger-places.js';
import { forServer } from './ledger-places.js';

/** What a test may change: the time of the ledger's clock. */
export const time = { now: 0 };
export let place: LedgerPlace;
export let ledger: Ledger;
const opened: { close: () => Promise<void> }[] = [];

/** Gives every test of a suite a place and a ledger of its own. */
export function eachWithANewLedger(make: () => Promise<LedgerPlace>): void {
  beforeEach(async () => {
    time.now = 1_800_000_000_000;
    place = await make();
    ledger = await open();
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map(each => each.close()));
    await place.remove();
  });
}

/** Opens one more ledger in the same place; it is closed after the test. */
export async function open(options: Partial<LedgerOptions> = {}): Promise<Ledger> {
  const result = await openLedger({ ...forServer(place.url), ...OWNER, now: () => time.now, ...options });
  closeLater(result);
  return result;
}

/** Closes the ledger of the test and opens it again with other options. */
export async function reopen(options: Partial<LedgerOptions> = {}): Promise<void> {
  await ledger.close();
  ledger = await open(options);
}

export function closeLater(one: { close: () => Promise<void> }): void {
  opened.push(one);
}

/** Allows for a delayed test, because PostgreSQL's own clock keeps running during the delay. */
export const SLOW_MS = 10_000;
