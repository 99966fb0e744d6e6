import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import Router, { type RouterMiddleware } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { classify } from '../upstreams/people/classify.js';
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
  /** Is told of everybody who is signed in and asks for anything. */
  presence: Respondents;
  /** Where all servers find out who has signed out. */
  notes: SharedMeta;
  /** The operator's token, at least 16 characters. */
  token: string;
  /** ms since 1970. Default the clock. */
  now?: () => number;
  /** True when people reach the page over https only: the cookie is then never sent in the clear. */
  secure: boolean;
  /** Ends the live streams when it aborts, so that a server can close. */
  signal?: AbortSignal;
};

type OpenQuestion = Question & { replies: number };
type Outcome = Added | 'rejected' | 'absent';

const COOKIE = 'coinslot_panel';
const MAX_CARDS = 20;
/** How long the answer to a wrong token is held back after too many, and how many such answers at once. */
const HOLD_BACK_MS = 1_000;
const MAX_HELD_BACK = 50;
const HTML = 'text/html; charset=utf-8';

const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // Not no-referrer: browsers would then send our own forms with `Origin: null`.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  Vary: 'Cookie, Accept',
};

const SAID: Record<Outcome, string> = {
  added: 'Thank you, your reply was added.',
  duplicate: 'You have answered this question already.',
  full: 'Enough people have answered meanwhile. Your reply was not added.',
  closed: 'This question is no longer open. Your reply was not added.',
  rejected: 'The reply was rejected. Its place is free again.',
  absent: 'That reply is not there any more.',
};

/**
 * The page at /panel/ on which real people answer the open questions and the operator throws replies out. Works without
 * JavaScript. It answers nothing outside /panel.
 * @throws RangeError when the token is too short to be safe.
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

/** Whether a browser says that the request comes from our own page. Others say nothing; then the form's key decides. */
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
    // A page with a session is nobody else's to read, whatever the rest of the server allows.
    ctx.remove('Access-Control-Allow-Origin');
    ctx.remove('Access-Control-Expose-Headers');
    ctx.set(HEADERS);
    try {
      if (ctx.method === 'POST' && fromElsewhere(ctx))
        throw new PanelFault(403, 'This was sent from another site. Open the panel and send it from there.');
      await next();
    } catch (error) {
      this.#fail(ctx, error);
    }
  };

  /** GET /panel/, also with `?token=`, which is exchanged for a session and disappears from the address. */
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
    if (!stream) throw new PanelFault(503, 'Too many pages are open at the moment.', { 'Retry-After': '10' });
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
    // The respondent stays known, so that signing out and in again does not make a second person.
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
      sentiment: chosen === '' ? classify(text) : (chosen as Sentiment),
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

  /** What is wrong with a reply, if anything. A missing choice is not: the text then tells. */
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

  /** Compares first: however many wrong tokens came from the same address, the right one gets in at once. */
  async #signIn(ctx: Context, token: string): Promise<void> {
    if (!this.#sessions.opens(token)) return this.#turnAway(ctx);
    const known = this.#sessions.read(ctx.cookies.get(COOKIE));
    this.#setCookie(ctx, await this.#sessions.begin(known));
    await this.#presence.record();
    // A strict cookie is not sent along a redirect that began on another site, but it is from a page of ours.
    if (ctx.get('Sec-Fetch-Site') === 'cross-site') return html(ctx, 200, signedInPage());
    see(ctx, '/panel/');
  }

  async #turnAway(ctx: Context): Promise<void> {
    const wait = this.#badLogins.take(ctx.ip);
    if (wait === 0) return html(ctx, 401, loginPage('Incorrect token. Ask the operator for it.'));
    if (this.#heldBack < MAX_HELD_BACK) {
      this.#heldBack++;
      await pause(HOLD_BACK_MS, undefined, { ref: false });
      this.#heldBack--;
    }
    ctx.set('Retry-After', String(wait));
    html(
      ctx,
      429,
      loginPage(`Incorrect token, once too often. Wait ${wait} seconds before you guess again.`),
    );
  }

  #setCookie(ctx: Context, session: Session): void {
    // By the URL that people come to: a proxy in front may speak plain HTTP with us.
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
      throw new PanelFault(401, 'You are not signed in, or no longer. Sign in and send it again.');
    return session;
  }

  /** Like `#demand`, of a respondent who will answer questions: from now on, some can be sold. */
  async #attend(ctx: Context): Promise<Session> {
    const session = await this.#demand(ctx);
    await this.#presence.record();
    return session;
  }

  async #form(ctx: Context, session: Session): Promise<{ session: Session; form: URLSearchParams }> {
    const form = await readForm(ctx);
    if (!this.#sessions.checkFormKey(session, form.get('form') ?? ''))
      throw new PanelFault(
        403,
        'This form is not from your present session. Reload the panel and send it again.',
      );
    return { session, form };
  }

  #throttle(respondent: string): void {
    const wait = this.#replies.take(respondent);
    if (wait > 0)
      throw new PanelFault(429, `Too many replies at once. Try again in ${wait} seconds.`, {
        'Retry-After': String(wait),
      });
  }

  /** The first questions, those that this person can still answer before the others; `kept` is shown in any case. */
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
        : new PanelFault(503, 'The questions can not be read at the moment. Try again in a minute.', {
            'Retry-After': '60',
          });
    ctx.set(fault.headers);
    if (wantsJson(ctx)) return json(ctx, fault.status, fault.message, false);
    if (fault.status === 401) return html(ctx, 401, loginPage(fault.message));
    html(ctx, fault.status, messagePage('That did not work', fault.message));
  }
}

function json(ctx: Context, status: number, message: string, done: boolean): void {
  ctx.status = status;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = JSON.stringify({ message, done });
}
