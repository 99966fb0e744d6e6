import type { Place } from './journal.js';
import type { TransactionError } from './vm.js';

/** The part of a transaction that stays in memory: what lists and statuses show. The rest is read from the journal at `place`. */
export type Entry = {
  signature: string;
  hash: string;
  slot: number;
  /** Seconds since 1970. */
  blockTime: number;
  err: TransactionError | null;
  memo: string | null;
  place: Place;
};

/** The entries that touch one address, oldest first; those before `head` are forgotten. */
type Trail = { address: string; entries: Entry[]; head: number };

type Kept = { entry: Entry; trails: Trail[] };

export type Page = { before?: string | undefined; until?: string | undefined; limit: number; newest: number };

/** The landed transactions, by signature, message and address; the oldest are forgotten beyond `limit`. */
export class History {
  readonly #limit: number;
  readonly #bySignature = new Map<string, Kept>();
  readonly #byHash = new Set<string>();
  readonly #trails = new Map<string, Trail>();
  #forgotten = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many transactions were forgotten because of the limit. */
  get forgotten(): number {
    return this.#forgotten;
  }

  get size(): number {
    return this.#bySignature.size;
  }

  add(entry: Entry, addresses: string[]): void {
    const trails = [...new Set(addresses)].map(address => this.#trail(address));
    for (const trail of trails) trail.entries.push(entry);
    this.#bySignature.set(entry.signature, { entry, trails });
    this.#byHash.add(entry.hash);
    if (this.#bySignature.size > this.#limit) this.#forgetOldest();
  }

  has(hash: string): boolean {
    return this.#byHash.has(hash);
  }

  find(signature: string): Entry | null {
    return this.#bySignature.get(signature)?.entry ?? null;
  }

  /** Every entry, oldest first. */
  *all(): Iterable<Entry> {
    for (const { entry } of this.#bySignature.values()) yield entry;
  }

  /** The entries that touch an address, newest first, none in a slot after `newest`. */
  ofAddress(address: string, { before, until, limit, newest }: Page): Entry[] {
    const trail = this.#trails.get(address);
    const found: Entry[] = [];
    if (!trail) return found;
    const from = before === undefined ? null : this.find(before);
    if (before !== undefined && !from) return found;
    let passed = !from || !trail.entries.includes(from);
    for (let i = trail.entries.length - 1; i >= trail.head && found.length < limit; i--) {
      const entry = trail.entries[i];
      if (!entry || entry.signature === until) break;
      if (passed && entry.slot <= newest && (!from || entry.slot <= from.slot)) found.push(entry);
      if (entry === from) passed = true;
    }
    return found;
  }

  #trail(address: string): Trail {
    const known = this.#trails.get(address);
    if (known) return known;
    const made = { address, entries: [], head: 0 };
    this.#trails.set(address, made);
    return made;
  }

  #forgetOldest(): void {
    for (const [signature, { entry, trails }] of this.#bySignature) {
      this.#bySignature.delete(signature);
      this.#byHash.delete(entry.hash);
      for (const trail of trails) this.#shorten(trail);
      this.#forgotten++;
      return;
    }
  }

  /** Moves the head instead of shifting the array, which would cost its whole length for every transaction. */
  #shorten(trail: Trail): void {
    trail.head++;
    if (trail.head === trail.entries.length) this.#trails.delete(trail.address);
    else if (trail.head > 1024 && trail.head * 2 > trail.entries.length) {
      trail.entries = trail.entries.slice(trail.head);
      trail.head = 0;
    }
  }
}
