import { readFileSync, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Log } from '../net/log.js';

const MAX_BYTES = 8 * 1024 * 1024;
const LOOK_MS = 2_000;
const NOBODY: ReadonlySet<string> = new Set();

/** The file can't be used; `message` says why. */
export class BlockedPayersFault extends Error {}

type IsPayer = (text: string) => boolean;
type Options = { file: string | undefined; isPayer: IsPayer; log: Log };

/**
 * The payers listed in a file, one per line; `#` starts a comment.
 * @throws BlockedPayersFault
 */
export function readBlockedPayers(file: string, isPayer: IsPayer): ReadonlySet<string> {
  const payers = new Set<string>();
  for (const [at, line] of readLines(file).entries()) {
    const payer = line.replace(/#.*/, '').trim();
    if (payer === '') continue;
    if (!isPayer(payer))
      throw new BlockedPayersFault(`line ${at + 1} is not an address: '${payer.slice(0, 60)}'`);
    payers.add(payer);
  }
  return payers;
}

function readLines(file: string): string[] {
  try {
    if (statSync(file).size > MAX_BYTES)
      throw new BlockedPayersFault(`it is larger than ${MAX_BYTES / 1024 / 1024} MB`);
    return readFileSync(file, 'utf8').split('\n');
  } catch (error) {
    if (error instanceof BlockedPayersFault) throw error;
    throw new BlockedPayersFault((error as Error).message);
  }
}

/** Payers to whom nothing is sold. The file is reread when it changes; while it is missing or faulty, the last list stays in force. */
export class BlockedPayers {
  readonly #options: Options;
  #payers = NOBODY;
  #seen: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  /** @throws BlockedPayersFault if the file can't be used now */
  async start(): Promise<void> {
    const { file, isPayer } = this.#options;
    if (file === undefined) return;
    this.#seen = await stamp(file);
    this.#payers = readBlockedPayers(file, isPayer);
    this.#timer = setInterval(() => void this.look(), LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  has(payer: string): boolean {
    return this.#payers.has(payer);
  }

  /** Reads the file again if it has changed. Never rejects. */
  async look(): Promise<void> {
    const { file, isPayer, log } = this.#options;
    if (file === undefined) return;
    const seen = await stamp(file);
    if (seen === this.#seen) return;
    this.#seen = seen;
    try {
      this.#payers = readBlockedPayers(file, isPayer);
      log.info({ payers: this.#payers.size }, 'BLOCKED_PAYERS was reread');
    } catch (error) {
      const blocked = { payers: this.#payers.size };
      const { message: why } = error as Error;
      log.error(
        { ...blocked, why },
        'BLOCKED_PAYERS has changed and can’t be used: the payers it named before stay blocked',
      );
    }
  }
}

/** A value that changes whenever the file does; undefined while there is no file. */
async function stamp(file: string): Promise<string | undefined> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return found && [found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ');
}
