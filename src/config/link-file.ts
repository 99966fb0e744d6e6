import { chmod, rename, writeFile } from 'node:fs/promises';
import { ConfigFault } from './setting-reader.js';

/**
 * Keeps a link that holds a token in a file of the state folder that only its owner can read.
 * @throws ConfigFault if it cannot be written
 */
export async function keepLink(file: string, link: string): Promise<void> {
  try {
    // Writes a new file, because an existing one would keep its mode.
    await writeFile(`${file}.new`, `${link}\n`, { mode: 0o600 });
    await chmod(`${file}.new`, 0o600);
    await rename(`${file}.new`, file);
  } catch (error) {
    throw new ConfigFault(`STATE_DIR: ${file} cannot be written: ${(error as Error).message}`);
  }
}
