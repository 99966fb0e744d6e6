import { once } from 'node:events';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import Koa from 'koa';
import { LiveStreams } from '../src/panel/live.js';
import { createPanel, type PanelOptions } from '../src/panel/panel.js';
import { Presence } from '../src/upstreams/people/presence.js';
import {
  aQuestion,
  aReply,
  createMemoryBook,
  createMemoryNotes,
  type MemoryBook,
  type MemoryNotes,
} from './support/reply-book.js';

const TOKEN = 'a-token-that-nobody-guesses';

type Panel = {
  url: string;
  book: MemoryBook;
  notes: MemoryNotes;
  presence: Presence;
  server: Server;
  time: { now: number };
  end: AbortController;
};

async function startPanel(options: Partial<PanelOptions> & { notes?: MemoryNotes } = {}): Promise<Panel> {
  const time = { now: Date.now() };
  const book = createMemoryBook(() => time.now);
  const notes = options.notes ?? createMemoryNotes();
  const presence = new Presence({ notes, now: () => time.now });
  const end = new AbortController();
  const router = createPanel({
    book,
    presence,
    notes,
    token: TOKEN,
    now: () => time.now,
    secure: false,
    signal: end.signal,
    ...options,
  });
  const app = new Koa();
  app.silent = true;
  app.use(async (ctx, next) => {
    ctx.set('Access-Control-Allow-Origin', '*');
    await next();
  });
  app.use(router.routes() as Koa.Middleware);
  app.use(ctx => {
    ctx.status = 404;
    ctx.body = 'the contract';
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, book, notes, presence, server, time, end };
}

type Answer = { status: number; headers: Headers; text: string };

/** A browser without JavaScript: keeps the cookie, sends forms. */
class Visitor {
  readonly #url: string;
  cookie = '';

  constructor(url: string) {
    this.#url = url;
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send(path, { headers });
  }

  async post(
    path: string,
    fields: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return this.#send(path, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { origin: this.#url, ...headers },
    });
  }

  async signIn(): Promise<this> {
    const answer = await this.post('/panel/login', { token: TOKEN });
    expect(answer.status).to.equal(303);
    return this;
  }

  async formKey(): Promise<string> {
    return (
      /name="form" value="([^"]+)"/.exec((await this.get('/panel/')).text)?.[1] ?? expect.fail('no form')
    );
  }

  async reply(
    question: string,
    text: string,
    sentiment = 'positive',
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return this.post('/panel/reply', { form: await this.formKey(), question, text, sentiment }, headers);
  }

  async #send(path: string, init: RequestInit & { headers: Record<string, string> }): Promise<Answer> {
    const headers = this.cookie ? { ...init.headers, cookie: this.cookie } : init.headers;
    const answer = await fetch(this.#url + path, { ...init, headers, redirect: 'manual' });
    const cookie = answer.headers.get('set-cookie');
    if (cookie) this.cookie = cookie.split(';', 1)[0] ?? '';
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  }
}

describe('the panel page', () => {
  let panel: Panel;
  let visitor: Visitor;

  beforeEach(async () => {
    panel = await startPanel();
    visitor = new Visitor(panel.url);
  });

  afterEach(async () => {
    panel.end.abort();
    panel.server.closeAllConnections();
    await new Promise(resolve => panel.server.close(resolve));
  });

  describe('opens only with the operator’s token', () => {
    it('and shows nothing before', async () => {
      panel.book.put(aQuestion({ brand: 'Secret Brand' }));
      const page = await visitor.get('/panel/');
      expect(page.status).to.equal(200);
      expect(page.text).to.contain('name="token"').and.not.contain('Secret Brand');
      for (const path of ['/panel/questions', '/panel/live'])
        expect((await visitor.get(path)).status).to.equal(401);
      for (const path of ['/panel/reply', '/panel/reject', '/panel/logout'])
        expect((await visitor.post(path, { text: 'x' })).status).to.equal(401);
    });

    it('from the form, with a strict cookie that does not hold it', async () => {
      const answer = await visitor.post('/panel/login', { token: TOKEN });
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([303, '/panel/']);
      const cookie = answer.headers.get('set-cookie') ?? '';
      expect(cookie)
        .to.match(/; HttpOnly/)
        .and.match(/; SameSite=Strict/)
        .and.match(/; Path=\/panel(;|$)/);
      expect(cookie)
        .to.not.contain(TOKEN)
        .and.not.match(/Secure/);
      expect((await visitor.get('/panel/')).text).to.contain('Sign out');
    });

    it('from the address, out of which it disappears', async () => {
      const answer = await visitor.get(`/panel/?token=${TOKEN}`);
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([303, '/panel/']);
      expect((await visitor.get('/panel/')).text).to.contain('Sign out');
      const linked = await new Visitor(panel.url).get(`/panel/?token=${TOKEN}`, {
        'sec-fetch-site': 'cross-site',
      });
      expect(linked.status).to.equal(200);
      expect(linked.text).to.contain('url=/panel/').and.not.contain(TOKEN);
    });

    it('and not with another one, a forged cookie, one of another token, or one that has ended', async () => {
      for (const token of ['', 'wrong', `${TOKEN}x`]) {
        expect((await visitor.post('/panel/login', { token })).status).to.equal(401);
      }
      expect(visitor.cookie).to.equal('');
      await visitor.signIn();
      const good = visitor.cookie;
      const [name, value = ''] = good.split('=');
      const [respondent, until, signature = ''] = value.split('.');
      const other = await startPanel({ token: 'another-token-of-somebody' });
      const stranger = new Visitor(other.url);
      stranger.cookie = good;
      expect((await stranger.get('/panel/questions')).status).to.equal(401);
      other.server.close();
      for (const forged of [
        `${respondent}.${Number(until) + 1e9}.${signature}`,
        `${respondent}.${until}.${signature.slice(0, -1)}`,
        `${respondent}.${until}`,
        `${value}.x`,
        '..',
      ]) {
        visitor.cookie = `${name}=${forged}`;
        expect((await visitor.get('/panel/questions')).status, forged).to.equal(401);
      }
      visitor.cookie = good;
      expect((await visitor.get('/panel/questions')).status).to.equal(200);
      panel.time.now += 8 * 24 * 3_600_000;
      expect((await visitor.get('/panel/questions')).status).to.equal(401);
    });

    it('and makes whoever guesses wait', async () => {
      for (let n = 0; n < 10; n++) await visitor.post('/panel/login', { token: `guess ${n}` });
      const began = performance.now();
      const blocked = await visitor.post('/panel/login', { token: 'one guess more' });
      expect(performance.now() - began).to.be.greaterThan(900);
      expect(blocked.status).to.equal(429);
      expect(Number(blocked.headers.get('retry-after'))).to.be.within(1, 60);
      panel.time.now += 61_000;
      expect((await visitor.post('/panel/login', { token: 'a later guess' })).status).to.equal(401);
    });

    it('which gets in at once, however many wrong ones came from the same address', async () => {
      const guesses = Array.from({ length: 300 }, (_, n) =>
        visitor.post('/panel/login', { token: `guess ${n}` }),
      );
      await Promise.all(guesses.slice(0, 100));
      const began = performance.now();
      expect((await new Visitor(panel.url).post('/panel/login', { token: TOKEN })).status).to.equal(303);
      expect(performance.now() - began).to.be.lessThan(900);
      await Promise.all(guesses);
    });

    it('which must not be a short one', () => {
      expect(() => createPanel({ ...panel, token: 'short', secure: true })).to.throw(RangeError, '16');
    });
  });

  describe('ends a session that was signed out of', () => {
    const signOut = async (browser: Visitor) =>
      expect((await browser.post('/panel/logout', { form: await browser.formKey() })).status).to.equal(303);

    it('for whoever kept a copy of its cookie, and not the next one of the same person', async () => {
      await visitor.signIn();
      const thief = new Visitor(panel.url);
      thief.cookie = visitor.cookie;
      expect((await thief.get('/panel/questions')).status).to.equal(200);
      await signOut(visitor);
      expect((await thief.get('/panel/questions')).status).to.equal(401);
      await visitor.signIn();
      expect((await visitor.get('/panel/questions')).status).to.equal(200);
      expect((await thief.get('/panel/questions')).status).to.equal(401);
    });

    it('at every server on the same ledger, after restarts too', async () => {
      await visitor.signIn();
      const other = await startPanel({ notes: panel.notes });
      const copy = new Visitor(other.url);
      copy.cookie = visitor.cookie;
      expect((await copy.get('/panel/questions')).status).to.equal(200);
      await signOut(visitor);
      expect((await copy.get('/panel/questions')).status).to.equal(401);
      other.server.close();
    });

    it('and lets nobody in while it can not be told who has signed out', async () => {
      await visitor.signIn();
      panel.notes.broken = true;
      expect((await visitor.get('/panel/questions')).status).to.equal(503);
    });

    it('with its live stream', async () => {
      let signedIn = true;
      const streams = new LiveStreams(panel.book, undefined, 20);
      const stream = streams.open(async () => signedIn) ?? expect.fail('no stream');
      const ended = once(stream.resume(), 'end');
      expect(await Promise.race([ended, pause(100, 'still open')])).to.equal('still open');
      signedIn = false;
      await ended;
    });
  });

  it('knows that somebody is there once they are signed in, and no stranger', async () => {
    await visitor.get('/panel/');
    await visitor.post('/panel/login', { token: 'a wrong one' });
    expect(await panel.presence.absence()).to.be.a('string');
    await visitor.signIn();
    for (const path of ['/panel/', '/panel/questions']) {
      panel.time.now += 11 * 60_000;
      expect(await panel.presence.absence()).to.be.a('string');
      expect((await visitor.get(path)).status).to.equal(200);
      expect(await panel.presence.absence()).to.equal(undefined);
    }
  });

  it('asks for the cookie to be sent over https only where people come by https', async () => {
    const secure = await startPanel({ secure: true });
    const answer = await new Visitor(secure.url).post('/panel/login', { token: TOKEN });
    expect(answer.headers.get('set-cookie')).to.match(/; Secure/);
    secure.server.close();
  });

  it('sends strict headers with every answer and can not be read by other origins', async () => {
    await visitor.signIn();
    for (const path of ['/panel/', '/panel/questions', '/panel/style.css', '/panel/panel.js']) {
      const { status, headers } = await visitor.get(path);
      expect(status).to.equal(200);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy)
        .to.contain("default-src 'none'")
        .and.contain("script-src 'self'")
        .and.contain("frame-ancestors 'none'");
      expect(policy)
        .to.contain("form-action 'self'")
        .and.contain("base-uri 'none'")
        .and.not.contain('unsafe');
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      expect(headers.get('referrer-policy')).to.equal('same-origin');
      expect(headers.get('access-control-allow-origin')).to.equal(null);
      expect(headers.get('cache-control')).to.match(/no-store|no-cache/);
    }
    const { text } = await visitor.get('/panel/');
    expect(text).to.not.match(/<script(?![^>]*\ssrc=)|\son\w+=|<style|\sstyle=/);
  });

  it('leaves everything outside /panel to the contract', async () => {
    for (const path of ['/', '/panels', '/panel/nothing', '/Panel/']) {
      expect((await visitor.get(path)).text).to.equal('the contract');
    }
    expect((await visitor.get('/panel')).headers.get('location')).to.equal('/panel/');
  });

  describe('takes a reply', () => {
    beforeEach(async () => {
      await visitor.signIn();
    });

    it('with text and choice, and says how many are still wanted', async () => {
      const { id } = panel.book.put(aQuestion({ wanted: 3 }));
      expect((await visitor.get('/panel/')).text)
        .to.contain('0 of 3 replies')
        .and.contain('3 still wanted');
      const answer = await visitor.reply(id, ' I like\r\nthe handle. ', 'negative');
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([
        303,
        `/panel/?said=added#q-${id}`,
      ]);
      const [reply] = await panel.book.replies(id);
      expect(reply).to.include({
        text: 'I like\nthe handle.',
        sentiment: 'negative',
        inferred: false,
        house: false,
      });
      const page = await visitor.get('/panel/?said=added');
      expect(page.text)
        .to.contain('2 still wanted')
        .and.contain('You have answered this question')
        .and.contain('Thank you');
    });

    it('one per person and question, also after signing out and in again', async () => {
      const { id } = panel.book.put(aQuestion());
      await visitor.reply(id, 'First.');
      expect((await visitor.post('/panel/logout', { form: await visitor.formKey() })).status).to.equal(303);
      expect((await visitor.get('/panel/questions')).status).to.equal(401);
      await visitor.signIn();
      const again = await visitor.reply(id, 'Second.');
      expect(again.headers.get('location')).to.contain('said=duplicate');
      const other = await new Visitor(panel.url).signIn();
      await other.reply(id, 'Another person.');
      expect((await panel.book.replies(id)).map(({ text }) => text)).to.deep.equal([
        'First.',
        'Another person.',
      ]);
    });

    it('without a choice by reading it from the text, and marks that', async () => {
      const { id } = panel.book.put(aQuestion());
      await visitor.reply(id, 'I hate it, terrible.', '');
      expect((await panel.book.replies(id))[0]).to.include({ sentiment: 'negative', inferred: true });
      expect((await visitor.get('/panel/')).text).to.contain('inferred from the text');
    });

    it('of up to 2 000 characters of any script', async () => {
      const { id } = panel.book.put(aQuestion());
      await visitor.reply(id, '漢😀'.repeat(1_000));
      expect([...((await panel.book.replies(id))[0]?.text ?? '')]).to.have.length(2_000);
    });

    it('and gives it back to be corrected when it is empty, too long or oddly labelled', async () => {
      const { id } = panel.book.put(aQuestion());
      for (const [text, sentiment, complaint] of [
        [' \u200b ', 'neutral', 'Please write your reply first'],
        ['\u0000', 'neutral', 'Please write your reply first'],
        [`<b>${'x'.repeat(2_000)}`, 'neutral', 'has 2003 characters'],
        ['Fine.', 'ecstatic', 'Please choose'],
      ] as const) {
        const answer = await visitor.reply(id, text, sentiment);
        expect(answer.status).to.equal(400);
        expect(answer.text).to.contain(complaint).and.contain('aria-invalid="true"');
        if (text.startsWith('<b>'))
          expect(answer.text).to.contain(`&lt;b&gt;${'x'.repeat(2_000)}</textarea>`);
      }
      expect(await panel.book.replies(id)).to.deep.equal([]);
    });

    it('only while the question is open and wants one', async () => {
      const full = panel.book.put(aQuestion({ wanted: 1 }));
      await panel.book.add(full.id, aReply());
      expect((await visitor.reply(full.id, 'Too late.')).headers.get('location')).to.contain('said=full');
      const over = panel.book.put(aQuestion({ deadline: panel.time.now + 1_000 }));
      const formKey = await visitor.formKey();
      panel.time.now += 2_000;
      const late = await visitor.post('/panel/reply', {
        form: formKey,
        question: over.id,
        text: 'Hm.',
        sentiment: 'neutral',
      });
      expect(late.headers.get('location')).to.contain('said=closed');
      expect((await visitor.reply('no such question', 'Hm.')).headers.get('location')).to.equal(
        '/panel/?said=closed',
      );
    });

    it('as JSON for the script, with the same rules', async () => {
      const { id } = panel.book.put(aQuestion());
      const accept = { accept: 'application/json' };
      expect(JSON.parse((await visitor.reply(id, '', 'neutral', accept)).text)).to.include({ done: false });
      const done = await visitor.reply(id, 'Good.', 'positive', accept);
      expect(JSON.parse(done.text)).to.deep.equal({
        message: 'Thank you, your reply was added.',
        done: true,
      });
    });

    it('at a bounded rate', async () => {
      const { id } = panel.book.put(aQuestion());
      const fields = { form: await visitor.formKey(), question: id, text: 'Again.', sentiment: 'neutral' };
      const statuses = [];
      for (let n = 0; n < 32; n++) statuses.push((await visitor.post('/panel/reply', fields)).status);
      expect(statuses.filter(status => status === 429)).to.have.length(2);
    });
  });

  describe('refuses a reply', () => {
    it('that another site sends, by origin, by fetch metadata and by the form’s key', async () => {
      await visitor.signIn();
      const { id } = panel.book.put(aQuestion());
      const fields = { form: await visitor.formKey(), question: id, text: 'Forged.', sentiment: 'positive' };
      const elsewhere: Record<string, string>[] = [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
      ];
      for (const headers of elsewhere) {
        expect((await visitor.post('/panel/reply', fields, headers)).status).to.equal(403);
      }
      for (const form of ['', 'x'.repeat(43)]) {
        expect((await visitor.post('/panel/reply', { ...fields, form })).status).to.equal(403);
      }
      const other = await new Visitor(panel.url).signIn();
      expect(
        (await visitor.post('/panel/reply', { ...fields, form: await other.formKey() })).status,
      ).to.equal(403);
      expect(await panel.book.replies(id)).to.deep.equal([]);
    });

    it('that is too large, whether it says so or not, or not a form', async () => {
      await visitor.signIn();
      expect((await visitor.post('/panel/reply', { text: 'x'.repeat(40_000) })).status).to.equal(413);
      const { port } = panel.server.address() as AddressInfo;
      const headers = { cookie: visitor.cookie, 'content-type': 'application/x-www-form-urlencoded' };
      const unsaid = httpRequest({ port, method: 'POST', path: '/panel/reply', headers });
      unsaid.on('error', () => {});
      unsaid.write('x'.repeat(40_000));
      const [answer] = (await once(unsaid, 'response')) as [{ statusCode: number; resume(): void }];
      expect(answer.statusCode).to.equal(413);
      unsaid.destroy();
      const json = await fetch(`${panel.url}/panel/reply`, {
        method: 'POST',
        headers: { cookie: visitor.cookie, 'content-type': 'application/json' },
        body: '{}',
      });
      expect(json.status).to.equal(415);
    });
  });

  describe('shows foreign text as text', () => {
    const hostile =
      '<script>alert(1)</script><img src=x onerror=alert(1)>"\'&amp;\u202eesrever\u0000\u2066\ud800';

    it('in brand, question and replies, isolated in direction', async () => {
      const { id } = panel.book.put(aQuestion({ brand: hostile, question: hostile, id: 'ab"><b>' }));
      await panel.book.add(id, aReply({ text: hostile, id: '"><script>' }));
      await visitor.signIn();
      const { text } = await visitor.get('/panel/');
      expect(text).to.not.match(/<script>|<img|onerror=alert\(1\)>(?!.*&gt;)|<b>/);
      expect(text.match(/&lt;script&gt;alert\(1\)/g)).to.have.length(3);
      expect(text)
        .to.contain('&amp;amp;')
        .and.contain('\u2400')
        .and.not.contain('\u0000')
        .and.not.contain('"ab"');
      expect(text).to.contain('id="q-ab&quot;&gt;&lt;b&gt;"').and.contain('value="&quot;&gt;&lt;script&gt;"');
      expect(text)
        .to.match(/<bdi>&lt;script/)
        .and.match(/<div class="foreign [a-z]*" dir="auto">&lt;script/);
      expect((await visitor.get('/panel/style.css')).text).to.match(/\.foreign \{[^}]*unicode-bidi: isolate/);
    });

    it('of 10 000 characters, and a bounded part of more', async () => {
      panel.book.put(aQuestion({ question: 'ä'.repeat(10_000) }));
      panel.book.put(aQuestion({ question: 'z'.repeat(1_000_000), brand: 'q'.repeat(100_000) }));
      await visitor.signIn();
      const { text } = await visitor.get('/panel/');
      expect(text).to.contain('ä'.repeat(10_000)).and.contain('the rest is left out');
      expect(text.length).to.be.lessThan(60_000);
    });

    it('also when it comes back from the address', async () => {
      await visitor.signIn();
      const { text } = await visitor.get('/panel/?said=<script>');
      expect(text).to.contain('aria-live="polite"></p>');
      expect((await visitor.get('/panel/?said=constructor')).text).to.contain('aria-live="polite"></p>');
    });
  });

  it('lets the operator throw out a reply, whose place is free again but not for its author', async () => {
    const { id } = panel.book.put(aQuestion({ wanted: 1 }));
    const author = await new Visitor(panel.url).signIn();
    await author.reply(id, 'Something offensive.');
    await visitor.signIn();
    expect((await visitor.get('/panel/')).text)
      .to.contain('Something offensive.')
      .and.contain('Enough people have answered');
    const [reply] = await panel.book.replies(id);
    const fields = { form: await visitor.formKey(), question: id, reply: reply?.id ?? '' };
    expect((await visitor.post('/panel/reject', fields)).headers.get('location')).to.contain('said=rejected');
    expect((await visitor.post('/panel/reject', fields)).headers.get('location')).to.contain('said=absent');
    expect((await author.reply(id, 'Again.')).headers.get('location')).to.contain('said=duplicate');
    await visitor.reply(id, 'Something kind.');
    expect((await panel.book.replies(id)).map(({ text }) => text)).to.deep.equal(['Something kind.']);
  });

  it('marks replies of house respondents as such', async () => {
    const { id } = panel.book.put(aQuestion());
    await panel.book.add(id, aReply({ house: true }));
    await visitor.signIn();
    expect((await visitor.get('/panel/')).text).to.contain('house respondent, not a person');
  });

  it('shows at most twenty questions, those that one can still answer first, and says how many wait', async () => {
    const questions = Array.from({ length: 30 }, (_, n) =>
      panel.book.put(aQuestion({ brand: `Brand ${n}.` })),
    );
    await visitor.signIn();
    for (const { id } of questions.slice(0, 5)) await visitor.reply(id, 'Good.');
    const { text } = await visitor.get('/panel/');
    expect(text.match(/<article/g)).to.have.length(20);
    expect(text).to.contain('10 more questions wait').and.contain('Brand 5.').and.not.contain('Brand 0.');
  });

  it('can be used with a keyboard, a screen reader and a small phone', async () => {
    panel.book.put(aQuestion());
    await visitor.signIn();
    const { text } = await visitor.get('/panel/');
    expect(text).to.contain('<html lang="en">').and.contain('width=device-width').and.contain('<main>');
    expect(text).to.match(/<p id="status" role="status" aria-live="polite">/);
    expect(text).to.match(/<fieldset>\s*<legend>[^<]+<\/legend>/);
    const areas = [...text.matchAll(/<textarea id="([^"]+)"/g)].map(([, id]) => id);
    for (const id of areas) expect(text).to.contain(`<label class="above" for="${id}">`);
    expect(text.match(/type="radio"/g)).to.have.length(3);
    const style = (await visitor.get('/panel/style.css')).text;
    expect(style)
      .to.contain(':focus-visible')
      .and.contain('prefers-color-scheme: dark')
      .and.contain('overflow-wrap: anywhere');
  });

  it('keeps a contrast of 4.5 : 1 for text in both colour schemes', async () => {
    const style = (await visitor.get('/panel/style.css')).text;
    const schemes = [...style.matchAll(/:root \{([^}]*--ground[^}]*)\}/g)].map(([, block = '']) =>
      Object.fromEntries(
        [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map(([, name, value]) => [name, value]),
      ),
    );
    expect(schemes).to.have.length(2);
    for (const colours of schemes) {
      for (const [ink, ground] of [
        ['ink', 'card'],
        ['ink', 'ground'],
        ['soft', 'card'],
        ['soft', 'ground'],
        ['good', 'card'],
        ['bad', 'card'],
        ['on-deep', 'deep'],
      ] as const)
        expect(contrast(colours[ink] ?? '', colours[ground] ?? ''), `${ink} on ${ground}`).to.be.at.least(
          4.5,
        );
      expect(contrast(colours['focus'] ?? '', colours['card'] ?? '')).to.be.at.least(3);
    }
  });

  it('says that it can not read the questions while the ledger is out of reach', async () => {
    await visitor.signIn();
    panel.book.broken = true;
    const page = await visitor.get('/panel/');
    expect(page.status).to.equal(503);
    expect(page.text).to.contain('can not be read').and.not.contain('the ledger is gone');
  });

  describe('live stream', () => {
    async function changes(count: number, act: () => Promise<unknown>): Promise<void> {
      const gone = new AbortController();
      const answer = await fetch(`${panel.url}/panel/live`, {
        headers: { cookie: visitor.cookie },
        signal: gone.signal,
      });
      expect(answer.headers.get('content-type')).to.contain('text/event-stream');
      const reader = answer.body?.getReader() ?? expect.fail();
      let text = '';
      let acted = false;
      while ((text.match(/event: change/g) ?? []).length < count) {
        const { value, done } = await reader.read();
        if (done) expect.fail('the stream ended');
        text += Buffer.from(value as Uint8Array).toString();
        if (!acted && text.includes('event: change')) {
          acted = true;
          await pause(1_200);
          await act();
        }
      }
      gone.abort();
    }

    it('tells that something changed', async () => {
      await visitor.signIn();
      await changes(3, async () => panel.book.put(aQuestion()));
    });

    it('has a bounded number of clients and ends with the server', async () => {
      await visitor.signIn();
      const open = () => fetch(`${panel.url}/panel/live`, { headers: { cookie: visitor.cookie } });
      const streams = await Promise.all(Array.from({ length: 50 }, open));
      expect(streams.every(({ status }) => status === 200)).to.equal(true);
      const refused = await open();
      expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '10']);
      await streams[0]?.body?.cancel();
      await pause(100);
      streams[0] = await open();
      expect(streams[0].status).to.equal(200);
      panel.end.abort();
      for (const stream of streams) expect(await stream.text()).to.contain('event: change');
      expect((await open()).status).to.equal(503);
    });
  });
});

function contrast(a: string, b: string): number {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

/** WCAG 2.2, relative luminance. */
function luminance(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5]
    .map(at => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map(channel => (channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
