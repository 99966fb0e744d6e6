import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import { ICON_SVG } from '../../src/http/icon.js';
import { createPanel, type PanelOptions } from '../../handlers/brand-feedback/panel.js';
import { servePages } from '../../src/http/handler-pages.js';
import { Respondents } from '../../handlers/brand-feedback/respondents.js';
import {
  createMemoryBook,
  createMemoryNotes,
  type MemoryReplyStore,
  type MemoryNotes,
} from './memory-reply-store.js';

export const TOKEN = 'a-token-that-nobody-guesses';

export type Panel = {
  url: string;
  replyStore: MemoryReplyStore;
  notes: MemoryNotes;
  presence: Respondents;
  server: Server;
  time: { now: number };
  end: AbortController;
};

export async function startPanel(
  options: Partial<PanelOptions> & { notes?: MemoryNotes } = {},
): Promise<Panel> {
  const time = { now: Date.now() };
  const replyStore = createMemoryBook(() => time.now);
  const notes = options.notes ?? createMemoryNotes();
  const presence = new Respondents({ notes, now: () => time.now });
  const end = new AbortController();
  const pages = createPanel({
    shop: 'Coinslot',
    replyStore,
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
  app.use(servePages(pages, { info() {}, warn() {}, error() {} }));
  app.use(ctx => {
    if (ctx.path === '/icon.svg') return void Object.assign(ctx, { type: 'image/svg+xml', body: ICON_SVG });
    ctx.status = 404;
    ctx.body = 'the contract';
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, replyStore, notes, presence, server, time, end };
}

export type Answer = { status: number; headers: Headers; text: string };

/** A browser without JavaScript: it keeps the cookie and sends forms. */
export class Visitor {
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

export let panel: Panel;

export let visitor: Visitor;

/** Gives every test of a suite a panel, and a visitor who has not signed in yet. */
export function eachWithANewPanel(): void {
  beforeEach(async () => {
    panel = await startPanel();
    visitor = new Visitor(panel.url);
  });

  afterEach(async () => {
    panel.end.abort();
    panel.server.closeAllConnections();
    await new Promise(resolve => panel.server.close(resolve));
  });
}
