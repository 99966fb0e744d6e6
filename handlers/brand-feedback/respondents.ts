import { NOT_CHARGED, UpstreamFailure, type SharedNotes } from 'coinslot';

export type RespondentsOptions = {
  notes: SharedNotes;
  /** Respondents count as present for this long after they were last seen. Default 10 minutes. */
  presentMs?: number;
  /** ms since 1970. Default: the system clock. */
  now?: () => number;
};

const SEEN_KEY = 'panel-respondent-seen';
/** An open page sends a request every 30 s; not every request is written to the ledger. */
const WRITE_EVERY_MS = 30_000;
/** Longer than the gap between two stored polls of an open page: it polls every 30 s, and not every poll is stored. */
const PAGE_OPEN_MS = 75_000;
const TYPING_KEY = 'panel-typing';
/** Longer than the ten seconds after which the page reports again that somebody is typing. */
const TYPING_MS = 25_000;
const MAX_TYPED = 50;
const ABSENT_RETRY_SECONDS = 60;
const MINUTE_MS = 60_000;

/** Records when a signed-in respondent was last seen on the panel page of any server. */
export class Respondents {
  readonly #notes: SharedNotes;
  readonly #presentMs: number;
  readonly #now: () => number;
  #writtenAt = -Infinity;

  constructor({ notes, presentMs = 10 * MINUTE_MS, now = Date.now }: RespondentsOptions) {
    this.#notes = notes;
    this.#presentMs = presentMs;
    this.#now = now;
  }

  /** Records that a respondent is present, at most every 30 s. Never rejects, because the next request records it again. */
  async record(): Promise<void> {
    const now = this.#now();
    if (now - this.#writtenAt < WRITE_EVERY_MS) return;
    const before = this.#writtenAt;
    this.#writtenAt = now;
    await this.#notes.setMeta(SEEN_KEY, String(now)).catch(() => {
      this.#writtenAt = before;
    });
  }

  /** Records that somebody is typing a reply to a question. Only the latest 50 questions are kept. Never rejects. */
  async recordTyping(question: string): Promise<void> {
    const now = this.#now();
    const others = (await this.#typed().catch(() => [])).filter(
      ([id, at]) => id !== question && now - at < TYPING_MS,
    );
    const latest = [...others, [question, now]].slice(-MAX_TYPED);
    await this.#notes.setMeta(TYPING_KEY, JSON.stringify(latest)).catch(() => {});
  }

  /** Whether somebody was typing a reply to a question in the last 25 s. Rejects if the ledger cannot be read. */
  async isTyping(question: string): Promise<boolean> {
    const typed = await this.#typed();
    return typed.some(([id, at]) => id === question && this.#now() - at < TYPING_MS);
  }

  /** Whether a signed-in respondent has the page open. Rejects if the ledger cannot be read. */
  async isPageOpen(): Promise<boolean> {
    const seen = await this.#notes.getMeta(SEEN_KEY);
    return seen !== undefined && this.#now() - Number(seen) <= PAGE_OPEN_MS;
  }

  /** Questions, each with the time at which somebody last typed a reply to it. */
  async #typed(): Promise<[string, number][]> {
    return JSON.parse((await this.#notes.getMeta(TYPING_KEY)) ?? '[]') as [string, number][];
  }

  /**
   * Checked before the payment.
   * @throws UpstreamFailure `unavailable` if no respondent is present or the ledger cannot be read
   */
  async demand(): Promise<void> {
    const absence = await this.absence().catch((cause: unknown) => {
      throw new UpstreamFailure(
        'unavailable',
        'The server cannot check whether respondents are present; try again.',
        { cause },
      );
    });
    if (absence === undefined) return;
    throw new UpstreamFailure(
      'unavailable',
      `No respondents are present at the moment. ${NOT_CHARGED}; try again later.`,
      { retryAfterSeconds: ABSENT_RETRY_SECONDS },
    );
  }

  /** Undefined while respondents are present, otherwise a message for the operator. Rejects if the ledger cannot be read. */
  async absence(): Promise<string | undefined> {
    const seen = await this.#notes.getMeta(SEEN_KEY);
    const age = seen === undefined ? undefined : this.#now() - Number(seen);
    if (age !== undefined && age <= this.#presentMs) return undefined;
    if (age === undefined) return 'no respondent has opened the panel page yet: no orders are accepted';
    return `no respondent has been seen on the panel page for ${Math.floor(age / MINUTE_MS)} minutes: no orders are accepted`;
  }
}
