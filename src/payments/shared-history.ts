import { LRUCache } from 'lru-cache';
import type { ChainHistory } from './find-transfer.js';

/** A page holds up to a thousand entries. */
const MAX_PAGES = 64;
const MAX_TRANSACTIONS = 1_024;

/**
 * The chain as one round of looks at payments sees it: what was asked once is not asked again, so that all payments of an account share one
 * search. What it remembers may be a round old: that can delay a proof, never make one, since what proves absence is asked for by slot.
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

  /** Who waits for what another look asked asks again when that one failed or ran out of time. */
  async of(key: string, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    for (let asked = this.#asked.get(key); asked; asked = this.#asked.get(key)) {
      try {
        return await asked;
      } catch {
        if (this.#asked.get(key) === asked) this.#asked.delete(key);
        signal.throwIfAborted();
      }
    }
    const asking = ask();
    this.#asked.set(key, asking);
    asking.catch(() => {
      if (this.#asked.get(key) === asking) this.#asked.delete(key);
    });
    return asking;
  }
}
