import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { checkHandlers } from '../contract/check-handlers.js';
import { compiledContract, ContractFault, type Contract } from '../contract/contract.js';
import type { AnyFree, AnyServed } from '../contract/operation.js';
import type { HandlerContext, Shown } from './handler-context.js';
import type { Declared } from './settings.js';

/** The handlers of a shop by operationId, as its handlers/index.ts exports them (see `HandlersOf`). */
export type HandlerTable = Readonly<
  Record<string, ((context: HandlerContext) => AnyOpened | Promise<AnyOpened>) & Declared>
>;

/** What an entry of the table returns, whatever its operation. */
export type AnyOpened = (AnyServed | AnyFree) & Shown;

/** The contract and handlers of a folder. */
export type Shop = { contract: Contract; handlers: HandlerTable };

/** The folder of this program; its repository is a shop, too. */
const PROGRAM = fileURLToPath(new URL('../../../', import.meta.url));

/** The paths of a shop's files. Compiled ones are in dist/ and may be missing. */
export function shopFiles(folder: string) {
  return {
    contract: join(folder, 'openapi.yaml'),
    compiled: join(folder, 'dist', 'openapi.json'),
    whole: join(folder, 'generated', 'openapi.json'),
    types: join(folder, 'generated', 'openapi.d.ts'),
    handlers: join(folder, 'handlers', 'index.ts'),
    compiledHandlers: isProgram(folder)
      ? fileURLToPath(new URL('../../handlers/index.js', import.meta.url))
      : join(folder, 'dist', 'handlers', 'index.js'),
  };
}

/** Whether a folder is this program's own repository. Its handlers are compiled next to the program, wherever that is. */
export function isProgram(folder: string): boolean {
  return existsSync(folder) && realpathSync(folder) === realpathSync(PROGRAM);
}

/**
 * Loads the contract of a folder and the handlers that serve it.
 * @throws ContractFault that says what does not match, and what to do
 */
export async function loadShop(folder: string): Promise<Shop> {
  const files = shopFiles(folder);
  if (!existsSync(files.contract))
    throw new ContractFault(
      `There is no openapi.yaml in ${folder}. Start in the folder of a shop, set SHOP_DIR to it, or write one with coinslot init.`,
    );
  const from = [files.contract, pathToFileURL(files.compiled)] as const;
  const contract = compiledContract(...from) ?? (await parsed(...from));
  const handlers = await loadHandlers(files);
  checkHandlers(contract, handlers);
  return { contract, handlers };
}

/** The code that reads YAML and completes a contract takes a tenth of a second to load, and a built shop does not need it. */
async function parsed(file: string, compiled: URL): Promise<Contract> {
  const { loadAnyContract } = await import('../contract/parse-contract.js');
  return loadAnyContract(file, compiled);
}

async function loadHandlers({
  handlers,
  compiledHandlers,
}: ReturnType<typeof shopFiles>): Promise<HandlerTable> {
  if (!existsSync(compiledHandlers)) {
    // A shop that only sells existing APIs has no handlers.
    if (!existsSync(handlers)) return {};
    throw new ContractFault(`${handlers} is not compiled: build the shop (npm run build).`);
  }
  let module: { handlers?: unknown };
  try {
    module = (await import(pathToFileURL(compiledHandlers).href)) as { handlers?: unknown };
  } catch (error) {
    throw new ContractFault(`${compiledHandlers} can't be loaded: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const table = module.handlers;
  if (typeof table !== 'object' || table === null)
    throw new ContractFault(
      `${handlers} must export handlers, an object with a function for each operationId.`,
    );
  for (const [id, create] of Object.entries(table))
    if (typeof create !== 'function')
      throw new ContractFault(`${handlers}: ${id} must be a function from the context to { call }.`);
  return table as HandlerTable;
}
