import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import Router, { type RouterMiddleware } from '@koa/router';
import type { Context, Middleware } from 'koa';
import {
  type Added,
  MAX_REPLY_CHARACTERS,
  type Question,
  type ReplyStore,
  SENTIMENTS,
  type Sentiment,
} from '../upstreams/people/people.js';
import type { Respondents, SharedMeta } from '../upstreams/people/respondents.js';
import { charactersOf, tidyReply } from '../upstreams/people/reply-text.js';
import { PanelFault, readForm } from './form.js';
import { RateLimit } from './limits.js';
import { LiveStreams } from './live.js';
import {
  type Board,
  boardFragment,
  boardPage,
  type Card,
  type Fault,
  loginPage,
  messagePage,
  signedInPage,
} from './pages.js';
import { SCRIPT } from './script.js';
import { type Session, Sessions } from './session.js';
import { STYLE } from './style.js';

export type PanelOptions = {
  replyStore: ReplyStore;
  /** Records when a signed-in respondent was last seen. */
  presence: Respondents;
  /** Stores ended sessions for all servers. */
  notes: SharedMeta;
  /** The operator's token, at least 16 characters. */
  token: string;
  /** ms since 1970. Default: the system clock. */
  now?: () => number;
  /** True if the page is reached over https. The cookie is then never sent over plain HTTP. */
  secure: boolean;
  /** When it aborts, the live streams end, so that the server can close. */
  signal?: AbortSignal;
};

type OpenQuestion = Question & { replies: number };
type Outcome = Added | 'rejected' | 'absent';

const COOKIE = 'coinslot_panel';
const MAX_CARDS = 20;
/** After too many wrong tokens, answers to further ones are delayed by this long; at most 50 answers wait at a time. */
const HOLD_BACK_MS = 1_000;
const MAX_HELD_BACK = 50;
const HTML = 'text/html; charset=utf-8';

const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // With no-referrer, browsers would send the panel's own forms with `Origin: null`.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  Vary: 'Cookie, Accept',
};

const SAID: Record<Outcome, string> = {
  added: 'Thank you, your reply was added.',
  duplicate: 'You have answered this question already.',
  full: 'Enough people have answered in the meantime. Your reply was not added.',
  closed: 'This question is no longer open. Your reply was not added.',
  rejected: 'The reply was rejected. Someone else can answer instead.',
  absent: 'That reply no longer exists.',
};

/**
 * The page at /panel/ on which people answer the open questions and the operator rejects replies. Works without JavaScript.
 * Requests outside /panel are passed on.
 * @throws RangeError if the token is too short to be safe.
 */
export function createPanel(options: PanelOptions): Router {
  const panel = new Panel(options);
  const router = new Router({ strict: true, sensitive: true });
  router.use(panel.guard as RouterMiddleware);
  router.get('/panel', ctx => see(ctx, '/panel/'));
  router.get('/panel/', panel.show);
  router.get('/panel/questions', panel.list);
  router.get('/panel/live', panel.live);
  router.get('/panel/style.css', ctx => asset(ctx, 'text/css; charset=utf-8', STYLE));
  router.get('/panel/panel.js', ctx => asset(ctx, 'text/javascript; charset=utf-8', SCRIPT));
  router.post('/panel/login', panel.login);
  router.post('/panel/logout', panel.logout);
  router.post('/panel/reply', panel.reply);
  router.post('/panel/reject', panel.reject);
  return router;
}

function see(ctx: Context, path: string): void {
  ctx.status = 303;
  ctx.set('Location', path);
  ctx.body = '';
}

function asset(ctx: Context, type: string, text: string): void {
  ctx.set({ 'Content-Type': type, 'Cache-Control': 'no-cache' });
  ctx.body = text;
}

function html(ctx: Context, status: number, page: string): void {
  ctx.status = status;
  ctx.set('Content-Type', HTML);
  ctx.body = page;
}

function wantsJson(ctx: Context): boolean {
  return ctx.get('Accept').includes('application/json');
}

/** Whether the browser reports that the request comes from another site. Clients that send no such headers rely on the form key. */
function fromElsewhere(ctx: Context): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  if (site) return site !== 'same-origin' && site !== 'none';
  const origin = ctx.get('Origin');
  return origin !== '' && (!URL.canParse(origin) || new URL(origin).host !== ctx.get('Host'));
}

class Panel {
  readonly #replyStore: ReplyStore;
  readonly #presence: Respondents;
  readonly #sessions: Sessions;
  readonly #live: LiveStreams;
  readonly #now: () => number;
  readonly #secure: boolean;
  readonly #badLogins: RateLimit;
  readonly #replies: RateLimit;
  #heldBack = 0;

  constructor({ replyStore, presence, notes, token, now = Date.now, secure, signal }: PanelOptions) {
    this.#replyStore = replyStore;
    this.#presence = presence;
    this.#sessions = new Sessions(token, notes, now);
    this.#live = new LiveStreams(replyStore, signal);
    this.#now = now;
    this.#secure = secure;
    this.#badLogins = new RateLimit(10, 200, now);
    this.#replies = new RateLimit(30, 600, now);
  }

  readonly guard: Middleware = async (ctx, next) => {
    // Other sites must not read the panel, even where CORS is open for the rest of the server.
    ctx.remove('Access-Control-Allow-Origin');
    ctx.remove('Access-Control-Expose-Headers');
    ctx.set(HEADERS);
    try {
      if (ctx.method === 'POST' && fromElsewhere(ctx))
        throw new PanelFault(
          403,
          'This form was sent from another site. Open the panel and send it from there.',
        );
      await next();
    } catch (error) {
      this.#fail(ctx, error);
    }
  };

  /** GET /panel/. A token in `?token=` is exchanged for a session and removed from the URL. */
  readonly show = async (ctx: Context): Promise<void> => {
    const query = new URLSearchParams(ctx.querystring);
    const token = query.get('token');
    if (token !== null) return this.#signIn(ctx, token);
    const session = await this.#session(ctx);
    if (!session) return html(ctx, 200, loginPage(query.get('said') === 'out' ? 'You have signed out.' : ''));
    await this.#presence.record();
    const said = query.get('said') ?? '';
    const message = Object.hasOwn(SAID, said) ? SAID[said as Outcome] : '';
    html(ctx, 200, boardPage({ ...(await this.#board(session)), message }));
  };

  readonly list = async (ctx: Context): Promise<void> => {
    html(ctx, 200, boardFragment(await this.#board(await this.#attend(ctx))));
  };

  readonly live = async (ctx: Context): Promise<void> => {
    const session = await this.#attend(ctx);
    const stream = this.#live.open(() => this.#sessions.isOpen(session));
    if (!stream)
      throw new PanelFault(503, 'Too many panel pages are open. Close one, or try again in a few seconds.', {
        'Retry-After': '10',
      });
    ctx.set({ 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' });
    ctx.status = 200;
    ctx.body = stream;
    ctx.res.once('close', () => stream.destroy());
  };

  readonly login = async (ctx: Context): Promise<void> => {
    await this.#signIn(ctx, (await readForm(ctx)).get('token') ?? '');
  };

  readonly logout = async (ctx: Context): Promise<void> => {
    const { session } = await this.#form(ctx, await this.#demand(ctx));
    await this.#sessions.end(session);
    // The respondent's id stays in the cookie: signing out and in again does not make a second person.
    this.#setCookie(ctx, { respondent: session.respondent, until: 0 });
    see(ctx, '/panel/?said=out');
  };

  readonly reply = async (ctx: Context): Promise<void> => {
    const { session, form } = await this.#form(ctx, await this.#attend(ctx));
    this.#throttle(session.respondent);
    const id = form.get('question') ?? '';
    const fault = this.#faultIn(id, form.get('text') ?? '', form.get('sentiment') ?? '');
    if (fault) return this.#correct(ctx, session, fault);
    const open = (await this.#replyStore.open()).some(question => question.id === id);
    if (!open) return this.#tell(ctx, 'closed', id);
    const text = tidyReply(form.get('text') ?? '');
    const chosen = form.get('sentiment') ?? '';
    const added = await this.#replyStore.add(id, {
      id: randomBytes(12).toString('hex'),
      text,
      sentiment: chosen === '' ? await inferred(text) : (chosen as Sentiment),
      respondent: session.respondent,
      inferred: chosen === '',
      isSample: false,
    });
    this.#tell(ctx, added, id);
  };

  readonly reject = async (ctx: Context): Promise<void> => {
    const { form } = await this.#form(ctx, await this.#attend(ctx));
    const id = form.get('question') ?? '';
    const open = (await this.#replyStore.open()).some(question => question.id === id);
    const done = open && (await this.#replyStore.reject(id, form.get('reply') ?? ''));
    this.#tell(ctx, done ? 'rejected' : 'absent', id);
  };

  /** What is wrong with a reply, if anything. Without a choice, the sentiment is inferred from the text. */
  #faultIn(question: string, raw: string, sentiment: string): Fault | undefined {
    const say = (message: string): Fault => ({ question, message, text: raw, sentiment });
    if (tidyReply(raw) === '') return say('Please write your reply first.');
    const length = charactersOf(raw.replace(/\r\n?/g, '\n').trim());
    if (length > MAX_REPLY_CHARACTERS)
      return say(`Your reply has ${length} characters; please shorten it to ${MAX_REPLY_CHARACTERS}.`);
    if (sentiment !== '' && !(SENTIMENTS as string[]).includes(sentiment))
      return say('Please choose positive, neutral or negative.');
    return undefined;
  }

  async #correct(ctx: Context, session: Session, fault: Fault): Promise<void> {
    if (wantsJson(ctx)) return json(ctx, 400, fault.message, false);
    html(ctx, 400, boardPage({ ...(await this.#board(session, fault.question)), fault }));
  }

  #tell(ctx: Context, outcome: Outcome, question: string): void {
    if (wantsJson(ctx)) return json(ctx, 200, SAID[outcome], true);
    const anchor = /^[\w-]{1,128}$/.test(question) ? `#q-${question}` : '';
    see(ctx, `/panel/?said=${outcome}${anchor}`);
  }

  /** The token is compared before the rate limit: the correct token always works, even after many wrong ones from the same address. */
  async #signIn(ctx: Context, token: string): Promise<void> {
    if (!this.#sessions.opens(token)) return this.#turnAway(ctx);
    const known = this.#sessions.read(ctx.cookies.get(COOKIE));
    this.#setCookie(ctx, await this.#sessions.begin(known));
    await this.#presence.record();
    // Browsers do not send a SameSite=Strict cookie with a redirect that began on another site, but do from a page of the panel.
    if (ctx.get('Sec-Fetch-Site') === 'cross-site') return html(ctx, 200, signedInPage());
    see(ctx, '/panel/');
  }

  async #turnAway(ctx: Context): Promise<void> {
    const wait = this.#badLogins.take(ctx.ip);
    if (wait === 0) return html(ctx, 401, loginPage('Incorrect token. Ask the operator for the token.'));
    if (this.#heldBack < MAX_HELD_BACK) {
      this.#heldBack++;
      await pause(HOLD_BACK_MS, undefined, { ref: false });
      this.#heldBack--;
    }
    ctx.set('Retry-After', String(wait));
    html(ctx, 429, loginPage(`Too many incorrect tokens. Wait ${wait} seconds before you try again.`));
  }

  #setCookie(ctx: Context, session: Session): void {
    // Decided by the public URL: a proxy may forward https requests as plain HTTP.
    ctx.cookies.secure = this.#secure;
    ctx.cookies.set(COOKIE, this.#sessions.write(session), {
      path: '/panel',
      maxAge: this.#sessions.lifeMs,
      httpOnly: true,
      sameSite: 'strict',
      secure: this.#secure,
    });
  }

  async #session(ctx: Context): Promise<Session | undefined> {
    const session = this.#sessions.read(ctx.cookies.get(COOKIE));
    return session && (await this.#sessions.isOpen(session)) ? session : undefined;
  }

  async #demand(ctx: Context): Promise<Session> {
    const session = await this.#session(ctx);
    if (!session)
      throw new PanelFault(
        401,
        'You are not signed in, or your session has ended. Sign in and send it again.',
      );
    return session;
  }

  /** Like `#demand`, and records that a respondent is present, which allows questions to be sold. */
  async #attend(ctx: Context): Promise<Session> {
    const session = await this.#demand(ctx);
    await this.#presence.record();
    return session;
  }

  async #form(ctx: Context, session: Session): Promise<{ session: Session; form: URLSearchParams }> {
    const form = await readForm(ctx);
    if (!this.#sessions.checkFormKey(session, form.get('form') ?? ''))
      throw new PanelFault(403, 'This form belongs to another session. Reload the panel and send it again.');
    return { session, form };
  }

  #throttle(respondent: string): void {
    const wait = this.#replies.take(respondent);
    if (wait > 0)
      throw new PanelFault(429, `Too many replies at once. Try again in ${wait} seconds.`, {
        'Retry-After': String(wait),
      });
  }

  /** The first 20 questions; those that this person can still answer come first. `kept` is always shown. */
  async #board({ respondent, ...rest }: Session, kept?: string): Promise<Board> {
    const open = await this.#replyStore.open();
    const cards: Card[] = [];
    const later: Card[] = [];
    for (const question of this.#inOrder(open, kept)) {
      if (cards.length >= MAX_CARDS) break;
      const replies = await this.#replyStore.replies(question.id);
      const answered = replies.some(reply => reply.respondent === respondent);
      const done = answered || replies.length >= question.wanted;
      (done && question.id !== kept ? later : cards).push({ question, replies, answered });
    }
    const shown = [...cards, ...later].slice(0, MAX_CARDS);
    const formKey = this.#sessions.formKey({ respondent, ...rest });
    return { cards: shown, more: open.length - shown.length, formKey, now: this.#now() };
  }

  #inOrder(open: OpenQuestion[], kept: string | undefined): OpenQuestion[] {
    return open.filter(({ id }) => id === kept).concat(open.filter(({ id }) => id !== kept));
  }

  #fail(ctx: Context, error: unknown): void {
    const fault =
      error instanceof PanelFault
        ? error
        : new PanelFault(503, 'The questions cannot be read at the moment. Try again in a minute.', {
            'Retry-After': '60',
          });
    ctx.set(fault.headers);
    if (wantsJson(ctx)) return json(ctx, fault.status, fault.message, false);
    if (fault.status === 401) return html(ctx, 401, loginPage(fault.message));
    html(ctx, fault.status, messagePage('Request failed', fault.message));
  }
}

function json(ctx: Context, status: number, message: string, done: boolean): void {
  ctx.status = status;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = JSON.stringify({ message, done });
}

/** Its word lists are loaded with the first reply that needs them. */
async function inferred(text: string): Promise<Sentiment> {
  const { classify } = await import('../upstreams/people/classify.js');
  return classify(text);
}
