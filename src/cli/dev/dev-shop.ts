import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ContractFault } from '../../contract/contract.js';
import { nameWarning } from '../../shop/shop-name.js';
import { BuildFault } from '../build/shop-compilers.js';
import { writeErr, writeOut } from '../terminal.js';
import { applyChanges } from './changed-files.js';
import type { Built, ShopBuild } from './shop-build.js';
import { soldTable } from './sold-table.js';
import type { Versions } from './versions.js';

type Parts = { folder: string; url: string; build: ShopBuild; versions: Versions };

const OLD_CALLS_MS = 3_000;

/** Builds and sells each saved version, one at a time: changes saved meanwhile are built next. */
export class DevShop {
  readonly #parts: Parts;
  #changed = new Set<string>();
  #working: Promise<void> | undefined;
  #hasFault = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Resolves when all changes so far are on sale or reported as faulty. */
  changed(paths: string[]): Promise<void> {
    for (const path of paths) this.#changed.add(path);
    return (this.#working ??= this.#work().finally(() => (this.#working = undefined)));
  }

  /** Called when the server ends unexpectedly. */
  crashed(): void {
    say('The server has ended. Saving a file starts it again.');
  }

  async #work(): Promise<void> {
    do {
      const changed = [...this.#changed];
      this.#changed.clear();
      await this.#turn(changed);
    } while (this.#changed.size > 0);
  }

  async #turn(changed: string[]): Promise<void> {
    const since = performance.now();
    const { build, versions } = this.#parts;
    let built;
    try {
      built = await build.build(changed);
    } catch (error) {
      if (!(error instanceof BuildFault || error instanceof ContractFault)) throw error;
      writeErr(`\n${error.message}\n`);
      return this.#refused(versions.sells);
    }
    if (built.isSold || !versions.sells) return this.#sell(built, changed, since);
    applyChanges(built.changes);
    build.sold();
    if (this.#hasFault) say('Fixed. The version on sale needs no restart.');
    this.#hasFault = false;
  }

  async #sell({ changes, contract, isNewContract }: Built, changed: string[], since: number): Promise<void> {
    const { build, versions, url, folder } = this.#parts;
    const late = setTimeout(() => say('The previous version finishes its calls first.'), OLD_CALLS_MS);
    const outcome = await versions.sell(changes).finally(() => clearTimeout(late));
    if (outcome.sells !== 'new') return this.#refused(outcome.sells === 'before');
    build.sold();
    this.#hasFault = false;
    if (isNewContract) {
      writeOut(`${outcome.banner}${soldTable(contract, url)}`);
      const warning = nameWarning({ contract }, folder);
      if (warning !== undefined) say(`openapi.yaml: ${warning}`);
    }
    const seconds = ((performance.now() - since) / 1000).toFixed(1);
    const files = named(changed, folder);
    say(`On sale after ${seconds} s${files && ': '}${files}`);
  }

  #refused(sells: boolean): void {
    this.#hasFault = true;
    const before = 'Not on sale. The previous version keeps selling.';
    // Written to the same stream as the fault, so that this line comes after the fault.
    say(sells ? before : 'Nothing is on sale until this is fixed.', writeErr);
  }
}

function say(sentence: string, write = writeOut): void {
  write(`${new Date().toTimeString().slice(0, 8)}  ${sentence}\n`);
}

/** The names of the changed files, without an editor's temporary files that no longer exist. */
function named(changed: string[], folder: string): string {
  const paths = changed.filter(path => existsSync(join(folder, path)));
  return paths.length > 3 ? `${paths.slice(0, 3).join(', ')} and ${paths.length - 3} more` : paths.join(', ');
}
