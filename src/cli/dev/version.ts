import '../../rails/solana/silence-bigint-warning.js';
import { sep } from 'node:path';
import { ContractFault } from '../../contract/contract.js';
import { loadShop } from '../../shop/load-shop.js';
import { writeErr } from '../terminal.js';

/*
 * A server of `coinslot dev`, which forks it and starts it in two steps: `load` while the previous version is still selling, so that a
 * version that can't be loaded replaces nothing, and `start` after the previous version has ended.
 * node version.js <folder of the contract>
 */

export type Order = 'load' | 'start';
/** The messages that this process sends; `ready` comes from main.ts. A version that fails prints the reason to stderr and ends. */
export type VersionMessage = { type: 'loaded' } | { type: 'ready'; banner: string };

const [, , folder = '.'] = process.argv;
const START = new URL('../../main.js', import.meta.url).href;
const LARGEST_PART = new URL('../../compose.js', import.meta.url).href;

async function load(): Promise<void> {
  try {
    await loadShop(folder);
    process.send?.({ type: 'loaded' } satisfies VersionMessage);
  } catch (error) {
    const said = error instanceof ContractFault ? error.message : String((error as Error).stack);
    // The folder of the contract is a copy, which messages should not mention.
    writeErr(`\n${said.replaceAll(`${folder}${sep}`, '')}\n${placeOf((error as Error).cause)}`);
    process.exit(1);
  }
}

/** The first line of the stack trace that points into the shop's handlers; empty if none does. */
function placeOf(cause: unknown): string {
  const frames = cause instanceof Error ? (cause.stack?.match(/^ +at .*$/gm) ?? []) : [];
  const own = frames.find(frame => /\/dist\/handlers\//.test(frame));
  return own === undefined ? '' : `${own}\n`;
}

// This process ends when coinslot dev ends, even if coinslot dev was killed.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
process.on('message', (order: Order) => void (order === 'load' ? load() : import(START)));
// Loaded ahead of time, because loading this takes most of a version's start-up time.
await import(LARGEST_PART);
