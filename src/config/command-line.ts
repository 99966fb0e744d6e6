import { fileURLToPath } from 'node:url';
import { sep } from 'node:path';

const OWN_FOLDER = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * What a person types to run one of the commands: an npm script in Coinslot's own repository, `npx coinslot` in the folder of a shop
 * that has Coinslot as a package.
 */
export function commandLine(name: string, folder = process.cwd()): string {
  return `${folder}${sep}` === OWN_FOLDER ? `npm run --silent ${name} --` : `npx coinslot ${name}`;
}
