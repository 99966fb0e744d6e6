import type { Log } from '../../net/log.js';
import type { Ledger } from '../../ledger/store.js';
import { EXPIRED_AFTER_BLOCKS } from './blocks.js';
import { recentBlockhashes } from './blockhash-life.js';
import type { ChainHeights } from './chain-heights.js';
import { heightOf } from './find-transfer.js';
import type { SolanaChain } from './rpc.js';
import type { ChainView, SolanaHints } from './solana-hints.js';

/** How often to check whether a read of the chain is due; see `nextReadAfterMs`. */
const TICK_MS = 200;
const FACILITATORS_INTERVAL_MS = 15_000;
const PROBE_INTERVAL_MS = 200;
const FOLLOW_INTERVAL_MS = 100;
const SHARE_INTERVAL_MS = 20_000;
const UPKEEP_INTERVAL_MS = 60_000;
const MEASURE_INTERVAL_MS = 60_000;
const VIEW_DEADLINE_MS = 8_000;
const LIST_DEADLINE_MS = 2_000;
/** The maximum number of slices (of a hundred rows each) in one round of maintenance. */
const MAX_SLICES = 100;

/**
 * Reads the state of the chain, and stores its height for other servers and for later runs.
 * @throws if no RPC server answers with a plausible height
 */
export async function readView(
  chain: Pick<SolanaChain, 'latestBlockhash'>,
  heights: ChainHeights,
  signal: AbortSignal,
): Promise<ChainView> {
  await heights.refresh();
  const latest = await chain.latestBlockhash('confirmed', signal, heights.check);
  const height = heightOf(latest);
  await heights.record(height);
  return { blockhash: latest.blockhash, slot: latest.slot, height };
}

/** Functions that keep the fee payer in the hints up to date. None of them rejects. */
type FeePayers = Record<'ask' | 'probe' | 'follow' | 'share', () => Promise<void>>;

type Parts = {
  hints: SolanaHints;
  chain: SolanaChain;
  heights: ChainHeights;
  feePayers: FeePayers;
  /** Chooses the calls that are offered with other fee payers. `refresh` never rejects. */
  catalogue?: { refresh(): Promise<void> } | undefined;
  ledger: Ledger;
  log: Log;
};

/**
 * Refreshes the hints from chain and facilitators in the background, so that no request waits for either, and deletes expired rows
 * from the ledger.
 */
export class HintRefresher {
  readonly #parts: Parts;
  readonly #timers: NodeJS.Timeout[] = [];
  #chainDownSince: number | undefined;
  #lookedAt = -Infinity;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Refreshes everything once and schedules the next refreshes. Resolves after the first one, even if it failed. */
  async start(): Promise<void> {
    const { hints, feePayers, catalogue } = this.#parts;
    hints.onUsedUp = this.#every(TICK_MS, () => this.#readChainWhenDue());
    this.#every(FACILITATORS_INTERVAL_MS, () => feePayers.ask());
    this.#every(PROBE_INTERVAL_MS, () => feePayers.probe());
    this.#every(FOLLOW_INTERVAL_MS, () => feePayers.follow());
    this.#every(SHARE_INTERVAL_MS, () => feePayers.share());
    if (catalogue) this.#every(SHARE_INTERVAL_MS, () => catalogue.refresh());
    this.#every(UPKEEP_INTERVAL_MS, () => this.#runMaintenance());
    this.#every(MEASURE_INTERVAL_MS, () => this.#measureChain());
    await Promise.all([this.#readChain(), feePayers.share(), catalogue?.refresh(), this.#runMaintenance()]);
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /**
   * Runs `look` every `ms`.
   * @returns a function that runs it immediately
   */
  #every(ms: number, look: () => Promise<void>): () => void {
    let busy = false;
    const begin = (): void => {
      if (busy) return;
      busy = true;
      void look().finally(() => {
        busy = false;
      });
    };
    this.#timers.push(setInterval(begin, ms).unref());
    return begin;
  }

  async #readChainWhenDue(): Promise<void> {
    if (performance.now() - this.#lookedAt >= this.#parts.hints.nextReadAfterMs()) await this.#readChain();
  }

  async #readChain(): Promise<void> {
    const { chain, hints, heights, log } = this.#parts;
    this.#lookedAt = performance.now();
    try {
      const [view, earlier] = await Promise.all([
        readView(chain, heights, AbortSignal.timeout(VIEW_DEADLINE_MS)),
        // Without the list of recent blockhashes, only one can be offered.
        recentBlockhashes(chain, AbortSignal.timeout(LIST_DEADLINE_MS)).catch(() => []),
      ]);
      hints.setView({ ...view, earlier });
      if (this.#chainDownSince === undefined) return;
      const seconds = Math.round((performance.now() - this.#chainDownSince) / 1_000);
      log.info({ seconds }, `the Solana RPC is answering again after ${seconds} s`);
      this.#chainDownSince = undefined;
    } catch (error) {
      if (this.#chainDownSince !== undefined) return;
      this.#chainDownSince = performance.now();
      log.warn(
        { error },
        'no usable answer from the Solana RPC: paid calls answer 503 if there is none within 40 s',
      );
    }
  }

  async #measureChain(): Promise<void> {
    const { chain, heights, log } = this.#parts;
    try {
      const rate = await heights.measure(await chain.heights(AbortSignal.timeout(VIEW_DEADLINE_MS)));
      if (rate !== undefined)
        log.info(
          { rate },
          `block heights may now rise by up to ${rate} a second, as measured from the RPC servers`,
        );
    } catch (error) {
      log.warn({ error }, 'could not store the measured rate of the chain in the ledger');
    }
  }

  async #runMaintenance(): Promise<void> {
    const { ledger, hints, log } = this.#parts;
    try {
      const view = hints.view();
      for (let slice = 0; view && slice < MAX_SLICES; slice++)
        if (!(await ledger.deleteExpiredClaims({ before: view.height - EXPIRED_AFTER_BLOCKS }))) break;
      for (let slice = 0; slice < MAX_SLICES; slice++) if (!(await ledger.prune())) break;
    } catch (error) {
      log.warn({ error }, 'could not delete expired rows from the ledger');
    }
  }
}
