import { applyChanges, type Changes } from './changed-files.js';
import { VersionFault, VersionProcess } from './version-process.js';

/** The outcome of an attempt to sell a version. `before`: the previous version keeps selling; `none`: no version does. */
export type Outcome = { sells: 'new'; banner: string } | { sells: 'before' | 'none' };

/**
 * The server that is selling, and the next one: a version replaces the previous one only after it was loaded, and the previous one returns
 * if the new one can't start. At most one of them uses the ledger and the port.
 */
export class Versions {
  readonly #make: () => VersionProcess;
  /** All running processes. */
  readonly #live = new Set<VersionProcess>();
  #selling: VersionProcess | undefined;
  /** A process that has loaded everything except the shop. */
  #next: VersionProcess | undefined;
  #closed = false;

  /**
   * @param copy the folder from which servers read the contract
   * @param crashed called if the server that is selling ends unexpectedly
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

  /** Writes the files of a version and starts selling with it. If that fails, its files and its server are removed. */
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

  /** Ends all processes; `SIGKILL` does not wait for open calls. */
  async close(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#live].map(each => each.stop(each === this.#selling ? signal : 'SIGKILL')));
  }

  async #begin(version: VersionProcess): Promise<string> {
    if (this.#closed) throw new VersionFault('The version is not needed any more.');
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
