import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  asset,
  type EntrancePages,
  events,
  EXCHANGE_TOKEN,
  html,
  LeakyBuckets,
  LiveStreams,
  PageFault,
  type PageContext as Context,
  type PageRoute,
  type Pages,
  perMinute,
  readForm,
  see,
  type Session,
  Sessions,
  type SharedNotes,
  SignIn,
} from 'coinslot';
import { type Board, boardFragment, boardPage, type Card, type Fault, panelEntrance } from './board.js';
import { looksLikeGibberish } from './gibberish.js';
import { type Control, faultIn, repeats, type ReplyFault } from './reply-faults.js';
import { tidyReply } from './reply-text.js';
import type { Respondents } from './respondents.js';
import { STYLE } from './style.js';
import type { Added, Question, Reply, ReplyStore, Sentiment } from './replies.js';

/** The script is not compiled, so it is not in dist/. */
const OWN_SCRIPT = new URL('../../../handlers/brand-feedback/assets/panel.js', import.meta.url);
const SCRIPT = `${EXCHANGE_TOKEN}\n${readFileSync(OWN_SCRIPT, 'utf8')}`;

export type PanelOptions = {
  /** The name of the product. */
  shop: string;
  replyStore: ReplyStore;
  /** Records when a signed-in respondent was last seen. */
  presence: Respondents;
  /** Stores which sessions have ended, for all servers. */
  notes: SharedNotes;
  /** The token with which respondents sign in, at least 16 characters. */
  token: string;
  /** ms since 1970. Default: the system clock. */
  now?: () => number;
  /** True if the page is reached over https. The cookie is then never sent over plain HTTP. */
  secure: boolean;
  /** When this signal aborts, the live streams end, so that the server can close. */
  signal?: AbortSignal;
};

type OpenQuestion = Question & { replies: number };
type ReplyOutcome = Added | 'fault';

const COOKIE = 'coinslot_panel';
const MAX_CARDS = 20;
const SAID: Record<Added, string> = {
  added: 'Thank you, your reply was added.',
  held: 'Thank you. Your reply looks like random typing, so it counts only once the operator has allowed it.',
  duplicate:
    'You have answered this question already. Each person can answer only once, even if the reply was rejected.',
  full: 'Enough people have answered in the meantime. Your reply was not added.',
  closed:
    'This question has closed: enough people have answered, or its deadline has passed. Your reply was not added.',
};

/**
 * The page at /panel/ on which people answer the open questions. Nobody sees the replies of others here, and replies can be rejected only on the
 * operator page. Works without JavaScript.
 * @throws RangeError if the token is too short to be safe.
 */
export function createPanel(options: PanelOptions): Pages {
  const panel = new Panel(options);
  const get = (path: string, serve: PageRoute['serve']): PageRoute => ({ method: 'GET', path, serve });
  const post = (path: string, serve: PageRoute['serve']): PageRoute => ({ method: 'POST', path, serve });
  return {
    path: '/panel',
    name: 'Panel',
    failed: panel.failed,
    routes: [
      get('/', panel.show),
      get('/questions', panel.list),
      get('/live', panel.live),
      get('/style.css', ctx => asset(ctx, 'text/css; charset=utf-8', STYLE)),
      get('/panel.js', ctx => asset(ctx, 'text/javascript; charset=utf-8', SCRIPT)),
      post('/login', panel.login),
      post('/logout', panel.logout),
      post('/reply', panel.reply),
      post('/typing', panel.typing),
    ],
  };
}

function wantsJson(ctx: Context): boolean {
  return ctx.get('Accept').includes('application/json');
}

class Panel {
  readonly #shop: string;
  readonly #entrance: EntrancePages;
  readonly #replyStore: ReplyStore;
  readonly #presence: Respondents;
  readonly #sessions: Sessions;
  readonly #live: LiveStreams;
  readonly #now: () => number;
  readonly #signIn: SignIn;
  readonly #replies: LeakyBuckets;

  constructor(options: PanelOptions) {
    const { shop, replyStore, presence, notes, token, now = Date.now, secure, signal } = options;
    this.#shop = shop;
    this.#entrance = panelEntrance(shop);
    this.#replyStore = replyStore;
    this.#presence = presence;
    this.#sessions = new Sessions(token, notes, now, 'panel');
    this.#live = new LiveStreams(async () => stateOf(await replyStore.open()), signal);
    this.#now = now;
    this.#signIn = new SignIn({
      sessions: this.#sessions,
      cookie: COOKIE,
      path: '/panel',
      home: '/panel/',
      secure,
      now,
      incorrect: 'Incorrect token. Ask the operator for the token.',
      entrance: this.#entrance,
    });
    this.#replies = new LeakyBuckets({ ...perMinute(30), overall: perMinute(600), maxKeys: 1_000, now });
  }

  /** GET /panel/. A token in `?token=` is exchanged for a session and removed from the URL. */
  readonly show = async (ctx: Context): Promise<void> => {
    const query = new URLSearchParams(ctx.querystring);
    const token = query.get('token');
    if (token !== null) return this.#enter(ctx, token);
    const session = await this.#signIn.session(ctx);
    if (!session) return html(ctx, 200, this.#signIn.page(query.get('said') === 'out'));
    await this.#presence.record();
    const said = query.get('said') ?? '';
    const question = query.get('question') ?? '';
    const board = await this.#board(session, question);
    const message = Object.hasOwn(SAID, said) ? SAID[said as Added] : undefined;
    html(ctx, 200, boardPage(message ? { ...board, said: { message, question } } : board));
  };

  readonly list = async (ctx: Context): Promise<void> => {
    html(ctx, 200, boardFragment(await this.#board(await this.#attend(ctx))));
  };

  readonly live = async (ctx: Context): Promise<void> => {
    const session = await this.#attend(ctx);
    const stream = this.#live.open(() => this.#sessions.isOpen(session));
    if (!stream)
      throw new PageFault(503, 'Too many panel pages are open. Close one, or try again in a few seconds.', {
        'Retry-After': '10',
      });
    events(ctx, stream);
  };

  readonly login = async (ctx: Context): Promise<void> => {
    await this.#enter(ctx, (await readForm(ctx)).get('token') ?? '');
  };

  readonly logout = async (ctx: Context): Promise<void> => {
    await this.#signIn.leave(ctx);
    see(ctx, '/panel/?said=out');
  };

  readonly reply = async (ctx: Context): Promise<void> => {
    const { session, form } = await this.#signIn.form(ctx, await this.#attend(ctx));
    this.#throttle(session.visitor);
    const question = form.get('question') ?? '';
    const raw = form.get('text') ?? '';
    const chosen = form.get('sentiment') ?? '';
    const correct = (fault: ReplyFault) =>
      this.#correct(ctx, session, { question, ...fault, text: raw, sentiment: chosen });
    const fault = faultIn(raw, chosen);
    if (fault) return correct(fault);
    const open = (await this.#replyStore.open()).some(({ id }) => id === question);
    if (!open) return this.#tooLate(ctx, session, 'closed', raw);
    const text = tidyReply(raw);
    const { visitor: respondent } = session;
    if (repeats(text, respondent, await this.#replyStore.replies(question)))
      return correct({
        message: 'Someone has already given the same reply, word for word. Please use your own words.',
        control: 'text',
      });
    const id = randomBytes(12).toString('hex');
    const isHeld = looksLikeGibberish(text);
    const reply: Reply = { id, text, sentiment: chosen as Sentiment, respondent, isSample: false, isHeld };
    const added = await this.#replyStore.add(question, reply);
    if (added === 'full' || added === 'closed') return this.#tooLate(ctx, session, added, raw);
    if (wantsJson(ctx)) return json(ctx, 200, SAID[added], added);
    const anchor = /^[\w-]{1,128}$/.test(question) ? `&question=${question}#q-${question}` : '';
    see(ctx, `/panel/?said=${added}${anchor}`);
  };

  /** Sent by the page's script every ten seconds while somebody is typing. */
  readonly typing = async (ctx: Context): Promise<void> => {
    const { session, form } = await this.#signIn.form(ctx, await this.#attend(ctx));
    this.#throttle(session.visitor);
    const question = form.get('question') ?? '';
    const open = (await this.#replyStore.open()).some(({ id }) => id === question);
    if (open) await this.#presence.recordTyping(question);
    ctx.status = 204;
  };

  readonly failed = (ctx: Context, error: unknown): void => {
    const fault =
      error instanceof PageFault
        ? error
        : new PageFault(503, 'The questions cannot be read at the moment. Try again in a minute.', {
            'Retry-After': '60',
          });
    ctx.set(fault.headers);
    const { status, message: text } = fault;
    if (wantsJson(ctx)) return json(ctx, status, text, 'fault');
    if (status === 401) return html(ctx, 401, this.#entrance.signIn({ kind: 'again', text }));
    html(ctx, status, this.#entrance.notice('Request failed', text));
  };

  async #correct(ctx: Context, session: Session, fault: Fault): Promise<void> {
    if (wantsJson(ctx)) return json(ctx, 400, fault.message, 'fault', fault.control);
    html(ctx, 400, boardPage({ ...(await this.#board(session, fault.question)), fault }));
  }

  /** Returns the text of a late reply to its author, so that it is not lost. */
  async #tooLate(ctx: Context, session: Session, why: 'full' | 'closed', text: string): Promise<void> {
    if (wantsJson(ctx)) return json(ctx, 409, SAID[why], why);
    html(ctx, 409, boardPage({ ...(await this.#board(session)), late: { message: SAID[why], text } }));
  }

  async #enter(ctx: Context, token: string): Promise<void> {
    if (await this.#signIn.enter(ctx, token)) await this.#presence.record();
  }

  /** The session of a request that needs one. Records that a respondent is present, which allows questions to be sold. */
  async #attend(ctx: Context): Promise<Session> {
    const session = await this.#signIn.demand(ctx);
    await this.#presence.record();
    return session;
  }

  #throttle(respondent: string): void {
    const wait = this.#replies.take(respondent);
    if (wait > 0)
      throw new PageFault(429, `Too many replies at once. Try again in ${wait} seconds.`, {
        'Retry-After': String(wait),
      });
  }

  /** The first 20 questions; those that this person can still answer come first. `kept` is always shown. */
  async #board(session: Session, kept?: string): Promise<Board> {
    const open = await this.#replyStore.open();
    const cards: Card[] = [];
    const later: Card[] = [];
    for (const question of this.#inOrder(open, kept)) {
      if (cards.length >= MAX_CARDS) break;
      const replies = await this.#replyStore.replies(question.id);
      const isOwn = (reply: Reply): boolean => reply.respondent === session.visitor;
      const own = replies.find(isOwn) ?? (await this.#replyStore.held(question.id)).find(isOwn);
      const done = own !== undefined || replies.length >= question.wanted;
      (done && question.id !== kept ? later : cards).push({ question, replies: replies.length, own });
    }
    const shown = [...cards, ...later].slice(0, MAX_CARDS);
    const formKey = this.#sessions.formKey(session);
    return { shop: this.#shop, cards: shown, more: open.length - shown.length, formKey, now: this.#now() };
  }

  #inOrder(open: OpenQuestion[], kept: string | undefined): OpenQuestion[] {
    return open.filter(({ id }) => id === kept).concat(open.filter(({ id }) => id !== kept));
  }
}

/** Changes whenever the list of questions would look different. */
function stateOf(open: OpenQuestion[]): string {
  return JSON.stringify(open.map(({ id, replies, attempt }) => [id, replies, attempt]));
}

function json(ctx: Context, status: number, message: string, outcome: ReplyOutcome, control?: Control): void {
  ctx.status = status;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = JSON.stringify({ message, outcome, control });
}
