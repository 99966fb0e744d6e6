import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { SharedMeta } from '../upstreams/people/respondents.js';

/** A browser that was opened with the operator's token. */
export type Session = {
  /** Random and lasting: who answers, for one reply per person and question. */
  respondent: string;
  /** ms since 1970; signed in until then. 0 after signing out. */
  until: number;
};

const SESSION_MS = 7 * 24 * 3_600_000;
const RESPONDENT = /^[A-Za-z0-9_-]{22}$/;
/** Shorter ones can be guessed, however slow we are made to answer. */
const MIN_TOKEN_CHARACTERS = 16;

/**
 * Signs people in with the operator's token. Sessions are signed with a key made from the token: every server with the same
 * token knows them, and a new token ends them all. Only that somebody signed out is stored, where all servers look.
 */
export class Sessions {
  readonly #token: Buffer;
  readonly #key: Buffer;
  readonly #notes: SharedMeta;
  readonly #now: () => number;

  /** @throws RangeError when the token has fewer than 16 characters. */
  constructor(token: string, notes: SharedMeta, now: () => number) {
    if (token.length < MIN_TOKEN_CHARACTERS)
      throw new RangeError(
        `The panel's token needs at least ${MIN_TOKEN_CHARACTERS} characters, better 32 random ones.`,
      );
    this.#token = digest(token);
    this.#key = createHmac('sha256', token).update('coinslot panel session v1').digest();
    this.#notes = notes;
    this.#now = now;
  }

  /** Whether it is the operator's token, compared in constant time. */
  opens(token: string): boolean {
    return timingSafeEqual(digest(token), this.#token);
  }

  /** A new session; a respondent who comes back stays the same one. Rejects when the ledger can't be read. */
  async begin(before: Session | undefined): Promise<Session> {
    const until = this.#now() + SESSION_MS;
    if (before === undefined) return { respondent: randomBytes(16).toString('base64url'), until };
    // Later than any that was ended, also where another server's clock is ahead.
    return { ...before, until: Math.max(until, (await this.#endedUntil(before)) + 1) };
  }

  /** Rejects when the ledger can't be read: whoever signed out must not come back while it is out of reach. */
  async isOpen(session: Session): Promise<boolean> {
    return session.until > this.#now() && session.until > (await this.#endedUntil(session));
  }

  /** Ends every session that the respondent has begun, at every server. Resolves when it is on disk. */
  async end({ respondent, until }: Session): Promise<void> {
    await this.#notes.setMeta(endedKey(respondent), String(until));
  }

  /** The greatest `until` of the sessions that the respondent has ended. */
  async #endedUntil({ respondent }: Session): Promise<number> {
    return Number((await this.#notes.getMeta(endedKey(respondent))) ?? 0);
  }

  /** Cookie value: nothing secret, but signed. */
  write({ respondent, until }: Session): string {
    const text = `${respondent}.${until}`;
    return `${text}.${this.#sign(`session ${text}`)}`;
  }

  /** The session of a cookie value, open or not; undefined when it was not signed by us. */
  read(cookie: string | undefined): Session | undefined {
    const [respondent = '', until = '', signature = '', ...rest] = (cookie ?? '').slice(0, 200).split('.');
    if (rest.length > 0 || !RESPONDENT.test(respondent) || !/^\d{1,15}$/.test(until)) return undefined;
    if (!same(signature, this.#sign(`session ${respondent}.${until}`))) return undefined;
    return { respondent, until: Number(until) };
  }

  /** What a form of this session must carry, so that no other site can send it. */
  formKey({ respondent, until }: Session): string {
    return this.#sign(`form ${respondent}.${until}`);
  }

  checkFormKey(session: Session, key: string): boolean {
    return same(key, this.formKey(session));
  }

  get lifeMs(): number {
    return SESSION_MS;
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}

function endedKey(respondent: string): string {
  return `panel-session-ended:${respondent}`;
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function same(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}
