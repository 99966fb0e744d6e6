import { existsSync } from 'node:fs';
import { ConfigFault } from '../config/setting-reader.js';

const PACKAGE = 'coinslot-sandbox';

/**
 * Loads a module of the sandbox's package, which a server that sells for real does not need. The engine reaches the sandbox only through
 * this function. In this repository the sandbox is compiled with the engine.
 * @param module path below src/, such as `sandbox/child.js`
 * @param purpose the feature that needs it; the message begins with it
 * @throws ConfigFault if the package is not installed
 */
export async function importFromSandbox<T>(module: string, purpose: string): Promise<T> {
  const beside = new URL(`../${module}`, import.meta.url);
  return (await import(existsSync(beside) ? beside.href : placeOf(module, purpose))) as T;
}

function placeOf(module: string, purpose: string): string {
  try {
    return import.meta.resolve(`${PACKAGE}/${module}`);
  } catch {
    throw new ConfigFault(
      `${purpose} needs the package ${PACKAGE}, which is not installed here. If package.json has it in devDependencies, as coinslot ` +
        `init writes it: npm install --include=dev. Otherwise: npm install --save-dev ${PACKAGE}, or the file that make package ` +
        `wrote, ${PACKAGE}-<version>.tgz. (A server that sells for real does not need it: NETWORK=mainnet.)`,
    );
  }
}
