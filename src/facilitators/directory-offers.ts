import { messageOf } from '../ledger/fault.js';
import type { Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { Called } from '../rails/rail.js';
import type { Listing } from './listings.js';

/** An operation as directories identify it. */
type Listed = Pick<Listing, 'operation' | 'transport'>;

/** The outcome of a payment after which a directory may list the shop. `refused` may be the buyer's fault, `failed` is the facilitator's. */
export type Went = 'asked' | 'sold' | 'refused' | 'failed';

/** How many challenges of an operation per minute may name a directory facilitator's fee payer. More than one, because most callers never pay. */
const MAX_OFFERS = 3;
const WINDOW_MS = 60_000;
/**
 * After a payment, its operation is not offered for this long. After a failure, no operation is offered for this long; each further
 * failure doubles the time.
 */
const REST_MS = 10 * 60_000;
/** A fee payer recorded longer ago might no longer be accepted when the payment comes. */
const RECORDED_MS = 2 * 60_000;

type Parts = {
  ledger: Pick<Ledger, 'getMeta' | 'setMeta' | 'offerHint'>;
  /** The facilitators that have a directory, in order of preference. */
  names: readonly string[];
  /** The fee payer of a healthy facilitator; undefined if it is not healthy. */
  offerable: (name: string) => string | undefined;
  /** The time between two offered sales. */
  everyMs: number;
  log: Log;
  now?: () => number;
};

/** The state of one facilitator. Times in ms since 1970. */
class Directory {
  /** The fee payer that was recorded in the ledger, and when. */
  recorded: { feePayer: string; at: number } | undefined;
  /** The time of the last sale of each operation on any server; undefined until the ledger has been read. */
  sold: Map<string, number> | undefined;
  /** Until when an operation is not offered. */
  readonly rests = new Map<string, number>();
  readonly offered = new Map<string, { since: number; count: number }>();
  restsUntil = 0;
  failures = 0;
}

/**
 * Chooses sales that are offered through a facilitator only so that its directory lists the operations: the first sale of each operation,
 * over HTTP and over MCP, and then one every few hours. Their challenges name its fee payer, so that only it can settle them. Each server
 * on a ledger offers a sale until it reads (every 20 s) that one of them has made it.
 */
export class DirectoryOffers {
  readonly #parts: Parts;
  readonly #now: () => number;
  readonly #directories: ReadonlyMap<string, Directory>;
  #writing = Promise.resolve();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
    this.#directories = new Map(parts.names.map(name => [name, new Directory()]));
  }

  /** The fee payer for the challenge of a call without payment; undefined if it is to name the usual one. */
  feePayerFor({ operation, transport }: Called): string | undefined {
    if (operation.unlisted) return undefined;
    const key = keyOf({ operation: operation.id, transport });
    for (const [name, directory] of this.#directories) {
      if (!this.#isDue(directory, key)) continue;
      const feePayer = this.#parts.offerable(name);
      const { recorded } = directory;
      if (feePayer === undefined || feePayer !== recorded?.feePayer) continue;
      if (this.#now() - recorded.at < RECORDED_MS && this.#mayOffer(directory, key)) return feePayer;
    }
    return undefined;
  }

  /** Reports the outcome of a call's payment. */
  heard(name: string, listed: Listed, went: Went): void {
    const directory = this.#directories.get(name);
    if (!directory) return;
    const key = keyOf(listed);
    directory.rests.set(key, this.#now() + REST_MS);
    if (went === 'sold') this.#sold(name, directory, listed);
    if (went === 'failed') this.#failed(name, directory, listed);
  }

  /** Pauses offers through the facilitator for this long. */
  rest(name: string, ms: number): void {
    const directory = this.#directories.get(name);
    if (directory) directory.restsUntil = Math.max(directory.restsUntil, this.#now() + ms);
  }

  /** Records the fee payers that may be offered, and reads the sales of other servers. Never rejects. */
  async refresh(): Promise<void> {
    const { ledger, offerable, log } = this.#parts;
    for (const [name, directory] of this.#directories) {
      try {
        const feePayer = offerable(name);
        if (feePayer !== undefined) {
          await ledger.offerHint(feePayer, name);
          directory.recorded = { feePayer, at: this.#now() };
        }
        directory.sold = await this.#merged(name, directory);
      } catch (error) {
        const why = messageOf(error);
        log.warn(
          { facilitator: name, error: why },
          'could not offer operations to a directory, because the ledger failed',
        );
      }
    }
  }

  #isDue({ sold, rests, restsUntil }: Directory, key: string): boolean {
    const now = this.#now();
    if (!sold || now < restsUntil || now < (rests.get(key) ?? 0)) return false;
    return now >= (sold.get(key) ?? -Infinity) + this.#parts.everyMs;
  }

  #mayOffer({ offered }: Directory, key: string): boolean {
    const now = this.#now();
    const last = offered.get(key);
    const { since, count } = last && now - last.since < WINDOW_MS ? last : { since: now, count: 0 };
    if (count >= MAX_OFFERS) return false;
    offered.set(key, { since, count: count + 1 });
    return true;
  }

  #sold(name: string, directory: Directory, listed: Listed): void {
    directory.failures = 0;
    directory.sold?.set(keyOf(listed), this.#now());
    const { operation, transport } = listed;
    this.#parts.log.info(
      { facilitator: name, operation, transport },
      `${operation} (${transport}) was sold through ${name} so that its directory lists it`,
    );
    this.#writing = this.#writing.then(() => this.#write(name, directory));
  }

  #failed(name: string, directory: Directory, { operation, transport }: Listed): void {
    const ms = Math.min(REST_MS * 2 ** directory.failures, this.#parts.everyMs);
    directory.failures += 1;
    this.rest(name, ms);
    this.#parts.log.warn(
      { facilitator: name, operation, transport },
      `${name} failed a payment that was offered for its directory: nothing is offered through it for ${Math.round(ms / 60_000)} min`,
    );
  }

  async #write(name: string, directory: Directory): Promise<void> {
    try {
      const sold = await this.#merged(name, directory);
      await this.#parts.ledger.setMeta(noteOf(name), JSON.stringify(Object.fromEntries(sold)));
    } catch (error) {
      const why = messageOf(error);
      this.#parts.log.warn({ facilitator: name, error: why }, 'a sale for a directory was not stored');
    }
  }

  /** The newest sales: those of the ledger, and those of this server. */
  async #merged(name: string, { sold = new Map() }: Directory): Promise<Map<string, number>> {
    const note = await this.#parts.ledger.getMeta(noteOf(name));
    const merged = new Map(Object.entries(JSON.parse(note ?? '{}') as Record<string, number>));
    for (const [key, at] of sold) merged.set(key, Math.max(at, merged.get(key) ?? 0));
    return merged;
  }
}

function keyOf({ operation, transport }: Listed): string {
  return `${transport} ${operation}`;
}

/** The key of the ledger's note with the last sale of each operation through a facilitator. */
function noteOf(name: string): string {
  return `catalogued ${name}`;
}
