import { NOT_CHARGED } from '../../contract/not-charged.js';
import { UpstreamFailure } from '../../net/failure.js';

/** Texts that outlive a server and are shared by all servers on one ledger. */
export type SharedMeta = {
  getMeta(key: string): Promise<string | undefined>;
  setMeta(key: string, value: string): Promise<void>;
};

export type RespondentsOptions = {
  notes: SharedMeta;
  /** How long after they were last seen respondents count as present. Default 10 minutes. */
  presentMs?: number;
  /** ms since 1970. Default the clock. */
  now?: () => number;
};

const SEEN_KEY = 'panel-respondent-seen';
/** A page that stays open asks every 30 s; the ledger is not written for each of its requests. */
const WRITE_EVERY_MS = 30_000;
const ABSENT_RETRY_SECONDS = 60;
const MINUTE_MS = 60_000;

/** When somebody who is signed in was last seen on the panel page, at whichever server. */
export class Respondents {
  readonly #notes: SharedMeta;
  readonly #presentMs: number;
  readonly #now: () => number;
  #writtenAt = -Infinity;

  constructor({ notes, presentMs = 10 * MINUTE_MS, now = Date.now }: RespondentsOptions) {
    this.#notes = notes;
    this.#presentMs = presentMs;
    this.#now = now;
  }

  /** Records that a respondent is here; written at most every 30 s. Never rejects: the next request records it again. */
  async record(): Promise<void> {
    const now = this.#now();
    if (now - this.#writtenAt < WRITE_EVERY_MS) return;
    const before = this.#writtenAt;
    this.#writtenAt = now;
    await this.#notes.setMeta(SEEN_KEY, String(now)).catch(() => {
      this.#writtenAt = before;
    });
  }

  /**
   * Asked before any money is taken.
   * @throws UpstreamFailure `unavailable` when nobody was seen lately, or the ledger can't tell.
   */
  async demand(): Promise<void> {
    const absence = await this.absence().catch((cause: unknown) => {
      throw new UpstreamFailure(
        'unavailable',
        'Whether respondents are present can not be read at the moment; try again.',
        { cause },
      );
    });
    if (absence === undefined) return;
    throw new UpstreamFailure(
      'unavailable',
      `No respondents are present at the moment, so nobody would answer. ${NOT_CHARGED}; try again later.`,
      { retryAfterSeconds: ABSENT_RETRY_SECONDS },
    );
  }

  /** Undefined while respondents are present, else a sentence for the operator. Rejects when the ledger can't be read. */
  async absence(): Promise<string | undefined> {
    const seen = await this.#notes.getMeta(SEEN_KEY);
    const age = seen === undefined ? undefined : this.#now() - Number(seen);
    if (age !== undefined && age <= this.#presentMs) return undefined;
    if (age === undefined) return 'no respondent was ever seen on the panel page: nothing is sold';
    return `no respondent was seen on the panel page for ${Math.floor(age / MINUTE_MS)} minutes: nothing is sold`;
  }
}
