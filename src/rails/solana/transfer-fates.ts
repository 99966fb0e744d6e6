import type { Payment as Row } from '../../ledger/store.js';
import type { Fate, Sighting } from '../rail.js';
import {
  expiredSince,
  findTransfer,
  isTransfer,
  knownTransfers,
  type ChainHistory,
  type SearchOptions,
  type SearchResult,
} from './find-transfer.js';
import { sharedHistory } from './shared-history.js';

const UNKNOWN: Fate = { kind: 'unknown' };
const NOT_LANDED = 'the transaction never landed';
const FAILED = 'the transaction failed on chain';

/** The chain's proofs about payments. All payments of one round share its reads. */
export class TransferFates {
  readonly #chain: ChainHistory;
  /** In blocks: how long a payment that was proven absent is still watched, in case an RPC server answered wrongly. */
  readonly #watchBlocks: number;
  readonly #known = knownTransfers();
  #history: ChainHistory;

  constructor(chain: ChainHistory, watchBlocks: number) {
    this.#chain = chain;
    this.#watchBlocks = watchBlocks;
    this.#history = sharedHistory(chain);
  }

  beginRound(): void {
    this.#history = sharedHistory(this.#chain);
  }

  of(row: Row, signal: AbortSignal): Promise<Fate> {
    if (row.state === 'settling') return this.#ofUnresolved(row, signal);
    return row.state === 'released' ? this.#ofReleased(row, signal) : this.#ofSettled(row, signal);
  }

  async #ofUnresolved(row: Row, signal: AbortSignal): Promise<Fate> {
    const finding = await this.#find(row, { finality: 'confirmed' }, signal);
    return hasLanded(finding) ? fateIn(finding) : this.#proof(row, signal);
  }

  /** A released payment is proven absent only `#watchBlocks` blocks after it expired, by another search for its transfer. */
  async #ofReleased(row: Row, signal: AbortSignal): Promise<Fate> {
    const minContextSlot = await expiredSince(this.#history, row, signal, this.#watchBlocks);
    const dead = minContextSlot !== undefined;
    const how = dead
      ? { finality: 'finalized' as const, minContextSlot }
      : { finality: 'confirmed' as const };
    const finding = await this.#find(row, how, signal);
    return dead || hasLanded(finding) ? fateIn(finding) : UNKNOWN;
  }

  async #ofSettled(row: Row, signal: AbortSignal): Promise<Fate> {
    const settlement = row.settlement ?? '';
    const real = await isTransfer(this.#history, row, settlement, 'finalized', signal).catch(() => undefined);
    return real === true ? { kind: 'paid', settlement } : this.#proof(row, signal);
  }

  async #proof(row: Row, signal: AbortSignal): Promise<Fate> {
    const minContextSlot = await expiredSince(this.#history, row, signal);
    if (minContextSlot === undefined) return UNKNOWN;
    return fateIn(await this.#find(row, { finality: 'finalized', minContextSlot }, signal));
  }

  #find(row: Row, how: SearchOptions, signal: AbortSignal): Promise<SearchResult> {
    return findTransfer(this.#history, row, how, signal, this.#known);
  }
}

/** The result of a single check for a transfer. A failure is not final yet. */
export function sightingIn(finding: SearchResult): Sighting {
  if (finding.kind === 'absent') return { kind: 'not-seen' };
  return hasLanded(finding) ? { kind: 'seen', settlement: finding.signature } : { kind: 'unclear' };
}

function hasLanded(finding: SearchResult): finding is SearchResult & { kind: 'found' } {
  return finding.kind === 'found' && !finding.failed;
}

/** A failure on chain is final. Absence is not, because an RPC server may have answered wrongly. */
function fateIn(finding: SearchResult): Fate {
  if (finding.kind === 'unclear') return UNKNOWN;
  if (finding.kind === 'absent') return { kind: 'absent', why: NOT_LANDED, final: false };
  return finding.failed
    ? { kind: 'absent', why: FAILED, final: true }
    : { kind: 'paid', settlement: finding.signature };
}
