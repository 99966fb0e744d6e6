import { expect } from 'chai';
import { Browser, noBrowser } from '../support/browser.js';
import { describeInCi, rows } from '../support/extent.js';
import { aReply } from '../support/memory-reply-store.js';
import {
  fillMonth,
  leaveUnresolved,
  openOperatorWorld,
  OPERATOR_TOKEN,
  sell,
  type OperatorWorld,
} from '../support/operator-world.js';

const TAB = 9;
const ENTER = 13;
/** More presses of Tab than are needed to reach any link or button. */
const MAX_STOPS = 60;

describeInCi(
  `the operator page in a real browser${noBrowser ? ` (skipped: ${noBrowser})` : ''}`,
  function () {
    this.timeout(60_000);
    let browser: Browser;
    let world: OperatorWorld;
    let failed: string;
    let open: string;
    let payer: string;

    before(async function () {
      if (noBrowser) return this.skip();
      browser = await Browser.start();
      world = await openOperatorWorld();
      ({ failed, open } = await fillMonth(world));
      await world.ledger.setTargets([{ name: 'hooks.example.com-1a2b3c4d', kinds: [] }]);
      await world.ledger.refreshTargets();
      await sell(world, { sales: 3 });
      world.clock.now += 1_000;
      payer = (await world.ledger.find(failed))?.payer ?? '';
      await world.replies.add(open, aReply({ id: 'first-reply', text: 'word '.repeat(150) }));
    });

    after(async () => {
      if (noBrowser) return;
      await browser.close();
      await world.close();
    });

    beforeEach(async () => {
      browser.complaints.length = 0;
      await browser.resize(1_280, 900);
    });

    async function signIn(): Promise<void> {
      await browser.open(`${world.url}/#${OPERATOR_TOKEN}`);
      await browser.until(`document.querySelector('#headline')`);
    }

    async function go(path: string, ready: string): Promise<void> {
      await browser.open(`${world.url}${path}`);
      await browser.until(`location.pathname === '${path}' && document.querySelector('${ready}')`);
    }

    it('opens with the link and drops the token from the address', async () => {
      await signIn();
      expect(await browser.read('location.href')).to.equal(`${world.url}/`);
      expect(await browser.read('document.cookie')).to.equal('');
      expect(browser.complaints).to.deep.equal([]);
      await browser.until(`document.querySelector('#came-in canvas')`);
    });

    it('opens with the link on the sign-in page, too, where only the part of the URL after # changes', async () => {
      await browser.call('Network.clearBrowserCookies');
      await browser.open(`${world.url}/`);
      await browser.until(`document.querySelector('#login')`);
      await signIn();
      expect(await browser.read('location.href')).to.equal(`${world.url}/`);
    });

    for (const [width, dark] of rows([
      [390, true],
      [390, false],
      [1_280, true],
      [1_280, false],
    ] as const))
      it(`has no fault that axe finds and no scroll bar at ${width} pixels, ${dark ? 'dark' : 'light'}`, async () => {
        await browser.resize(width, 900, dark);
        await signIn();
        const pages: [string, string][] = [
          ['/', '#headline'],
          ['/sales', 'td'],
          [`/payers/${payer}`, 'dl'],
          ['/events', 'td form'],
          [`/payments/${failed}`, '.history'],
          [`/payments/${failed}/retry`, 'form'],
          [`/payments/${failed}/refund`, '#tx'],
          [`/payments/${open}`, '.items'],
          [`/payments/${open}/reject/first-reply`, 'form .button'],
        ];
        for (const [path, ready] of pages) {
          await go(path, ready);
          expect(await browser.violations(), path).to.deep.equal([]);
          expect(await browser.read('document.documentElement.scrollWidth'), path).to.equal(width);
          const low = await browser.read(
            `[...document.querySelectorAll('button, a.button, input:not([type=hidden]), summary')].filter(e => e.getBoundingClientRect().height < 44).length`,
          );
          expect(low, path).to.equal(0);
        }
        expect(browser.complaints).to.deep.equal([]);
      });

    it("draws the income by day, shows a day's figures under the pointer, and switches to the chosen period", async () => {
      await signIn();
      await browser.until(`document.querySelector('#came-in canvas')`);
      await browser.read(`document.querySelector('#came-in .plot').scrollIntoView({ block: 'center' })`);
      const place = (await browser.read(
        `(({ left, top, width, height }) => [left + width - 20, top + height / 2])(document.querySelector('#came-in .u-over').getBoundingClientRect())`,
      )) as [number, number];
      await browser.call('Input.dispatchMouseEvent', { type: 'mouseMoved', x: place[0], y: place[1] });
      await browser.until(`document.querySelector('.tip')?.textContent.includes('2026-06-30')`);
      const row = `[...document.querySelectorAll('#came-in tbody tr')][0]`;
      const sales = await browser.read(`${row}.lastElementChild.textContent`);
      expect(await browser.read(`document.querySelector('.tip').textContent`)).to.include(`Sales: ${sales}`);
      await browser.read(`document.querySelector('.periods a').click()`);
      await browser.until(`location.search === '?period=24h' && document.querySelector('#came-in canvas')`);
      expect(await browser.read(`document.querySelectorAll('#came-in tbody tr').length`)).to.equal(24);
      expect(browser.complaints).to.deep.equal([]);
    });

    it('shows a sale and an unresolved payment without a reload, and keeps sections open and the focus in place', async () => {
      await signIn();
      await browser.until(`document.querySelector('#came-in details')`);
      await browser.read(
        `window.sameDocument = true; document.querySelector('#came-in details').open = true; 0`,
      );
      await browser.read(`document.querySelector('#find').focus()`);
      await browser.type('abcdef');
      const [id = ''] = await sell(world, { operation: 'newcomer' });
      const unresolved = await leaveUnresolved(world);
      await browser.until(`document.querySelector('#sales').textContent.includes('newcomer')`);
      await browser.until(`document.querySelector('#attention a[href="/payments/${unresolved}"]')`);
      expect(await browser.read(`document.querySelector('#sales a').getAttribute('href')`)).to.equal(
        `/payments/${id}`,
      );
      expect(await browser.read(`document.querySelector('#came-in details').open`)).to.equal(true);
      expect(await browser.read(`document.querySelector('#find').value`)).to.equal('abcdef');
      expect(await browser.read('window.sameDocument')).to.equal(true);
    });

    /** Presses Tab until the focused element matches, and checks that every stop on the way is visible. */
    async function tabTo(what: string, selector: string): Promise<void> {
      // Focus is invisible until the style sheet has loaded.
      await browser.until(`document.readyState === 'complete'`);
      for (let stops = 0; stops < MAX_STOPS; stops += 1) {
        await browser.press('Tab', TAB);
        const outline = await browser.read(
          `document.activeElement === document.body ? '3px' : getComputedStyle(document.activeElement).outlineWidth`,
        );
        expect(outline, String(await browser.read('document.activeElement.outerHTML'))).to.equal('3px');
        if (await browser.read(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
      }
      expect.fail(`Tab never reaches ${what}`);
    }

    it('lets a keyboard user sign in, retry and refund, with a confirmation before each', async () => {
      await browser.call('Network.clearBrowserCookies');
      await browser.open(`${world.url}/`);
      await browser.until(`document.querySelector('#login')`);
      if (!(await browser.read(`document.activeElement.matches('input[name=token]')`)))
        await tabTo('the token', 'input[name=token]');
      await browser.type(OPERATOR_TOKEN);
      await browser.press('Enter', ENTER);
      await browser.until(`document.querySelector('#headline')`);
      await tabTo('the payment', `#attention a[href="/payments/${failed}"]`);
      await browser.press('Enter', ENTER);
      await browser.until(
        `location.pathname === '/payments/${failed}' && document.querySelector('.history')`,
      );
      await tabTo('Retry', 'a[href$="/retry"]');
      await browser.press('Enter', ENTER);
      await browser.until(`location.pathname.endsWith('/retry') && document.querySelector('#main form')`);
      expect(world.asked.retries).to.deep.equal([]);
      await tabTo('the confirmation', '#main form button');
      await browser.press('Enter', ENTER);
      await browser.until(`document.querySelector('.said')`);
      expect(await browser.read(`document.querySelector('.said').textContent`)).to.equal(
        'Another attempt has been started.',
      );
      expect(world.asked.retries).to.deep.equal([failed]);
      await tabTo('Refund', 'a[href$="/refund"]');
      await browser.press('Enter', ENTER);
      await browser.until(`location.pathname.endsWith('/refund') && document.querySelector('#tx')`);
      expect(world.asked.refunds).to.deep.equal([]);
      const transaction = '5'.repeat(88);
      await tabTo('the signature', '#tx');
      await browser.type(transaction);
      await tabTo('the confirmation', '#main form button');
      await browser.press('Enter', ENTER);
      await browser.until(`document.querySelector('.said')`);
      expect(world.asked.refunds).to.deep.equal([[failed, transaction]]);
      expect(browser.complaints).to.deep.equal([]);
    });

    it('on a phone, too, lists every payment that needs attention', async () => {
      await Promise.all(Array.from({ length: 12 }, () => leaveUnresolved(world)));
      await browser.resize(390, 900);
      await signIn();
      await go('/', '#headline');
      const hidden = `[...document.querySelectorAll('#attention tbody tr')].filter(row => !row.getClientRects().length).length`;
      // The page that was already open lists all payments after its next update.
      await browser.until(`document.querySelectorAll('#attention tbody tr').length > 12`);
      expect(await browser.read(hidden)).to.equal(0);
    });
  },
);
