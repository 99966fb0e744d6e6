import { randomUUID } from 'node:crypto';
import Router, { type RouterMiddleware } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { LedgerFault } from '../ledger/fault.js';
import { PageFault, readForm } from '../pages/form.js';
import { LiveStreams } from '../pages/live.js';
import type { EntrancePages } from '../pages/page-frame.js';
import { asset, events, fromElsewhere, html, PAGE_HEADERS, see } from '../pages/page-responses.js';
import { Sessions, type Session } from '../pages/session.js';
import { SignIn } from '../pages/sign-in.js';
import { ChartLibrary } from './chart-library.js';
import { endedSessions } from './ended-sessions.js';
import { eventsHtml, MAX_EVENTS } from './events-page.js';
import { foundHtml, onlyPlace } from './found-page.js';
import { framed, operatorEntrance, SCRIPT } from './operator-layout.js';
import { STYLE } from './operator-style.js';
import { askHtml, doneMessage, noSuchItem, openTask, sectionHtml, type OpenTask } from './order-tasks.js';
import type { OperatorParts } from './operator-sources.js';
import { overviewHtml } from './overview.js';
import { mayRetry, paymentFacts, type PaymentFacts } from './payment-facts.js';
import { paymentHtml, retryHtml } from './payment-page.js';
import { RefundPages } from './refund-pages.js';
import { periodNamed } from './periods.js';
import { NOT_READ } from './read-or-why.js';
import { OverviewReader } from './read-overview.js';
import { SalesPages } from './sales-pages.js';
import { replicaSentence } from '../operator/replica-sentence.js';
import { escapeHtml } from '../pages/escape.js';
import { OperatorFault } from '../operator/operator-fault.js';
import { findPayments } from '../operator/find-payment.js';

const NOT_RETRYABLE =
  'No attempt can be started for this payment: it is no longer owed, or an attempt is in progress. Nothing was changed.';

type OperatorOptions = OperatorParts & {
  token: string;
  /** The URL of the page. Its cookie has the port in its name, because browsers share cookies between the ports of a host. */
  url: string;
};

const CSS = 'text/css; charset=utf-8';
const JAVASCRIPT = 'text/javascript; charset=utf-8';
const BROKEN =
  'The page could not be built because of an error in the server. The server’s log describes it. Go back, or open the overview.';
/** Longer than any text that identifies a payment. */
const MAX_FIND = 300;
const SAID = {
  retry: 'Another attempt has been started.',
  refund: 'The refund has been recorded.',
  cancelled: 'The refund has been cancelled.',
  again: 'The event is being sent again.',
};

/** The operator page. Works without JavaScript. */
export function createOperatorPage(options: OperatorOptions): Middleware {
  const page = new OperatorPage(options);
  const router = new Router({ strict: true, sensitive: true });
  router.use(page.guard as RouterMiddleware);
  router.get('/', page.show);
  router.get('/overview', page.parts);
  router.get('/live', page.live);
  router.get('/sales', page.sales.sales);
  router.get('/sales.csv', page.export);
  router.get('/payers/:payer', page.sales.payer);
  router.get('/books', page.sales.books);
  router.get('/books/:month/:format', page.movements);
  router.get('/events', page.events);
  router.post('/events/:seq', page.resend);
  router.get('/payments', page.find);
  router.get('/payments/:id', page.payment);
  router.get('/payments/:id/retry', page.askRetry);
  router.post('/payments/:id/retry', page.retry);
  router.get('/payments/:id/refund', page.refunds.ask);
  router.post('/payments/:id/refund', page.refunds.record);
  router.post('/payments/:id/refund/link', page.refunds.link);
  router.post('/payments/:id/refund/cancel', page.refunds.cancel);
  router.get('/payments/:id/:task/:item', page.askTask);
  router.post('/payments/:id/:task/:item', page.doTask);
  const charts = new ChartLibrary();
  router.get('/style.css', ctx => asset(ctx, CSS, STYLE));
  router.get('/chart.css', async ctx => asset(ctx, CSS, await charts.style()));
  router.get('/operator.js', ctx => asset(ctx, JAVASCRIPT, SCRIPT));
  router.get('/chart.js', async ctx => asset(ctx, JAVASCRIPT, await charts.script()));
  router.get('/favicon.ico', ctx => void (ctx.status = 204));
  router.post('/login', page.login);
  router.post('/logout', page.logout);
  return router.routes() as Middleware;
}

class OperatorPage {
  readonly #options: OperatorOptions;
  readonly #sessions: Sessions;
  readonly #signIn: SignIn;
  readonly #overview: OverviewReader;
  readonly #live: LiveStreams;
  readonly #now: () => number;
  readonly #entrance: EntrancePages;
  readonly sales: SalesPages;
  readonly refunds: RefundPages;

  constructor(options: OperatorOptions) {
    const { token, url, signal, now = Date.now } = options;
    this.#options = options;
    this.#now = now;
    this.#entrance = operatorEntrance(options.shop);
    // Ended sessions are only remembered while this server runs, so no session outlives it.
    this.#sessions = new Sessions(token, endedSessions(), now, `operator of ${url} ${randomUUID()}`);
    const secure = url.startsWith('https:');
    this.#signIn = new SignIn({
      sessions: this.#sessions,
      cookie: `coinslot_operator_${new URL(url).port || (secure ? 443 : 80)}`,
      path: '/',
      home: '/',
      secure,
      now,
      incorrect: 'Incorrect token.',
      entrance: this.#entrance,
    });
    this.#overview = new OverviewReader(options, now);
    this.sales = new SalesPages(options, async (ctx, title, main) => {
      const session = await this.#signIn.demand(ctx);
      this.#send(ctx, session, title, await main(this.#now()));
    });
    this.refunds = new RefundPages(options, {
      demand: ctx => this.#signIn.demand(ctx),
      form: ctx => this.#signIn.form(ctx),
      facts: ctx => this.#facts(ctx),
      formKey: session => this.#sessions.formKey(session),
      now: this.#now,
      send: (...page) => this.#send(...page),
    });
    this.#live = new LiveStreams(() => this.#overview.state(), signal);
  }

  readonly guard: Middleware = async (ctx, next) => {
    ctx.set(PAGE_HEADERS);
    try {
      if (ctx.method === 'POST' && fromElsewhere(ctx))
        throw new PageFault(
          403,
          'This form was sent from another site. Open this page and send it from there.',
        );
      await next();
    } catch (error) {
      this.#fail(ctx, error);
    }
  };

  readonly show = async (ctx: Context): Promise<void> => {
    const session = await this.#signIn.session(ctx);
    if (!session) return html(ctx, 200, this.#signIn.page(ctx.query['said'] === 'out'));
    const period = periodNamed(ctx.query['period']);
    this.#send(ctx, session, 'Overview', overviewHtml(await this.#overview.read(period)));
  };

  readonly parts = async (ctx: Context): Promise<void> => {
    await this.#signIn.demand(ctx);
    const overview = overviewHtml(await this.#overview.read(periodNamed(ctx.query['period'])));
    html(ctx, 200, overview + this.#ofReplica());
  };

  readonly live = async (ctx: Context): Promise<void> => {
    const session = await this.#signIn.demand(ctx);
    const stream = this.#live.open(() => this.#sessions.isOpen(session));
    if (!stream)
      throw new PageFault(503, 'Too many operator pages are open. Close one.', { 'Retry-After': '10' });
    events(ctx, stream);
  };

  readonly login = async (ctx: Context): Promise<void> => {
    const entered = await this.#signIn.enter(ctx, (await readForm(ctx)).get('token') ?? '');
    if (!entered) this.#options.log.warn({ address: ctx.ip }, 'a wrong token was sent to the operator page');
  };

  readonly logout = async (ctx: Context): Promise<void> => {
    await this.#signIn.leave(ctx);
    see(ctx, '/?said=out');
  };

  readonly find = async (ctx: Context): Promise<void> => {
    const session = await this.#signIn.demand(ctx);
    const text = typeof ctx.query['id'] === 'string' ? quotedIn(ctx.query['id']) : '';
    const { ledger, ownWallets: own } = this.#options;
    const found = await findPayments(ledger, text);
    const place = onlyPlace(found, text);
    if (place !== undefined) return see(ctx, place);
    this.#send(ctx, session, 'Found', foundHtml(found, text, { now: this.#now(), own }));
  };

  readonly export = async (ctx: Context): Promise<void> => {
    await this.#signIn.demand(ctx);
    this.sales.export(ctx);
  };

  readonly movements = async (ctx: Context): Promise<void> => {
    await this.#signIn.demand(ctx);
    this.sales.movements(ctx);
  };

  readonly events = async (ctx: Context): Promise<void> => {
    const session = await this.#signIn.demand(ctx);
    const formKey = this.#sessions.formKey(session);
    const message = ctx.query['said'] === 'again' ? SAID.again : '';
    const events = await this.#options.ledger.events(MAX_EVENTS);
    this.#send(ctx, session, 'Events', eventsHtml(events, { now: this.#now(), formKey, message }));
  };

  readonly resend = async (ctx: Context): Promise<void> => {
    await this.#signIn.form(ctx);
    const seq = Number(paramsOf(ctx)['seq']);
    if (!Number.isSafeInteger(seq) || !(await this.#options.ledger.resendEvent(seq)))
      throw new PageFault(404, 'This event is no longer stored. Nothing was sent.');
    this.#options.log.info({ event: seq }, 'the operator requested that an event be sent again');
    see(ctx, '/events?said=again');
  };

  readonly payment = async (ctx: Context): Promise<void> => {
    const session = await this.#signIn.demand(ctx);
    const facts = await this.#facts(ctx);
    const said = String(ctx.query['said']);
    const { sections, log, explorer } = this.#options;
    const own = Object.hasOwn(SAID, said) ? SAID[said as keyof typeof SAID] : undefined;
    const message = own ?? doneMessage(sections, facts, said);
    const section = await sectionHtml(sections, facts, log);
    this.#send(ctx, session, 'Payment', paymentHtml(facts, { section, message, explorer, now: this.#now() }));
  };

  readonly askRetry = async (ctx: Context): Promise<void> => {
    const session = await this.#signIn.demand(ctx);
    const facts = await this.#retryable(ctx);
    this.#send(ctx, session, 'Retry', retryHtml(facts, this.#sessions.formKey(session)));
  };

  readonly retry = async (ctx: Context): Promise<void> => {
    await this.#signIn.form(ctx);
    const { payment } = await this.#retryable(ctx);
    if (!(await this.#options.retry(payment))) throw new PageFault(409, NOT_RETRYABLE);
    this.#options.log.info({ payment: payment.id }, 'the operator started another attempt at an order');
    see(ctx, `/payments/${payment.id}?said=retry`);
  };

  readonly askTask = async (ctx: Context): Promise<void> => {
    const session = await this.#signIn.demand(ctx);
    const open = await this.#openTask(ctx);
    const html = await askHtml(open, itemOf(ctx), this.#sessions.formKey(session));
    this.#send(ctx, session, open.task.title, html);
  };

  readonly doTask = async (ctx: Context): Promise<void> => {
    await this.#signIn.form(ctx);
    const { task, order } = await this.#openTask(ctx);
    if (!(await task.run(order, itemOf(ctx)))) {
      // Checks again: fails if the task is no longer possible.
      await this.#openTask(ctx);
      throw noSuchItem();
    }
    this.#options.log.info({ payment: order.id, item: itemOf(ctx) }, task.logged);
    see(ctx, `/payments/${order.id}?said=${taskNameOf(ctx)}`);
  };

  /** @throws PageFault if another attempt can't be started */
  async #retryable(ctx: Context): Promise<PaymentFacts> {
    const facts = await this.#facts(ctx);
    if (mayRetry(facts)) return facts;
    throw new PageFault(409, NOT_RETRYABLE);
  }

  /** @throws PageFault if the task cannot be done now */
  async #openTask(ctx: Context): Promise<OpenTask> {
    return openTask(this.#options.sections, await this.#facts(ctx), taskNameOf(ctx), itemOf(ctx));
  }

  #send(ctx: Context, session: Session, title: string, main: string, status = 200): void {
    const frame = { shop: this.#options.shop, formKey: this.#sessions.formKey(session) };
    html(ctx, status, framed(frame, title, main + this.#ofReplica()));
  }

  #ofReplica(): string {
    const state = this.#options.replica?.();
    return state === undefined
      ? ''
      : `<p class="soft" id="replica" data-part>${escapeHtml(replicaSentence(state))}</p>`;
  }

  async #facts(ctx: Context): Promise<PaymentFacts> {
    const facts = await paymentFacts(this.#options.ledger, paramsOf(ctx)['id'] ?? '', this.#now());
    if (!facts) throw new PageFault(404, 'There is no such payment in this ledger.');
    return facts;
  }

  #fail(ctx: Context, error: unknown): void {
    const fault = faultOf(error);
    if (!fault) return this.#broken(ctx, error);
    ctx.set(fault.headers);
    const { status, message: text } = fault;
    if (status === 401) return html(ctx, 401, this.#entrance.signIn({ kind: 'again', text }));
    html(ctx, status, this.#entrance.notice(status === 404 ? 'Not found' : 'Request failed', text));
  }

  /** A fault of the server, which the listener logs. */
  #broken(ctx: Context, error: unknown): void {
    ctx.app.emit('error', error, ctx);
    html(ctx, 500, this.#entrance.notice('This page failed', BROKEN));
  }
}

/** For a search text pasted from a message: its longest word, without quotation marks or a final full stop. */
function quotedIn(text: string): string {
  const words = text.slice(0, MAX_FIND).split(/[\s"'“”„‘’()]/u);
  return words
    .reduce((longest, word) => (word.length > longest.length ? word : longest))
    .replace(/[.,;]$/u, '');
}

function taskNameOf(ctx: Context): string {
  return paramsOf(ctx)['task'] ?? '';
}

function itemOf(ctx: Context): string {
  return paramsOf(ctx)['item'] ?? '';
}

function paramsOf(ctx: Context): Record<string, string> {
  return (ctx as unknown as { params: Record<string, string> }).params;
}

function faultOf(error: unknown): PageFault | undefined {
  if (error instanceof PageFault) return error;
  if (error instanceof OperatorFault) return new PageFault(404, error.message);
  if (error instanceof LedgerFault)
    return new PageFault(503, `${NOT_READ}: ${error.message} Nothing was changed.`, { 'Retry-After': '10' });
  return undefined;
}
