import { existsSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { buildContract, compiledText, type BuiltContract } from '../../contract/compile-contract.js';
import type { Contract } from '../../contract/contract.js';
import { shopFiles } from '../../shop/load-shop.js';
import { writeCollection } from '../build/bruno-collection.js';
import { BuildFault, contractTypes, orphansOf } from '../build/shop-compilers.js';
import { applyChanges, differing, type Changes } from './changed-files.js';
import { HandlerCompiler } from './handler-compiler.js';

/** A version of the shop that compiles. `changes`: the files to write. `isSold`: whether they affect a server. */
export type Built = { contract: Contract; changes: Changes; isNewContract: boolean; isSold: boolean };

/** Files that no server reads. */
const TESTS = ['test', 'contract-tests'];

/** Builds a shop after each change, but only the parts that changed. */
export class ShopBuild {
  readonly #folder: string;
  readonly #copy: string;
  #contract: BuiltContract | undefined;
  #compiler: HandlerCompiler | undefined;
  #unsold: Changes = new Map();
  #isNewContract = true;

  /** @param copy the folder from which a server reads the contract, because the shop's own folder may change while the server starts */
  constructor(folder: string, copy: string) {
    this.#folder = folder;
    this.#copy = copy;
  }

  /**
   * @param changed paths in the folder; parts that they can't affect are not built
   * @throws BuildFault, ContractFault: all faults, with file and line; the previous build stays as it is
   */
  async build(changed: string[]): Promise<Built> {
    const contract = await this.#buildContract(changed);
    const changes = new Map([...this.#unsold, ...(await this.#compile()), ...this.#contractFiles(contract)]);
    this.#unsold = changes;
    const isSold =
      this.#isNewContract || changed.some(isData) || differing(changes).some(file => !this.#isUnsold(file));
    return { contract: contract.contract, changes, isNewContract: this.#isNewContract, isSold };
  }

  /** Called once a server is selling the latest build. */
  sold(): void {
    this.#unsold = new Map();
    this.#isNewContract = false;
  }

  async #buildContract(changed: string[]): Promise<BuiltContract> {
    const known = this.#contract;
    const { contract, handlers, types } = shopFiles(this.#folder);
    const hasTypes = existsSync(types) || !existsSync(handlers);
    if (known && hasTypes && changed.every(isCode)) return known;
    if (!existsSync(contract))
      throw new BuildFault(
        `There is no openapi.yaml in ${this.#folder}: go to the folder of your shop, or run coinslot init.`,
      );
    const built = await buildContract(this.#folder);
    if (hasTypes && built.whole === known?.whole) return (this.#contract = built);
    await this.#writeForOthers(built);
    this.#isNewContract = true;
    return (this.#contract = built);
  }

  /** Writes files that the compiler and the editor need before the version is on sale. */
  async #writeForOthers({ contract, whole }: BuiltContract): Promise<void> {
    const files = shopFiles(this.#folder);
    const written = new Map([[files.whole, whole]]);
    if (existsSync(files.handlers)) written.set(files.types, await contractTypes(this.#folder, whole));
    applyChanges(written);
    writeCollection(this.#folder, contract);
  }

  async #compile(): Promise<Changes> {
    if (!existsSync(shopFiles(this.#folder).handlers)) return new Map();
    this.#compiler ??= await HandlerCompiler.load(this.#folder);
    const compiled = this.#compiler.compile();
    const orphans = orphansOf(this.#folder).filter(file => !compiled.has(file));
    return new Map([...compiled, ...orphans.map((file): [string, undefined] => [file, undefined])]);
  }

  #contractFiles({ contract, whole, compiled }: BuiltContract): Changes {
    if (!this.#isNewContract) return new Map([[shopFiles(this.#folder).compiled, compiled]]);
    const copy = shopFiles(this.#copy);
    return new Map([
      [shopFiles(this.#folder).compiled, compiled],
      [copy.contract, whole],
      [copy.compiled, compiledText(whole, contract)],
    ]);
  }

  #isUnsold(file: string): boolean {
    const [dist, top = ''] = relative(this.#folder, file).split(sep);
    return dist === 'dist' && (TESTS.includes(top) || /^(\.tsbuildinfo|openapi\.json)$/.test(top));
  }
}

function isCode(path: string): boolean {
  return path.endsWith('.ts');
}

/** Whether a file is a data file that handlers may read while they are loaded. */
function isData(path: string): boolean {
  return path.startsWith(join('handlers', '')) && !isCode(path);
}
