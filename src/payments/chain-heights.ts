import type { Ledger } from '../ledger/store.js';
import { heightOf, type ChainHistory } from './find-transfer.js';

/** The greatest block height that any server of a ledger has seen, and when (ms since 1970). */
export type SeenHeight = { height: number; seenAt: number };

const HEIGHT_KEY = 'chain-height';
/** How far an RPC server may be behind what was seen before; see `DEAD_AFTER_BLOCKS`. */
const MAX_LAG_BLOCKS = 50;
/** A chain makes 2.5 blocks a second. */
const MAX_BLOCKS_PER_SECOND = 4;
/** What a height may rise besides: looks are seconds apart, clocks differ, and the server of the last look may have been behind. */
const SLACK_BLOCKS = 150;

type Meta = Pick<Ledger, 'getMeta' | 'setMeta'>;
type Latest = { lastValidBlockHeight: number };

/** A height that can't be true, or is too old to date a payment with. */
class HeightRefused extends Error {}

/** @returns undefined where no server of this ledger has looked at the chain since it was made or reset */
export async function seenHeight(ledger: Pick<Meta, 'getMeta'>): Promise<SeenHeight | undefined> {
  const text = (await ledger.getMeta(HEIGHT_KEY)) ?? '';
  const [height, seenAt = '0'] = text.split(' ');
  return height ? { height: Number(height), seenAt: Number(seenAt) } : undefined;
}

/** Forgets the greatest height: the next one that an RPC server tells is believed, whatever it is. */
export async function resetHeight(ledger: Pick<Meta, 'setMeta'>): Promise<void> {
  await ledger.setMeta(HEIGHT_KEY, '');
}

/**
 * Says which block heights are believed. A height far below the greatest one that was seen would date a claim back, and the payment
 * would be taken for dead while it can still land. One that rose faster than the chain can would stop all sales, since every true
 * height is far below it, and would date claims so that they can never be decided. So the ledger remembers the greatest height and
 * when it was seen, for all servers and across restarts.
 */
export class ChainHeights {
  readonly #ledger: Meta;
  readonly #blocksPerSecond: number;
  readonly #now: () => number;
  #seen: SeenHeight | undefined;

  constructor(
    ledger: Meta,
    options: {
      /** Default 4. */
      blocksPerSecond?: number;
      now?: () => number;
    } = {},
  ) {
    this.#ledger = ledger;
    this.#blocksPerSecond = options.blocksPerSecond ?? MAX_BLOCKS_PER_SECOND;
    this.#now = options.now ?? Date.now;
  }

  /** Learns what other servers have seen, or that the operator has reset it. */
  async refresh(): Promise<void> {
    this.#seen = await seenHeight(this.#ledger);
  }

  /** @throws HeightRefused where the chain can't have come so far */
  readonly checkRise = (latest: Latest): void => {
    if (!this.#seen) return;
    const { height, seenAt } = this.#seen;
    const seconds = Math.max(0, this.#now() - seenAt) / 1000;
    const most = height + SLACK_BLOCKS + Math.ceil(seconds * this.#blocksPerSecond);
    const shared = heightOf(latest);
    if (shared <= most) return;
    throw new HeightRefused(
      `block height ${shared} is ${shared - most} blocks more than the chain can have reached since height ${height} ` +
        `was seen ${Math.round(seconds)} s ago. If ${shared} is right, reset the height: npm run ledger -- height --reset`,
    );
  };

  /** @throws HeightRefused where the chain can't have come so far, or had come much farther before */
  readonly check = (latest: Latest): void => {
    this.checkRise(latest);
    const height = heightOf(latest);
    const seen = this.#seen?.height ?? 0;
    if (height >= seen - MAX_LAG_BLOCKS) return;
    throw new HeightRefused(
      `the RPC server is ${seen - height} blocks behind what was seen before: wait until it has caught up, or set SOLANA_RPC_URL ` +
        `to another. If ${seen} was wrong, reset it: npm run ledger -- height --reset`,
    );
  };

  /** Keeps a height that was checked, where it is the greatest. */
  async record(height: number): Promise<void> {
    if (this.#seen && height <= this.#seen.height) return;
    this.#seen = { height, seenAt: this.#now() };
    await this.#ledger.setMeta(HEIGHT_KEY, `${height} ${this.#seen.seenAt}`);
  }
}

type CheckedHistory = Omit<ChainHistory, 'latestBlockhash'> & {
  latestBlockhash(
    finality: 'confirmed' | 'finalized',
    signal: AbortSignal,
    check: (latest: Latest) => void,
  ): ReturnType<ChainHistory['latestBlockhash']>;
};

/** A chain by whose history no payment is proven absent at a height that the chain can't have reached. */
export function boundedHistory(chain: CheckedHistory, heights: ChainHeights): ChainHistory {
  return {
    latestBlockhash: (finality, signal) => chain.latestBlockhash(finality, signal, heights.checkRise),
    signaturesFor: (address, page, signal) => chain.signaturesFor(address, page, signal),
    transaction: (signature, finality, signal) => chain.transaction(signature, finality, signal),
  };
}
