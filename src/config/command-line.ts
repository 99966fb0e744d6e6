import { fileURLToPath } from 'node:url';
import { join, sep } from 'node:path';
import { quoted } from '../observe/banner.js';

const OWN_FOLDER = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * What a person types to run one of the commands: an npm script in Coinslot's own repository, `npx coinslot` in the folder of a shop
 * that has Coinslot as a package.
 */
export function commandLine(name: string, folder = process.cwd()): string {
  return isOwn(folder) ? `npm run --silent ${name} --` : `npx coinslot ${name}`;
}

/** What a person types to start a server. */
export function startCommand(folder = process.cwd()): string {
  return isOwn(folder) ? 'make run' : 'npm start';
}

/** What a person types in another terminal to buy of a server with this state folder. */
export function buyCommand(stateDir: string, folder = process.cwd()): string {
  const elsewhere = stateDir === join(folder, '.coinslot') ? '' : `STATE_DIR=${quoted(stateDir)} `;
  return `${elsewhere}${commandLine('buy', folder)}`;
}

function isOwn(folder: string): boolean {
  return `${folder}${sep}` === OWN_FOLDER;
}
