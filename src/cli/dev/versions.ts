import { applyChanges, type Changes } from './changed-files.js';
import { VersionFault, VersionProcess } from './version-process.js';

/** The outcome of a version. `before`: another one sells in its place, or none does. */
export type Outcome = { sells: 'new'; banner: string } | { sells: 'before' | 'none' };

/**
 * The server that sells, and the one that will: a version takes the place of the one before only after it was loaded, and gives that
 * back if it can't start. At most one of them uses the ledger and the port.
 */
export class Versions {
  readonly #make: () => VersionProcess;
  /** All that live. */
  readonly #live = new Set<VersionProcess>();
  #selling: VersionProcess | undefined;
  /** Has loaded everything but the shop. */
  #next: VersionProcess | undefined;
  #closed = false;

  /**
   * @param copy the folder from which they read the contract
   * @param crashed called if the one that sells ends by itself
   */
  constructor(copy: string, env: NodeJS.ProcessEnv, crashed: () => void) {
    this.#make = () => {
      const made = new VersionProcess(copy, env, ended => {
        this.#live.delete(ended);
        if (this.#next === ended) this.#next = undefined;
        if (this.#selling !== ended) return;
        this.#selling = undefined;
        if (!this.#closed) crashed();
      });
      this.#live.add(made);
      return made;
    };
    this.#next = this.#make();
  }

  get sells(): boolean {
    return this.#selling !== undefined;
  }

  /** Writes the files of a version and sells it. If it can't be sold, neither its files nor its server stay. */
  async sell(changes: Changes): Promise<Outcome> {
    const undone = applyChanges(changes);
    const before = this.#selling;
    try {
      const next = this.#next ?? this.#make();
      await next.load();
      this.#selling = undefined;
      await before?.stop();
      return { sells: 'new', banner: await this.#begin(next) };
    } catch (error) {
      if (!(error instanceof VersionFault)) throw error;
      applyChanges(undone);
      if (this.#selling || !before || this.#closed) return { sells: this.#selling ? 'before' : 'none' };
      return { sells: (await this.#sellAgain()) ? 'before' : 'none' };
    } finally {
      if (!this.#closed) this.#next ??= this.#make();
    }
  }

  /** Ends all; `SIGKILL` does not wait for open calls. */
  async close(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#live].map(each => each.stop(each === this.#selling ? signal : 'SIGKILL')));
  }

  async #begin(version: VersionProcess): Promise<string> {
    if (this.#closed) throw new VersionFault('It is not needed any more.');
    if (this.#next === version) this.#next = undefined;
    const banner = await version.start();
    this.#selling = version;
    return banner;
  }

  async #sellAgain(): Promise<boolean> {
    try {
      const again = this.#make();
      await again.load();
      await this.#begin(again);
      return true;
    } catch (error) {
      if (!(error instanceof VersionFault)) throw error;
      return false;
    }
  }
}
