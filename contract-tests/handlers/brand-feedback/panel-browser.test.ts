import { expect } from 'chai';
import { Browser, noBrowser } from '../../support/browser.js';
import { describeInCi, rows } from '../../support/extent.js';
import { aQuestion, aReply } from '../../support/memory-reply-store.js';
import { type Panel, startPanel, TOKEN } from '../../support/one-panel.js';

const TAB = 9;
const SPACE = 32;
const ENTER = 13;

describeInCi(`the panel page in a real browser${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, function () {
  this.timeout(60_000);
  let browser: Browser;
  let panel: Panel;
  let url: string;

  before(async function () {
    if (noBrowser) return this.skip();
    browser = await Browser.start();
  });

  after(async () => {
    if (!noBrowser) await browser.close();
  });

  beforeEach(async () => {
    panel = await startPanel();
    url = `${panel.url}/panel/`;
    browser.complaints.length = 0;
    await browser.resize(1_000, 900);
  });

  afterEach(async () => {
    await browser.open('about:blank');
    panel.end.abort();
    panel.server.closeAllConnections();
    await new Promise(resolve => panel.server.close(resolve));
  });

  async function signIn(): Promise<void> {
    await browser.open(`${url}#${TOKEN}`);
    // By then the script has run.
    await browser.until(`document.querySelector('#questions') && document.readyState === 'complete'`);
    await browser.read('window.sameDocument = true');
  }

  const focused = (): Promise<unknown> => browser.read('document.activeElement.textContent.trim()');
  const count = (selector: string): Promise<unknown> =>
    browser.read(`document.querySelectorAll('${selector}').length`);
  const focusOn = (selector: string): Promise<unknown> =>
    browser.read(`document.querySelector('${selector}').focus()`);

  /** Presses Tab from the text to the button; the choice as a whole is one tab stop. */
  async function chooseAndSend(): Promise<void> {
    await browser.press('Tab', TAB);
    await browser.press(' ', SPACE);
    await browser.press('Tab', TAB);
    expect(await focused()).to.equal('Send reply');
    await browser.press('Enter', ENTER);
  }

  it('exchanges a token after # for a session and removes it from the address', async () => {
    panel.replyStore.put(aQuestion());
    await signIn();
    expect(await browser.read('location.href')).to.equal(url);
    expect(await browser.read('document.cookie')).to.equal('');
    expect(await count('article')).to.equal(1);
    expect(await browser.read('document.title')).to.equal('(1) Questions – Coinslot panel');
    expect(await browser.read('document.querySelector(".brand").innerText')).to.contain('Coinslot panel');
    expect(browser.complaints).to.deep.equal([]);
  });

  it('accepts a reply by keyboard alone and confirms it in place, where the focus stays', async () => {
    const { id } = panel.replyStore.put(aQuestion());
    const next = panel.replyStore.put(aQuestion({ brand: 'Second' }));
    await signIn();
    await focusOn('details[open] textarea');
    await browser.type('Keeps the coffee hot.');
    const top = await browser.read(`document.querySelector('article').getBoundingClientRect().top`);
    await chooseAndSend();
    await browser.until(`document.querySelector('.done')`);
    await browser.until(`document.querySelector('.state').textContent === 'Answered. 1 of 3 replies'`);
    expect(await count('.draft')).to.equal(0);
    expect(await focused()).to.match(/^Thank you, your reply was added\.Your reply:Keeps the coffee hot\./);
    expect(await browser.read(`document.querySelector('article').getBoundingClientRect().top`)).to.equal(top);
    expect((await panel.replyStore.replies(id))[0]).to.include({
      text: 'Keeps the coffee hot.',
      sentiment: 'positive',
    });
    await browser.press('Tab', TAB);
    expect(await focused()).to.equal('Next question');
    await browser.press('Enter', ENTER);
    expect(await browser.read('document.activeElement.closest("article").id')).to.equal(`q-${next.id}`);
    await browser.press('Tab', TAB);
    await browser.type('And this one leaks.');
    await chooseAndSend();
    await browser.until(`document.querySelectorAll('.done').length === 2`);
    expect(await focused()).to.contain('No other question is open at the moment.');
    expect(await panel.replyStore.replies(next.id)).to.have.length(1);
    expect(await browser.read('window.sameDocument')).to.equal(true);
    expect(browser.complaints).to.deep.equal([]);
  });

  it('confirms the last reply, whose question disappears immediately', async () => {
    const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
    await signIn();
    await focusOn('textarea');
    await browser.type('The only one.');
    const { replyStore } = panel;
    const before = { ...replyStore };
    replyStore.add = async (...reply) => {
      const outcome = await before.add(...reply);
      replyStore.finish(id);
      return outcome;
    };
    await chooseAndSend();
    await browser.until(`document.querySelector('.state').textContent === 'Answered'`);
    expect(await focused())
      .to.contain('Thank you, your reply was added.')
      .and.contain('The only one.');
  });

  it('has one open form at a time and a list of the rest, and opens a question with Enter', async () => {
    for (const brand of ['First', 'Second', 'Third']) panel.replyStore.put(aQuestion({ brand }));
    await signIn();
    const unfolded = `[...document.querySelectorAll('details[open] h2')].map(e => e.textContent).join()`;
    expect(await browser.read(unfolded)).to.equal('About First');
    await focusOn('details[open] textarea');
    await browser.type('Half a sen');
    await focusOn('article:nth-child(3) summary');
    await browser.press('Enter', ENTER);
    await browser.until(`${unfolded} === 'About Third'`);
    expect(await browser.read(`document.querySelector('article').classList.contains('draft')`)).to.equal(
      true,
    );
    await focusOn('article:nth-child(1) summary');
    await browser.press('Enter', ENTER);
    await browser.until(`${unfolded} === 'About First'`);
    expect(await browser.read(`document.querySelector('textarea').value`)).to.equal('Half a sen');
  });

  it('updates itself and keeps the text that is being typed', async () => {
    const { id } = panel.replyStore.put(aQuestion({ wanted: 5 }));
    await signIn();
    await focusOn('textarea');
    await browser.type('Half a sen');
    await panel.replyStore.add(id, aReply());
    panel.replyStore.put(aQuestion({ brand: 'Newcomer' }));
    await browser.until(`document.querySelectorAll('article').length === 2`);
    await browser.until(`document.querySelector('.state').textContent.includes('1 of 5')`);
    expect(await browser.read('document.querySelector("textarea").value')).to.equal('Half a sen');
    expect(await browser.read('document.activeElement.tagName')).to.equal('TEXTAREA');
    expect(await browser.read('document.title')).to.equal('(2) Questions – Coinslot panel');
  });

  for (const [how, close, why] of [
    ['is full', async (id: string) => panel.replyStore.add(id, aReply()), 'Enough people have answered'],
    ['is over', async (id: string) => panel.replyStore.finish(id), 'This question has closed'],
  ] as const)
    it(`says that a question ${how} while somebody is typing, and keeps the text until it is discarded`, async () => {
      const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
      await signIn();
      await focusOn('textarea');
      await browser.type('Half a sentence');
      await close(id);
      await browser.until(`document.querySelector('.note')`);
      const note = String(await browser.read(`document.querySelector('.note p').textContent`));
      expect(note).to.contain(why).and.contain('You can still copy what you wrote.');
      await browser.until(`document.getElementById('live').textContent === ${JSON.stringify(note)}`);
      expect(await browser.read('document.activeElement.tagName')).to.equal('TEXTAREA');
      await browser.type(' more');
      expect(await browser.read('document.querySelector("textarea").value')).to.equal('Half a sentence');
      expect(await browser.read(`document.querySelector('form[data-live] > button').offsetParent`)).to.equal(
        null,
      );
      expect(await browser.violations()).to.deep.equal([]);
      await focusOn('.note button');
      await browser.press('Enter', ENTER);
      await browser.until(`document.activeElement.id === 'main'`);
      expect(browser.complaints).to.deep.equal([]);
    });

  it('keeps the focus in the question when it closes, even though its choices and button disappear', async () => {
    const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
    await signIn();
    await focusOn('textarea');
    await browser.type('Half a sentence');
    await browser.press('Tab', TAB);
    await browser.press(' ', SPACE);
    expect(await browser.read('document.activeElement.type')).to.equal('radio');
    await panel.replyStore.add(id, aReply({ id: 'rejected-soon' }));
    await browser.until(`document.querySelector('.note')`);
    expect(await browser.read('document.activeElement.className')).to.equal('note');
    await panel.replyStore.reject(id, 'rejected-soon');
    await browser.until(`!document.querySelector('.note')`);
    expect(await browser.read('document.activeElement.tagName')).to.equal('TEXTAREA');
    expect(await browser.read(`document.querySelector('input[type=radio]').checked`)).to.equal(true);
    panel.replyStore.finish(id);
    await browser.until(`document.querySelector('.note')`);
    expect(await browser.read('document.activeElement.tagName')).to.equal('TEXTAREA');
    await browser.press('Tab', TAB);
    expect(await focused()).to.equal('Discard my text');
  });

  it('keeps the text of a reply that comes too late, before the page knows that the question is closed', async () => {
    const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
    await signIn();
    await focusOn('textarea');
    await browser.type('Too late.');
    const { replyStore } = panel;
    replyStore.add = async () => {
      replyStore.finish(id);
      return 'full';
    };
    await chooseAndSend();
    await browser.until(`document.querySelector('.note')`);
    expect(await browser.read('document.querySelector("textarea").value')).to.equal('Too late.');
    expect(await panel.replyStore.replies(id)).to.deep.equal([]);
  });

  it('works again when a question is reopened', async () => {
    const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
    await signIn();
    await focusOn('textarea');
    await browser.type('Patience');
    await panel.replyStore.add(id, aReply({ id: 'rejected-soon' }));
    await browser.until(`document.querySelector('.note')`);
    await panel.replyStore.reject(id, 'rejected-soon');
    await browser.until(`!document.querySelector('.note')`);
    await chooseAndSend();
    await browser.until(`document.querySelector('.done')`);
    expect((await panel.replyStore.replies(id))[0]?.text).to.equal('Patience');
  });

  it("tells somebody whose reply was rejected why they can't answer again, and keeps the text", async () => {
    const { id } = panel.replyStore.put(aQuestion());
    await signIn();
    await focusOn('textarea');
    await browser.type('First.');
    await chooseAndSend();
    await browser.until(`document.querySelector('.done')`);
    await panel.replyStore.reject(id, (await panel.replyStore.replies(id))[0]?.id ?? '');
    await signIn();
    await browser.open('about:blank');
    await signIn();
    await focusOn('textarea');
    await browser.type('Second.');
    await chooseAndSend();
    await browser.until(`document.querySelector('.note')`);
    panel.replyStore.put(aQuestion({ brand: 'Newcomer' }));
    await browser.until(`document.querySelectorAll('article').length === 2`);
    expect(await browser.read(`document.querySelector('.note p').textContent`)).to.contain(
      'Each person can answer only once',
    );
    expect(await browser.read('document.querySelector("textarea").value')).to.equal('Second.');
  });

  it("recognizes the visitor's own reply if it appears in the list before its answer arrives", async () => {
    const { id } = panel.replyStore.put(aQuestion());
    await signIn();
    await browser.read(`window.noted = 0; new MutationObserver(() => { if (document.querySelector('.note')) window.noted++; })
      .observe(document.getElementById('questions'), { childList: true, subtree: true }); 0`);
    await focusOn('textarea');
    await browser.type('Patience');
    const { replyStore } = panel;
    const before = { ...replyStore };
    replyStore.add = async (...reply) => {
      const outcome = await before.add(...reply);
      replyStore.put(aQuestion({ brand: 'Newcomer' }));
      await browser.until(`document.querySelectorAll('article').length === 2`);
      return outcome;
    };
    await chooseAndSend();
    await browser.until(`document.querySelector('.done')`);
    expect(await browser.read('window.noted')).to.equal(0);
    expect((await replyStore.replies(id))[0]?.text).to.equal('Patience');
  });

  it('does not lose the text when the session ends, and sends it after the visitor signs in in another window', async () => {
    const { id } = panel.replyStore.put(aQuestion());
    await signIn();
    await focusOn('textarea');
    await browser.type('Patience');
    panel.time.now += 8 * 24 * 3_600_000;
    panel.replyStore.put({ ...aQuestion({ id }), deadline: panel.time.now + 60_000 });
    await browser.press('Tab', TAB);
    await browser.press(' ', SPACE);
    await browser.read(`document.querySelector('form[data-live]').requestSubmit()`);
    await browser.until(`document.getElementById('status').textContent.includes('Your session has ended.')`);
    expect(await browser.read('document.querySelector("textarea").value')).to.equal('Patience');
    await browser.read(
      `fetch('/panel/login', { method: 'POST', body: new URLSearchParams({ token: '${TOKEN}' }) }).then(() => { window.back = true; }); 0`,
    );
    await browser.until('window.back');
    panel.replyStore.put(aQuestion({ brand: 'Newcomer', deadline: panel.time.now + 60_000 }));
    await browser.until(`!document.querySelector('form[data-sending]')`);
    await browser.read(`document.querySelector('form[data-live]').requestSubmit()`);
    await browser.until(`document.querySelector('.done') && !document.getElementById('status').textContent`);
    expect((await panel.replyStore.replies(id))[0]?.text).to.equal('Patience');
    expect(await browser.read('window.sameDocument')).to.equal(true);
  });

  it('shows times in the zone of the browser', async () => {
    await browser.call('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Kolkata' });
    const deadline = Date.UTC(2031, 0, 2, 22, 15);
    panel.replyStore.put(aQuestion({ deadline }));
    await signIn();
    const [shown, exact] = [
      await browser.read(`document.querySelector('time').textContent`),
      await browser.read(`document.querySelector('time').dateTime`),
    ];
    await browser.call('Emulation.setTimezoneOverride', { timezoneId: '' });
    expect(exact).to.equal('2031-01-02T22:15:00.000Z');
    expect(shown)
      .to.match(/^Fri.*0?3:45/)
      .and.match(/5:30|IST/);
  });

  it('works without JavaScript: one form open, a reply confirmed in its question, no time in an unknown zone', async () => {
    panel.replyStore.put(aQuestion());
    const { id } = panel.replyStore.put(aQuestion({ brand: 'Second' }));
    await signIn();
    await browser.call('Emulation.setScriptExecutionDisabled', { value: true });
    try {
      await browser.open(url);
      await browser.until(`document.querySelector('noscript p')`);
      expect(await browser.read(`document.querySelector('time').textContent`)).to.match(/^\d\d:\d\d UTC$/);
      await focusOn('article:nth-child(2) summary');
      await browser.press('Enter', ENTER);
      expect(await count('details[open]')).to.equal(1);
      await focusOn('details[open] textarea');
      await browser.type('By a plain form.');
      await chooseAndSend();
      await browser.until(`document.querySelector('.done')`);
      expect(await browser.read(`document.querySelector('details[open]').innerText`))
        .to.contain('Thank you, your reply was added.')
        .and.contain('By a plain form.');
      expect(await panel.replyStore.replies(id)).to.have.length(1);
    } finally {
      await browser.call('Emulation.setScriptExecutionDisabled', { value: false });
    }
  });

  it('runs no script from a brand, a question or a reply', async () => {
    const hostile =
      '<img src=x onerror="window.hit=1"><script>window.hit=1</script>"><svg onload="window.hit=1">\u202e';
    panel.replyStore.put(aQuestion({ brand: hostile, question: hostile }));
    await signIn();
    expect(await browser.read('document.querySelector(".asked").textContent')).to.equal(hostile);
    await focusOn('textarea');
    await browser.type(hostile);
    await chooseAndSend();
    await browser.until(`document.querySelector('.own')`);
    expect(await browser.read('document.querySelector(".own").textContent')).to.equal(hostile);
    await browser.open(url);
    await browser.until(`!window.sameDocument && document.querySelector('.own')`);
    expect(await browser.read('document.querySelector(".own").textContent')).to.equal(hostile);
    expect(await browser.read('window.hit')).to.equal(undefined);
    expect(await count('img, svg, article script')).to.equal(0);
    expect(await browser.read('getComputedStyle(document.querySelector(".asked")).unicodeBidi')).to.match(
      /isolate|plaintext/,
    );
  });

  for (const [width, dark] of rows([
    [320, true],
    [390, true],
    [390, false],
    [1_280, true],
    [1_280, false],
  ] as const))
    it(`has no fault that axe finds, no scroll bar and no small target at ${width} pixels, ${dark ? 'dark' : 'light'}`, async () => {
      const long = { brand: 'x'.repeat(150), question: 'word '.repeat(60) + 'y'.repeat(300) };
      panel.replyStore.put(aQuestion());
      panel.replyStore.put(aQuestion(long));
      const full = panel.replyStore.put(aQuestion({ wanted: 1 }));
      await panel.replyStore.add(full.id, aReply());
      await browser.resize(width, 900, dark);
      const check = async (what: string): Promise<void> => {
        expect(await browser.violations(), what).to.deep.equal([]);
        expect(await browser.read('document.documentElement.scrollWidth'), what).to.equal(width);
        const low = await browser.read(
          `[...document.querySelectorAll('button, label.choice, summary, textarea, .brand')].filter(e => e.offsetParent && e.getBoundingClientRect().height < 44).length`,
        );
        expect(low, what).to.equal(0);
      };
      await browser.open('about:blank');
      await browser.call('Network.clearBrowserCookies');
      await browser.open(url);
      await browser.until(`document.querySelector('#login')`);
      await check('signing in');
      await signIn();
      await check('the questions');
      await focusOn('textarea');
      await browser.type('z'.repeat(500));
      await chooseAndSend();
      await browser.until(`document.querySelector('.next button')`);
      await check('a reply');
      await browser.read(`document.querySelector('article:nth-child(2) details').open = true`);
      await check('a long question');
      expect(browser.complaints).to.deep.equal([]);
      const asked = `performance.getEntriesByType('resource').map(({ name }) => new URL(name).host).join()`;
      const hosts = new Set(String(await browser.read(asked)).split(','));
      expect([...hosts]).to.deep.equal([new URL(panel.url).host]);
    });

  it('shows where the focus is', async () => {
    panel.replyStore.put(aQuestion());
    await signIn();
    const seen: unknown[] = [];
    for (let stops = 0; stops < 7; stops++) {
      await browser.press('Tab', TAB);
      const shown = `getComputedStyle(document.activeElement.matches('input') ? document.activeElement.nextSibling : document.activeElement).outlineWidth`;
      expect(await browser.read(shown)).to.equal('3px');
      seen.push(await browser.read(`document.activeElement.tagName`));
    }
    expect(seen).to.deep.equal(['A', 'A', 'BUTTON', 'SUMMARY', 'TEXTAREA', 'INPUT', 'BUTTON']);
  });
});
