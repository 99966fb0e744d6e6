import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from 'koa';
import { PageFault, readForm } from './form.js';
import { LeakyBuckets, perMinute } from '../net/leaky-buckets.js';
import type { EntrancePages } from './page-frame.js';
import { html, see } from './page-responses.js';
import type { Session, Sessions } from './session.js';

export type SignInOptions = {
  sessions: Sessions;
  cookie: string;
  /** The path of the cookie, without trailing slash except for `/`. */
  path: string;
  /** Where to go after signing in. */
  home: string;
  /** True if the page is reached over https. The cookie is then never sent over plain HTTP. */
  secure: boolean;
  now: () => number;
  /** The message for a wrong token. */
  incorrect: string;
  entrance: EntrancePages;
};

/** How many wrong tokens one address may send, and how many all addresses together may send. */
const WRONG_TOKENS = { ...perMinute(10), overall: perMinute(200), maxKeys: 1_000 };
/** After too many wrong tokens, answers to further ones are delayed by this long; at most 50 answers wait at a time. */
const HOLD_BACK_MS = 1_000;
const MAX_HELD_BACK = 50;

/** Signs browsers in with a token, and checks their sessions and forms. */
export class SignIn {
  readonly #options: SignInOptions;
  readonly #bad: LeakyBuckets;
  #heldBack = 0;

  constructor(options: SignInOptions) {
    this.#options = options;
    this.#bad = new LeakyBuckets({ ...WRONG_TOKENS, now: options.now });
  }

  /**
   * Answers an attempt to sign in. The token is compared before the rate limit is applied, so that the correct token always works, even after
   * many wrong ones from the same address.
   * @returns whether the token was correct
   */
  async enter(ctx: Context, token: string): Promise<boolean> {
    const { sessions, home, entrance } = this.#options;
    if (!sessions.opens(token)) {
      await this.#turnAway(ctx);
      return false;
    }
    this.#setCookie(ctx, await sessions.begin(this.#read(ctx)));
    // Answers with a page instead of a redirect, because browsers do not send a SameSite=Strict cookie with a redirect that began on another site,
    // but they do with a request from a page of the same site.
    if (ctx.get('Sec-Fetch-Site') === 'cross-site') html(ctx, 200, entrance.signedIn());
    else see(ctx, home);
    return true;
  }

  /**
   * Answers the form that signs a visitor out: ends the visitor's session. The visitor's id stays in the cookie, so that signing in
   * again does not count as a second visitor.
   */
  async leave(ctx: Context): Promise<void> {
    const { session } = await this.form(ctx);
    await this.#options.sessions.end(session);
    this.#setCookie(ctx, { visitor: session.visitor, until: 0 });
  }

  /** The sign-in page for a browser without a session. */
  page(hasSignedOut: boolean): string {
    const { entrance } = this.#options;
    return entrance.signIn(hasSignedOut ? { kind: 'signed out', text: 'You have signed out.' } : undefined);
  }

  async session(ctx: Context): Promise<Session | undefined> {
    const session = this.#read(ctx);
    return session && (await this.#options.sessions.isOpen(session)) ? session : undefined;
  }

  /** @throws PageFault 401 */
  async demand(ctx: Context): Promise<Session> {
    const session = await this.session(ctx);
    if (session) return session;
    const again = ctx.method === 'POST' ? 'send' : 'open';
    throw new PageFault(
      401,
      `You are not signed in, or your session has ended. Sign in and ${again} it again.`,
    );
  }

  /**
   * Reads a form of this session.
   * @throws PageFault 401, 403, and those of `readForm`
   */
  async form(ctx: Context, session?: Session): Promise<{ session: Session; form: URLSearchParams }> {
    const known = session ?? (await this.demand(ctx));
    const form = await readForm(ctx);
    if (!this.#options.sessions.checkFormKey(known, form.get('form') ?? ''))
      throw new PageFault(
        403,
        'This form belongs to another session. Open the page again and fill it in there.',
      );
    return { session: known, form };
  }

  #read(ctx: Context): Session | undefined {
    return this.#options.sessions.read(ctx.cookies.get(this.#options.cookie));
  }

  async #turnAway(ctx: Context): Promise<void> {
    const { incorrect, entrance } = this.#options;
    const wait = this.#bad.take(ctx.ip);
    if (wait === 0) return html(ctx, 401, entrance.signIn({ kind: 'failed', text: incorrect }));
    if (this.#heldBack < MAX_HELD_BACK) {
      this.#heldBack++;
      await sleep(HOLD_BACK_MS, undefined, { ref: false });
      this.#heldBack--;
    }
    ctx.set('Retry-After', String(wait));
    const text = `Too many incorrect tokens. Wait ${wait} seconds before you try again.`;
    html(ctx, 429, entrance.signIn({ kind: 'failed', text }));
  }

  #setCookie(ctx: Context, session: Session): void {
    const { sessions, cookie, path, secure } = this.#options;
    // The public URL decides, because a proxy may forward https requests as plain HTTP.
    ctx.cookies.secure = secure;
    ctx.cookies.set(cookie, sessions.write(session), {
      path,
      maxAge: sessions.lifeMs,
      httpOnly: true,
      sameSite: 'strict',
      secure,
    });
  }
}
