import type { Ledger } from '../../ledger/store.js';
import { boundedRate, ChainRate, LEAST_BLOCKS_PER_SECOND } from './chain-rate.js';
import { heightOf, type ChainHistory } from './find-transfer.js';
import type { SolanaChain } from './rpc.js';

/** The greatest block height that any server on the ledger has seen, and when (ms since 1970). */
export type SeenHeight = { height: number; seenAt: number };

const HEIGHT_KEY = 'chain-height';
/** The blocks per second at the last measurement. */
const RATE_KEY = 'chain-rate';
/** How far an RPC server may be behind the greatest height seen; see `EXPIRED_AFTER_BLOCKS`. */
const MAX_LAG_BLOCKS = 50;
/** The tolerance for heights, because reads are seconds apart, clocks differ, and the RPC server of the last read may have been behind. */
const SLACK_BLOCKS = 150;

type Meta = Pick<Ledger, 'getMeta' | 'setMeta'>;
type Latest = { lastValidBlockHeight: number };

/** A height that can't be true, or is too old to date a claim. */
class HeightRefused extends Error {}

/** @returns undefined if no server on this ledger has read the chain since the ledger was created or the height was reset */
export async function seenHeight(ledger: Pick<Meta, 'getMeta'>): Promise<SeenHeight | undefined> {
  const text = (await ledger.getMeta(HEIGHT_KEY)) ?? '';
  const [height, seenAt = '0'] = text.split(' ');
  return height ? { height: Number(height), seenAt: Number(seenAt) } : undefined;
}

/** Deletes the greatest height. The next height that an RPC server reports is accepted, whatever it is. */
export async function resetHeight(ledger: Pick<Meta, 'setMeta'>): Promise<void> {
  await ledger.setMeta(HEIGHT_KEY, '');
}

/**
 * Decides which block heights are plausible. A height far below the greatest one seen would backdate a claim, and the payment would count
 * as expired while it can still land. A height that rises faster than the chain can would stop all sales, because every true height is
 * far below it, and claims dated with it could never be resolved. The ledger therefore keeps the greatest height, the time at which it
 * was seen, and the measured rate of the chain, for all servers and across restarts.
 */
export class ChainHeights {
  readonly #ledger: Meta;
  readonly #least: number;
  readonly #now: () => number;
  readonly #rate = new ChainRate();
  #seen: SeenHeight | undefined;
  #measured = LEAST_BLOCKS_PER_SECOND;

  constructor(
    ledger: Meta,
    options: {
      /** The rate that is always allowed, in blocks per second. Default 4. */
      blocksPerSecond?: number;
      now?: () => number;
    } = {},
  ) {
    this.#ledger = ledger;
    this.#least = options.blocksPerSecond ?? LEAST_BLOCKS_PER_SECOND;
    this.#now = options.now ?? Date.now;
  }

  /** Reads the greatest height that any server has seen since the operator last reset it, and the rate that was measured last. */
  async refresh(): Promise<void> {
    const [seen, rate] = await Promise.all([seenHeight(this.#ledger), this.#ledger.getMeta(RATE_KEY)]);
    this.#seen = seen;
    this.#measured = boundedRate(Number(rate));
  }

  /**
   * Measures the chain with the heights that all RPC servers report now; undefined for one that does not answer.
   * @returns the blocks per second that are allowed from now on, if they changed
   */
  async measure(heights: readonly (number | undefined)[]): Promise<number | undefined> {
    const rate = this.#rate.measure(heights, this.#now(), this.#measured);
    if (rate === this.#measured) return undefined;
    this.#measured = rate;
    await this.#ledger.setMeta(RATE_KEY, String(rate));
    return rate;
  }

  /** @throws HeightRefused if the chain can't have reached this height */
  readonly checkRise = (latest: Latest): void => {
    if (!this.#seen) return;
    const { height, seenAt } = this.#seen;
    const seconds = Math.max(0, this.#now() - seenAt) / 1000;
    const most = height + SLACK_BLOCKS + Math.ceil(seconds * Math.max(this.#least, this.#measured));
    const shared = heightOf(latest);
    if (shared <= most) return;
    throw new HeightRefused(
      `block height ${shared} is ${shared - most} blocks more than the chain can have reached since height ${height} ` +
        `was seen ${Math.round(seconds)} s ago. If ${shared} is right, reset the height: npm run ledger -- height --reset`,
    );
  };

  /** @throws HeightRefused if the chain can't have reached this height, or is already far past it */
  readonly check = (latest: Latest): void => {
    this.checkRise(latest);
    const height = heightOf(latest);
    const seen = this.#seen?.height ?? 0;
    if (height >= seen - MAX_LAG_BLOCKS) return;
    throw new HeightRefused(
      `the RPC server is ${seen - height} blocks behind block height ${seen}, which was seen before: wait until it catches up, or ` +
        `set SOLANA_RPC_URL to another server. If ${seen} was wrong, reset it: npm run ledger -- height --reset`,
    );
  };

  /** Stores a checked height if it is the greatest. */
  async record(height: number): Promise<void> {
    if (this.#seen && height <= this.#seen.height) return;
    this.#seen = { height, seenAt: this.#now() };
    await this.#ledger.setMeta(HEIGHT_KEY, `${height} ${this.#seen.seenAt}`);
  }
}

/** A chain history that rejects heights which the chain can't have reached, so that none of them proves a payment absent. */
export function boundedHistory(
  chain: ChainHistory & Pick<SolanaChain, 'latestBlockhash'>,
  heights: ChainHeights,
): ChainHistory {
  return {
    ...chain,
    latestBlockhash: (finality, signal) => chain.latestBlockhash(finality, signal, heights.checkRise),
  };
}
