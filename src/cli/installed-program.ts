import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

type Manifest = { version?: string; bin?: Record<string, string>; main?: string; exports?: unknown };

/**
 * The file of a program in a package, to run with `node`.
 * @param folder the folder where the package is installed, or one of its subfolders
 * @returns undefined if it is not installed
 */
export function installedProgram(folder: string, packageName: string, program: string): string | undefined {
  const found = findInstalled(folder, packageName);
  return found && resolve(found.at, found.manifest.bin?.[program] ?? '');
}

/**
 * Loads a package that is installed in a shop, not in Coinslot.
 * @returns undefined if it is not installed
 */
export async function importInstalled<T>(folder: string, packageName: string): Promise<T | undefined> {
  const found = findInstalled(folder, packageName);
  if (!found) return undefined;
  const { exports, main = 'index.js' } = found.manifest;
  const entry = entryOf((exports as Record<string, unknown> | undefined)?.['.']) ?? main;
  return (await import(pathToFileURL(join(found.at, entry)).href)) as T;
}

/** The package.json of a package that is installed in a folder or above it. */
export function installedManifest(folder: string, packageName: string): Manifest | undefined {
  return findInstalled(folder, packageName)?.manifest;
}

function findInstalled(folder: string, packageName: string): { at: string; manifest: Manifest } | undefined {
  for (let above = folder; ; above = dirname(above)) {
    const at = join(above, 'node_modules', packageName);
    const file = join(at, 'package.json');
    if (existsSync(file)) return { at, manifest: JSON.parse(readFileSync(file, 'utf8')) as Manifest };
    if (dirname(above) === above) return undefined;
  }
}

/** The file that `import` loads, from an entry of `exports` that may have conditions. */
function entryOf(conditions: unknown): string | undefined {
  if (typeof conditions !== 'object' || conditions === null)
    return typeof conditions === 'string' ? conditions : undefined;
  const { import: imported, default: fallback } = conditions as Record<string, unknown>;
  return entryOf(imported) ?? entryOf(fallback);
}
