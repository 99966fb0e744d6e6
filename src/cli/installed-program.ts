import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/**
 * The file of a program that a package brings, for `node`.
 * @param folder where the package is installed, or a folder below that
 * @returns undefined if it is not installed
 */
export function installedProgram(folder: string, packageName: string, program: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const installed = join(at, 'node_modules', packageName);
    if (existsSync(join(installed, 'package.json'))) {
      const { bin } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
        bin: Record<string, string>;
      };
      return resolve(installed, bin[program] ?? '');
    }
    if (dirname(at) === at) return undefined;
  }
}
