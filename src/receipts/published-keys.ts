import type { Ledger } from '../ledger/store.js';
import { nameOf, type PublicKey } from './did-document.js';

/** The prefix of the ledger's notes that contain the public keys of its servers. */
const NOTES = 'receipt key ';
/**
 * The maximum number of published keys; beyond it, the oldest are dropped. There are more only if a server generates a new key at each
 * start.
 */
export const MAX_KEYS = 64;

type Notes = Pick<Ledger, 'keepMeta' | 'notesOf' | 'forgetNotes'>;

/** The public keys of all servers of a ledger, current and former ones, newest first. Private keys never leave their servers. */
export class PublishedKeys {
  readonly #ledger: Notes;
  readonly #now: () => number;

  constructor(ledger: Notes, now: () => number = Date.now) {
    this.#ledger = ledger;
    this.#now = now;
  }

  /** Records a key before anything is signed with it. @returns how many old keys were dropped for it */
  async publish({ name, x }: PublicKey): Promise<number> {
    await this.#ledger.keepMeta(NOTES + name, `${this.#now()} ${x}`);
    const all = await this.#read();
    const tooMany = all.filter(key => key.name !== name).slice(MAX_KEYS - 1);
    if (tooMany.length > 0) await this.#ledger.forgetNotes(tooMany.map(key => NOTES + key.name));
    return tooMany.length;
  }

  async all(): Promise<PublicKey[]> {
    return (await this.#read()).map(({ name, x }) => ({ name, x }));
  }

  async #read(): Promise<(PublicKey & { since: number })[]> {
    const notes = await this.#ledger.notesOf(NOTES);
    return notes
      .map(({ value }) => {
        const [since = '', x = ''] = value.split(' ');
        return { name: nameOf(x), x, since: Number(since) };
      })
      .sort((a, b) => b.since - a.since || (a.name < b.name ? -1 : 1));
  }
}
