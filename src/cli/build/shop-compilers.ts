import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { importInstalled } from '../installed-program.js';

/** The shop can't be built. `message` says why and what to do. */
export class BuildFault extends Error {}

type Generator = {
  default: (document: string) => Promise<unknown>;
  astToString: (types: unknown) => string;
  COMMENT_HEADER: string;
};

/**
 * The types of a contract, as the command openapi-typescript writes them.
 * @param folder the shop's folder; the package is a development dependency there, because a running server needs no compiler
 * @param whole the whole document, as JSON
 */
export async function contractTypes(folder: string, whole: string): Promise<string> {
  const generator = await compilerOf<Generator>(folder, 'openapi-typescript');
  return `${generator.COMMENT_HEADER}${generator.astToString(await generator.default(whole))}`;
}

/** @throws BuildFault if the package is not installed in the shop's folder, or in a folder above it */
export async function compilerOf<T>(folder: string, name: string): Promise<T> {
  const found = await importInstalled<T>(folder, name);
  if (found) return found;
  throw notInstalled(name);
}

/** The message for a build that lacks a compiler. */
export function notInstalled(name: string): BuildFault {
  return new BuildFault(
    `The package ${name} is not installed, and handlers/ can't be compiled without it: npm install --save-dev ${name}`,
  );
}

/** Removes compiled files whose source is gone, because they would still be loaded. */
export function orphansOf(folder: string): string[] {
  return ['handlers', 'test'].flatMap(name => {
    const compiled = join(folder, 'dist', name);
    if (!existsSync(compiled)) return [];
    return readdirSync(compiled, { recursive: true, encoding: 'utf8' })
      .filter(entry => /\.js(\.map)?$/.test(entry))
      .filter(entry => !existsSync(join(folder, name, entry.replace(/\.js(\.map)?$/, '.ts'))))
      .map(entry => join(compiled, entry));
  });
}
