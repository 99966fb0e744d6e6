import { messageOf } from '../ledger/fault.js';
import type { Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { ListingVerdict } from './facilitator.js';

/** The newest verdict of a facilitator's directory on an operation. `at`: ms since 1970. */
export type HeardVerdict = ListingVerdict & { facilitator: string; at: number };

/** How often an unchanged verdict is rewritten, and the minimum time between two different ones, in ms. */
const WRITE_AGAIN_MS = 60 * 60 * 1_000;
const OTHER_WORDS_MS = 60 * 1_000;

/**
 * The newest verdict of each facilitator's directory about each operation, by transport. Stored in the ledger, where all servers of the
 * shop read them.
 */
export class ListingVerdicts {
  readonly #ledger: Pick<Ledger, 'getMeta' | 'setMeta'>;
  readonly #log: Log;
  readonly #now: () => number;
  /** By facilitator, and then by transport and operation. */
  readonly #heard = new Map<string, Map<string, HeardVerdict>>();
  #writing = Promise.resolve();
  /** Called when a facilitator refuses requests that ask to be listed. */
  onRefused: (facilitator: string) => void = () => {};

  constructor(ledger: Pick<Ledger, 'getMeta' | 'setMeta'>, log: Log, now: () => number = Date.now) {
    this.#ledger = ledger;
    this.#log = log;
    this.#now = now;
  }

  /** Never rejects, and need not be awaited. */
  hear(facilitator: string, verdict: ListingVerdict): Promise<void> {
    if (verdict.status === 'refused') this.onRefused(facilitator);
    const of = this.#heard.get(facilitator) ?? new Map<string, HeardVerdict>();
    this.#heard.set(facilitator, of);
    const key = keyOf(verdict);
    const last = of.get(key);
    const at = this.#now();
    const isNews = last?.status !== verdict.status || last.why !== verdict.why;
    const pause = last?.status !== verdict.status ? 0 : isNews ? OTHER_WORDS_MS : WRITE_AGAIN_MS;
    if (last && at - last.at < pause) return this.#writing;
    of.set(key, { ...verdict, facilitator, at });
    if (isNews) this.#tell(facilitator, verdict);
    this.#writing = this.#writing.then(() => this.#write(facilitator));
    return this.#writing;
  }

  /** The verdicts of all servers. Rejects if the ledger fails. */
  async read(facilitators: readonly string[]): Promise<HeardVerdict[]> {
    const each = await Promise.all(facilitators.map(name => this.#merged(name)));
    return each.flatMap(of => [...of.values()]);
  }

  async #write(facilitator: string): Promise<void> {
    try {
      const merged = await this.#merged(facilitator);
      await this.#ledger.setMeta(verdictsKey(facilitator), JSON.stringify([...merged.values()]));
    } catch (error) {
      const why = messageOf(error);
      this.#log.warn(
        { facilitator, error: why },
        'the verdict of a directory on an operation was not stored',
      );
    }
  }

  async #merged(facilitator: string): Promise<Map<string, HeardVerdict>> {
    const stored = verdictsIn(await this.#ledger.getMeta(verdictsKey(facilitator)));
    const merged = new Map(stored.map(each => [keyOf(each), each]));
    for (const [key, each] of this.#heard.get(facilitator) ?? [])
      if (each.at >= (merged.get(key)?.at ?? 0)) merged.set(key, each);
    return merged;
  }

  #tell(
    facilitator: string,
    { operation, transport, status, why = 'it does not say why' }: ListingVerdict,
  ): void {
    const fields = { facilitator, operation, transport, status };
    if (status === 'refused')
      return this.#log.warn(
        { ...fields, why },
        `${facilitator} refuses requests that ask to be listed: ${why}. No such request is sent to it for a day, or ever with LISTED=false`,
      );
    if (status === 'rejected')
      return this.#log.warn(
        { ...fields, why },
        `${facilitator} does not list ${operation} (${transport}): ${why}. The entry has the descriptions, schemas and examples of this operation in openapi.yaml`,
      );
    const how = status === 'success' ? 'lists' : 'is about to list';
    this.#log.info(fields, `${facilitator} ${how} ${operation} (${transport})`);
  }
}

function keyOf({ operation, transport }: ListingVerdict): string {
  return `${transport} ${operation}`;
}

/** The key of the ledger's note with the verdicts of a facilitator. */
export function verdictsKey(facilitator: string): string {
  return `listings ${facilitator}`;
}

/** @param note the text of the ledger's note; undefined if there is none */
export function verdictsIn(note: string | undefined): HeardVerdict[] {
  return JSON.parse(note ?? '[]') as HeardVerdict[];
}
