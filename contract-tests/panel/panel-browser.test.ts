import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import { ICON_SVG } from '../../src/http/icon.js';
import { createPanel } from '../../src/panel/panel.js';
import { Respondents } from '../../src/upstreams/people/respondents.js';
import { Browser, noBrowser } from '../support/browser.js';
import {
  aQuestion,
  aReply,
  createMemoryBook,
  createMemoryNotes,
  type MemoryReplyStore,
} from '../support/memory-reply-store.js';

const TOKEN = 'a-token-that-nobody-guesses';
const TAB = 9;
const SPACE = 32;
const ENTER = 13;

describe(`the panel page in a real browser${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, function () {
  this.timeout(60_000);
  let browser: Browser;
  let server: Server;
  let replyStore: MemoryReplyStore;
  let url: string;

  before(async function () {
    if (noBrowser) return this.skip();
    browser = await Browser.start();
  });

  after(async () => {
    if (!noBrowser) await browser.close();
  });

  beforeEach(async () => {
    replyStore = createMemoryBook();
    const app = new Koa();
    app.silent = true;
    const notes = createMemoryNotes();
    const presence = new Respondents({ notes });
    app.use(
      createPanel({
        shop: 'Coinslot',
        replyStore,
        presence,
        notes,
        token: TOKEN,
        secure: false,
      }).routes() as Koa.Middleware,
    );
    app.use(ctx => {
      if (ctx.path === '/icon.svg') Object.assign(ctx, { type: 'image/svg+xml', body: ICON_SVG });
    });
    const handle = app.callback();
    server = createServer((request, response) => void handle(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/panel/`;
    browser.complaints.length = 0;
    await browser.resize(1_000, 900);
  });

  afterEach(async () => {
    await browser.open('about:blank');
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  });

  async function signIn(): Promise<void> {
    await browser.open(`${url}#${TOKEN}`);
    await browser.until(`document.querySelector('#questions')`);
  }

  it('exchanges a token behind # for a session and drops it from the address', async () => {
    replyStore.put(aQuestion());
    await signIn();
    expect(await browser.read('location.href')).to.equal(url);
    expect(await browser.read('document.cookie')).to.equal('');
    expect(await browser.read('document.querySelectorAll("article").length')).to.equal(1);
    expect(browser.complaints).to.deep.equal([]);
  });

  it('takes a reply by keyboard alone, without leaving the page, and says so to a screen reader', async () => {
    const { id } = replyStore.put(aQuestion());
    await signIn();
    await browser.read('window.sameDocument = true');
    await browser.read('document.querySelector("textarea").focus()');
    await browser.type('Keeps the coffee hot.');
    await browser.press('Tab', TAB);
    await browser.press(' ', SPACE);
    await browser.press('Tab', TAB);
    expect(await browser.read('document.activeElement.textContent')).to.equal('Send reply');
    await browser.press('Enter', ENTER);
    await browser.until(`document.getElementById('status').textContent.includes('Thank you')`);
    await browser.until(
      `document.querySelector('article').textContent.includes('You have answered this question')`,
    );
    expect(await browser.read('window.sameDocument')).to.equal(true);
    expect(await browser.read('document.activeElement.tagName')).to.equal('ARTICLE');
    expect((await replyStore.replies(id))[0]).to.include({
      text: 'Keeps the coffee hot.',
      sentiment: 'positive',
    });
  });

  it('follows what happens elsewhere and keeps what is being typed', async () => {
    const { id } = replyStore.put(aQuestion({ wanted: 5 }));
    await signIn();
    await browser.read('document.querySelector("textarea").focus()');
    await browser.type('Half a sen');
    await replyStore.add(id, aReply());
    replyStore.put(aQuestion({ brand: 'Newcomer' }));
    await browser.until(`document.querySelectorAll('article').length === 2`);
    await browser.until(`document.querySelector('.state').textContent.includes('1 of 5')`);
    expect(await browser.read('document.querySelector("textarea").value')).to.equal('Half a sen');
    expect(await browser.read('document.activeElement.tagName')).to.equal('TEXTAREA');
    replyStore.finish(id);
    await browser.until(`document.querySelector('.state').textContent.includes('no longer open')`);
    expect(await browser.read('document.querySelector("textarea").value')).to.equal('Half a sen');
  });

  it('runs nothing that a brand, a question or a reply holds', async () => {
    const hostile =
      '<img src=x onerror="window.hit=1"><script>window.hit=1</script>"><svg onload="window.hit=1">\u202e';
    const { id } = replyStore.put(aQuestion({ brand: hostile, question: hostile }));
    await replyStore.add(id, aReply({ text: hostile }));
    await signIn();
    await browser.read(`document.querySelector('summary').click()`);
    expect(await browser.read('document.querySelector(".asked").textContent')).to.equal(hostile);
    expect(await browser.read('document.querySelector(".replies .foreign").textContent')).to.equal(hostile);
    expect(await browser.read('window.hit')).to.equal(undefined);
    expect(await browser.read('document.querySelectorAll("img, svg, article script").length')).to.equal(0);
    expect(await browser.read('getComputedStyle(document.querySelector(".asked")).unicodeBidi')).to.match(
      /isolate|plaintext/,
    );
  });

  it('fits a screen 320 pixels wide, with targets that a finger can hit', async () => {
    const { id } = replyStore.put(
      aQuestion({ brand: 'x'.repeat(150), question: 'word '.repeat(60) + 'y'.repeat(300) }),
    );
    await replyStore.add(id, aReply({ text: 'z'.repeat(500) }));
    await browser.resize(320, 640, true);
    await signIn();
    await browser.read(`document.querySelector('summary').click()`);
    expect(await browser.read('document.documentElement.scrollWidth')).to.equal(320);
    const low = await browser.read(
      `[...document.querySelectorAll('button, label.choice, summary')].filter(e => e.getBoundingClientRect().height < 44).length`,
    );
    expect(low).to.equal(0);
    expect(await browser.read('getComputedStyle(document.body).backgroundColor')).to.equal('rgb(22, 21, 15)');
  });

  it('shows where the focus is', async () => {
    replyStore.put(aQuestion());
    await signIn();
    await browser.press('Tab', TAB);
    expect(await browser.read('document.activeElement.textContent')).to.equal('Sign out');
    expect(await browser.read('getComputedStyle(document.activeElement).outlineWidth')).to.equal('3px');
  });
});
