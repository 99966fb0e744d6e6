import type { Anonymizer, Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { Rail } from '../rails/rail.js';

const INTERVAL_MS = 60_000;
/** The maximum number of slices, of a hundred rows each, in one round for each kind of data. */
const MAX_SLICES = 100;

const DAY_MS = 86_400_000;

/**
 * How many days requests and answers (`texts`) and payers' addresses are kept; undefined if they are never removed. `own`: payers whose
 * addresses are kept.
 */
export type Retention = {
  texts: number | undefined;
  payers: number | undefined;
  own: ReadonlySet<string>;
  anonymizer: Anonymizer;
};

type Options = {
  ledger: Pick<Ledger, 'condenseSales' | 'removeOldTexts' | 'removeOldPayers'>;
  rail: Pick<Rail, 'condense'>;
  retention: Retention;
  log: Log;
  now?: () => number;
};

/** Removes data that is no longer needed, or whose retention period has ended, from the ledger, slice by slice. */
export class Trimmer {
  readonly #options: Options;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: Options) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => void this.run(), INTERVAL_MS).unref();
    void this.run();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#isStopped = true;
    await this.#round;
  }

  /** Runs one round. Rounds never overlap. Never rejects. */
  run(): Promise<void> {
    this.#round ??= this.#runRound().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #runRound(): Promise<void> {
    const { ledger, rail, retention, log, now = Date.now } = this.#options;
    const before = (days: number): number => now() - days * DAY_MS;
    try {
      const condense = (evidence: string): string => rail.condense({ evidence });
      await this.#inSlices(() => ledger.condenseSales(condense));
      const { texts, payers, ...kept } = retention;
      if (texts !== undefined) await this.#inSlices(() => ledger.removeOldTexts(before(texts)));
      if (payers !== undefined) await this.#inSlices(() => ledger.removeOldPayers(before(payers), kept));
    } catch (error) {
      log.warn({ error }, 'could not delete expired data from the ledger');
    }
  }

  /** `next` processes one slice and returns whether there may be more rows. */
  async #inSlices(next: () => Promise<boolean>): Promise<void> {
    for (let slice = 0; slice < MAX_SLICES; slice++) if (this.#isStopped || !(await next())) return;
  }
}
