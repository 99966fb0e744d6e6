import { LRUCache } from 'lru-cache';
import type { ChainHistory } from './find-transfer.js';

/** A page holds up to a thousand entries. */
const MAX_PAGES = 64;
const MAX_TRANSACTIONS = 1_024;

/**
 * Caches chain reads for one round of the reconciler, so that all payments of an account share one search. A cached read may be a round
 * old. That can delay a proof but never produce a false one, because absence is only proven by a read with a minimum slot.
 */
export function sharedHistory(chain: ChainHistory): ChainHistory {
  const latest = new Answers<Awaited<ReturnType<ChainHistory['latestBlockhash']>>>(2);
  const pages = new Answers<Awaited<ReturnType<ChainHistory['signaturesFor']>>>(MAX_PAGES);
  const transactions = new Answers<Awaited<ReturnType<ChainHistory['transaction']>>>(MAX_TRANSACTIONS);
  return {
    latestBlockhash: (finality, signal) =>
      latest.of(finality, signal, () => chain.latestBlockhash(finality, signal)),
    signaturesFor: (address, page, signal) => {
      const { finality, before, limit, minContextSlot } = page;
      const key = [address, finality, before, limit, minContextSlot].join(' ');
      return pages.of(key, signal, () => chain.signaturesFor(address, page, signal));
    },
    transaction: (signature, finality, signal) =>
      transactions.of(`${signature} ${finality}`, signal, () =>
        chain.transaction(signature, finality, signal),
      ),
  };
}

class Answers<T extends object | null> {
  readonly #asked: LRUCache<string, Promise<T>>;

  constructor(max: number) {
    this.#asked = new LRUCache({ max });
  }

  /** Shares a read that another check has started, and repeats it if it fails or times out. */
  async of(key: string, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const earlier = this.#asked.get(key);
    if (earlier)
      return earlier.catch(() => {
        signal.throwIfAborted();
        return this.of(key, signal, ask);
      });
    const asking = ask();
    this.#asked.set(key, asking);
    // Forgets a failed read before other callers see the failure, so that they repeat it.
    asking.catch(() => this.#asked.delete(key));
    return asking;
  }
}
