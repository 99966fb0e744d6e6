import { fileURLToPath } from 'node:url';
import { join, sep } from 'node:path';
import { quoted } from '../observe/banner.js';

const OWN_FOLDER = fileURLToPath(new URL('../../../', import.meta.url));

/** The command line of a program: an npm script in Coinslot's own repository, `npx coinslot` in a shop that has Coinslot as a package. */
export function commandLine(name: string, folder = process.cwd()): string {
  return isOwn(folder) ? `npm run --silent ${name} --` : `npx coinslot ${name}`;
}

/** The command line that starts a server. */
export function startCommand(folder = process.cwd()): string {
  return isOwn(folder) ? 'make run' : 'npm start';
}

/** The command line that buys from a server with this state folder. */
export function buyCommand(stateDir: string, folder = process.cwd()): string {
  const elsewhere = stateDir === join(folder, '.coinslot') ? '' : `STATE_DIR=${quoted(stateDir)} `;
  return `${elsewhere}${commandLine('buy', folder)}`;
}

function isOwn(folder: string): boolean {
  return `${folder}${sep}` === OWN_FOLDER;
}
