import { expect } from 'chai';
import { Browser, noBrowser } from '../../support/browser.js';
import { describeInCi } from '../../support/extent.js';
import { aQuestion, aReply } from '../../support/memory-reply-store.js';
import { type Panel, startPanel, TOKEN } from '../../support/one-panel.js';

const ENTER = 13;
const DAY_MS = 24 * 3_600_000;

describeInCi(
  `text that somebody types on the panel, in a real browser${noBrowser ? ` (skipped: ${noBrowser})` : ''}`,
  function () {
    this.timeout(60_000);
    let browser: Browser;
    let panel: Panel;

    before(async function () {
      if (noBrowser) return this.skip();
      browser = await Browser.start();
    });

    after(async () => {
      if (!noBrowser) await browser.close();
    });

    beforeEach(async () => {
      panel = await startPanel();
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
      await browser.open(`${panel.url}/panel/#${TOKEN}`);
      await browser.until(`document.querySelector('#questions') && document.readyState === 'complete'`);
    }

    const focusOn = (selector: string): Promise<unknown> =>
      browser.read(`document.querySelector('${selector}').focus()`);
    const note = (): Promise<unknown> => browser.read(`document.querySelector('.note p').textContent`);
    /** Opens a question, and waits until the page shows it, and therefore all earlier changes. */
    async function nextRefresh(change: Parameters<typeof aQuestion>[0] = {}): Promise<void> {
      const { id } = panel.replyStore.put(aQuestion({ brand: 'Newcomer', ...change }));
      await browser.until(`document.getElementById('q-${id}')`);
    }

    async function write(text: string): Promise<void> {
      await focusOn('textarea');
      await browser.type(text);
      await browser.read(`document.querySelector('input[value=positive]').checked = true`);
    }

    const send = (): Promise<unknown> =>
      browser.read(`document.querySelector('form[data-live]').requestSubmit()`);

    it('is sent at the first attempt after the session ended and the visitor signed in in another window', async () => {
      const { id } = panel.replyStore.put(aQuestion({ deadline: Date.now() + 9 * DAY_MS }));
      await signIn();
      await write('Patience');
      panel.time.now += 8 * DAY_MS;
      await browser.read(
        `fetch('/panel/login', { method: 'POST', body: new URLSearchParams({ token: '${TOKEN}' }) }).then(() => { window.back = true; }); 0`,
      );
      await browser.until('window.back');
      await send();
      await browser.until(`document.querySelector('.done, form .fault:not(:empty)')`);
      expect(await browser.read(`document.querySelector('article').innerText`)).to.contain('Thank you');
      expect((await panel.replyStore.replies(id)).map(({ text }) => text)).to.deep.equal(['Patience']);
    });

    it('does not come back once it is discarded with its question', async () => {
      const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
      await signIn();
      await write('Half a sentence');
      await panel.replyStore.add(id, aReply());
      await browser.until(`document.querySelector('.note')`);
      await focusOn('.note button');
      await browser.press('Enter', ENTER);
      await browser.until(`document.activeElement.id === 'main'`);
      await browser.until(
        `document.getElementById('rest').textContent.startsWith('No other question is open')`,
      );
      await nextRefresh();
      expect(await browser.read(`document.getElementById('q-${id}')`)).to.equal(null);
      await browser.until(`document.getElementById('live').textContent === 'There is a new question.'`);
    });

    it('is still reported as not added after its question was first shown as full and then disappeared from the list', async () => {
      const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
      await signIn();
      await write('Too late.');
      const { replyStore } = panel;
      const before = { ...replyStore };
      replyStore.add = async (question, reply) => {
        await before.add(question, aReply());
        return before.add(question, reply);
      };
      await send();
      const said = 'Enough people have answered in the meantime. Your reply was not added.';
      // The list may show that the question is full before this note appears.
      await browser.until(`document.querySelector('.note')?.textContent.includes('${said}')`);
      await nextRefresh();
      expect(await note()).to.contain(said);
      replyStore.finish(id);
      await nextRefresh();
      expect(await note()).to.contain(said);
      expect(await browser.read('document.querySelector("textarea").value')).to.equal('Too late.');
    });

    it('is not reported as coming from elsewhere if it was added but the confirmation was lost', async () => {
      const { id } = panel.replyStore.put(aQuestion());
      await signIn();
      await write('Arrived.');
      const { replyStore } = panel;
      const before = { ...replyStore };
      replyStore.add = async (...reply) => {
        await before.add(...reply);
        throw new Error('the connection broke');
      };
      await send();
      await browser.until(`document.querySelector('.note')`);
      expect(await note()).to.contain('This question already has your reply.');
      expect(await replyStore.replies(id)).to.have.length(1);
    });

    it('does not cost keyboard users their place when the folded question in focus closes', async () => {
      panel.replyStore.put(aQuestion());
      const { id } = panel.replyStore.put(aQuestion({ brand: 'Second' }));
      await signIn();
      await focusOn(`#q-${id} summary`);
      panel.replyStore.finish(id);
      await nextRefresh();
      expect(await browser.read('document.activeElement.tagName')).to.equal('SUMMARY');
      await focusOn('textarea');
      await nextRefresh();
      expect(await browser.read(`document.getElementById('q-${id}')`)).to.equal(null);
    });

    it('is not reported as late when a question with extended time closes', async () => {
      const deadline = Date.now() + 1_000;
      const question = panel.replyStore.put(aQuestion({ deadline }));
      await signIn();
      await write('Half a sentence');
      panel.replyStore.put({ ...question, deadline: deadline + 60_000, attempt: 2 });
      await nextRefresh();
      await browser.until(`Date.now() > ${deadline}`);
      panel.replyStore.finish(question.id);
      await browser.until(`document.querySelector('.note')`);
      expect(await note()).to.contain('This question has closed');
    });

    for (const script of [true, false])
      it(`is not marked as invalid when only the choice is missing, ${script ? 'with' : 'without'} JavaScript`, async () => {
        panel.replyStore.put(aQuestion());
        await signIn();
        await browser.call('Emulation.setScriptExecutionDisabled', { value: !script });
        try {
          await browser.open(`${panel.url}/panel/`);
          await browser.until(
            `document.readyState === 'complete' && document.querySelector('form[data-live]')`,
          );
          await focusOn('textarea');
          await browser.type('ここは良い店です。');
          await browser.read(`document.querySelector('form[data-live]').noValidate = true`);
          await focusOn('form[data-live] > button');
          await browser.press('Enter', ENTER);
          await browser.until(`document.querySelector('form .fault:not(:empty)')`);
          await browser.until(`document.activeElement.name === 'sentiment'`);
          expect(
            await browser.read(
              `[...document.querySelectorAll('[aria-invalid=true]')].map(e => e.tagName).join()`,
            ),
          ).to.equal('FIELDSET');
          expect(await browser.read('document.querySelector("textarea").value')).to.equal(
            'ここは良い店です。',
          );
          if (script) expect(await browser.violations()).to.deep.equal([]);
        } finally {
          await browser.call('Emulation.setScriptExecutionDisabled', { value: false });
        }
      });
  },
);
