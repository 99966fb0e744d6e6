import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Short strings by key, shared by all servers of a ledger. A key begins with the name of its writer. */
export type SharedNotes = {
  getMeta(key: string): Promise<string | undefined>;
  setMeta(key: string, value: string): Promise<void>;
};

/** A browser that signed in with the operator's token. */
export type Session = {
  /** Random id of the visitor, kept after signing out, so that a page can allow something once per visitor. */
  visitor: string;
  /** End of the session, ms since 1970; 0 after signing out. */
  until: number;
};

const SESSION_MS = 7 * 24 * 3_600_000;
const VISITOR = /^[A-Za-z0-9_-]{22}$/;
/** Shorter tokens can be guessed despite the rate limit. */
const MIN_TOKEN_CHARACTERS = 16;

/**
 * Signs people in with the operator's token. Sessions are signed with a key derived from the token: every server with the same
 * token accepts them, and a new token ends them all. Only ended sessions are stored, in the ledger that all servers share.
 */
export class Sessions {
  readonly #token: Buffer;
  readonly #key: Buffer;
  readonly #notes: SharedNotes;
  readonly #page: string;
  readonly #now: () => number;

  /**
   * @param page the name of the page; a session of one page does not open another, even with the same token
   * @throws RangeError if the token has fewer than 16 characters.
   */
  constructor(token: string, notes: SharedNotes, now: () => number, page: string) {
    if (token.length < MIN_TOKEN_CHARACTERS)
      throw new RangeError(
        `The token of a page must have at least ${MIN_TOKEN_CHARACTERS} characters; use 32 random ones.`,
      );
    this.#token = digest(token);
    this.#key = createHmac('sha256', token).update(`coinslot ${page} session v1`).digest();
    this.#notes = notes;
    this.#page = page;
    this.#now = now;
  }

  /** Whether the token is the operator's. Compares in constant time. */
  opens(token: string): boolean {
    return timingSafeEqual(digest(token), this.#token);
  }

  /** Begins a session. A returning visitor keeps the same id. Rejects if the ledger cannot be read. */
  async begin(before: Session | undefined): Promise<Session> {
    const until = this.#now() + SESSION_MS;
    if (before === undefined) return { visitor: randomBytes(16).toString('base64url'), until };
    // The new session must end later than every ended one, even if another server's clock is ahead.
    return { ...before, until: Math.max(until, (await this.#endedUntil(before)) + 1) };
  }

  /** Rejects if the ledger cannot be read, because an ended session must not become valid while the ledger is unreachable. */
  async isOpen(session: Session): Promise<boolean> {
    return session.until > this.#now() && session.until > (await this.#endedUntil(session));
  }

  /** Ends all sessions of the visitor, on every server. Resolves when this is stored. */
  async end({ visitor, until }: Session): Promise<void> {
    await this.#notes.setMeta(this.#endedKey(visitor), String(until));
  }

  /** The latest `until` among the ended sessions of the visitor. */
  async #endedUntil({ visitor }: Session): Promise<number> {
    return Number((await this.#notes.getMeta(this.#endedKey(visitor))) ?? 0);
  }

  /** The cookie value. It is signed and contains no secret. */
  write({ visitor, until }: Session): string {
    const text = `${visitor}.${until}`;
    return `${text}.${this.#sign(`session ${text}`)}`;
  }

  /** Reads the session from a cookie value, even if it has ended; undefined if the signature is wrong. */
  read(cookie: string | undefined): Session | undefined {
    const [visitor = '', until = '', signature = '', ...rest] = (cookie ?? '').slice(0, 200).split('.');
    if (rest.length > 0 || !VISITOR.test(visitor) || !/^\d{1,15}$/.test(until)) return undefined;
    if (!same(signature, this.#sign(`session ${visitor}.${until}`))) return undefined;
    return { visitor, until: Number(until) };
  }

  /** The key that every form of this session must contain, which protects against CSRF. */
  formKey({ visitor, until }: Session): string {
    return this.#sign(`form ${visitor}.${until}`);
  }

  checkFormKey(session: Session, key: string): boolean {
    return same(key, this.formKey(session));
  }

  get lifeMs(): number {
    return SESSION_MS;
  }

  #endedKey(visitor: string): string {
    return `${this.#page}-session-ended:${visitor}`;
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function same(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}
