import { LRUCache } from 'lru-cache';
import { isSoldStatus } from '../contract/sold-status.js';
import type { Ledger } from '../ledger/store.js';
import type { Success } from './outcome.js';

const MAX_REMEMBERED = 256;

type Remembered = Pick<Success, 'status' | 'headers'> & { body: WeakRef<Buffer> };

/**
 * Answers of delivered payments, which no longer change. An answer that is still in memory because it is being sent is not read again:
 * otherwise hundreds of requests with the same payment would hold hundreds of copies of the answer.
 */
export class KeptAnswers {
  readonly #ledger: Pick<Ledger, 'answer'>;
  readonly #remembered = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED });
  /** Reads that are under way, by payment. */
  readonly #reading = new Map<string, Promise<Success | undefined>>();

  constructor(ledger: Pick<Ledger, 'answer'>) {
    this.#ledger = ledger;
  }

  /** The answer of a delivered payment; undefined if it has expired. */
  async get(id: string): Promise<Success | undefined> {
    const before = this.#remembered.get(id);
    const body = before?.body.deref();
    if (before && body) return { status: before.status, headers: before.headers, body };
    let reading = this.#reading.get(id);
    if (!reading) {
      reading = this.#read(id).finally(() => this.#reading.delete(id));
      this.#reading.set(id, reading);
    }
    return reading;
  }

  async #read(id: string): Promise<Success | undefined> {
    const kept = await this.#ledger.answer(id);
    if (!kept) return undefined;
    const { headers, body } = kept;
    const status = isSoldStatus(kept.status) ? kept.status : 200;
    this.#remembered.set(id, { status, headers, body: new WeakRef(body) });
    return { status, headers, body };
  }
}
