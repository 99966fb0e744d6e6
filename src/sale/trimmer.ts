import type { Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { Rail } from '../rails/rail.js';

const INTERVAL_MS = 60_000;
/** A slice has a hundred rows. Bounds one round of each kind. */
const MAX_SLICES = 100;

type Options = {
  ledger: Pick<Ledger, 'condenseSales'>;
  rail: Pick<Rail, 'condense'>;
  log: Log;
};

/** Takes out of the ledger, slice by slice, what nothing reads any more. */
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
    const { ledger, rail, log } = this.#options;
    try {
      const condense = (evidence: string): string => rail.condense({ evidence });
      await this.#inSlices(() => ledger.condenseSales(condense));
    } catch (error) {
      log.warn({ error }, 'could not take out of the ledger what nothing reads any more');
    }
  }

  /** `next` returns whether there may be more. */
  async #inSlices(next: () => Promise<boolean>): Promise<void> {
    for (let slice = 0; slice < MAX_SLICES; slice++) if (this.#isStopped || !(await next())) return;
  }
}
