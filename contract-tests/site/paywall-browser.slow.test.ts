import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { PricedOperation } from '../../src/contract/contract.js';
import { Browser, noBrowser } from '../support/browser.js';
import { describeInCi, rows } from '../support/extent.js';
import { freePort } from '../support/free-port.js';
import { priceOf, SOLD, usdcOf } from '../support/sold.js';
import { walletInPage } from '../support/wallet-in-page.js';
import { BROWSER } from '../support/site.js';
import { openWorld, type World } from '../support/world.js';

const TAB = 9;
const ENTER = 13;
const READY = `document.querySelector('.pay button')`;
const SAID = `document.querySelector('.say').textContent`;
const PAID = `${SAID}.startsWith('Paid ')`;
/** The contract's examples name mainnet mints, which are not on the local chain. */
const MINT_FIELD = `document.querySelector('[data-name=mint]')`;

const buttonWith = (text: string): string =>
  `[...document.querySelectorAll('.pay button')].find(each => each.textContent.includes('${text}'))`;
const PAY = buttonWith('with Test wallet');

/** Holds back the answer to the next call with a payment, like a connection that breaks after the request has arrived. */
async function holdPaidAnswer(browser: Browser): Promise<{ arrived: Promise<void> }> {
  const patterns = SOLD.paid.map(({ path }) => ({ urlPattern: `*${path}`, requestStage: 'Response' }));
  await browser.call('Fetch.enable', { patterns });
  const arrived = new Promise<void>(resolve => {
    let held = false;
    browser.onEvent = (method, params) => {
      if (method !== 'Fetch.requestPaused') return;
      const { requestId, request } = params as {
        requestId: string;
        request: { headers: Record<string, string> };
      };
      const isPaid = Object.keys(request.headers).some(name => name.toLowerCase() === 'payment-signature');
      if (held || !isPaid) return void browser.call('Fetch.continueRequest', { requestId });
      held = true;
      resolve();
    };
  });
  return { arrived };
}

describeInCi(`A paid URL in a real browser${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, function () {
  this.timeout(180_000);
  let browser: Browser;
  let world: World;
  let wallet: string;

  async function begin(folder?: string): Promise<void> {
    browser = await Browser.start(folder);
    await browser.beforePages(wallet);
    await browser.resize(1280, 900);
  }

  before(async function () {
    if (noBrowser) return this.skip();
    // A sandbox shop, whose challenges name devnet.
    world = await openWorld();
    const { publicKey } = Keypair.fromSecretKey(world.buyer);
    wallet = walletInPage(world.buyer, publicKey.toBase58(), 'solana:devnet');
    await begin();
  });
  after(async () => {
    if (noBrowser) return;
    await browser.close();
    await world.close();
  });
  beforeEach(async () => {
    browser.onEvent = undefined;
    await browser.call('Fetch.disable');
    await browser.open('about:blank');
    browser.complaints.length = 0;
  });

  async function openPage({ path }: Pick<PricedOperation, 'path'>): Promise<void> {
    await browser.open(world.url + path);
    await browser.until(READY).catch((error: unknown) => {
      throw new Error(`${String(error)} ${browser.complaints.join()}`);
    });
    await browser.read(`${MINT_FIELD} && (${MINT_FIELD}.value = '${world.sandbox.info.mints.classic}')`);
  }

  const summarize = SOLD.paid.find(({ id }) => id === 'summarize')!;

  async function expectQuiet(): Promise<void> {
    expect(browser.complaints.filter(text => !/a status of (402|503)/.test(text))).to.deep.equal([]);
    const loaded = JSON.parse(
      String(
        await browser.read(
          `JSON.stringify(performance.getEntriesByType('resource').map(({ name }) => name))`,
        ),
      ),
    ) as string[];
    expect(
      loaded.filter(url => !/^(data|blob):/.test(url) && !url.startsWith(`${world.url}/`)),
    ).to.deep.equal([]);
  }

  async function linksShown(): Promise<string[]> {
    const read = `JSON.stringify([...document.querySelectorAll('.result a')].map(({ href }) => href))`;
    return JSON.parse(String(await browser.read(read))) as string[];
  }

  for (const operation of SOLD.paid)
    it(`sells ${operation.id} to a wallet in the browser, once, and shows the answer, its receipt and links`, async () => {
      await openPage(operation);
      const earned = await world.earned();
      await browser.read(`${PAY}.click()`);
      await browser.until(PAID);
      expect((await world.earned()) - earned).to.equal(priceOf(operation.id));
      expect(await browser.read('window.signed')).to.equal(1);
      await browser.read(`document.querySelectorAll('.result details').forEach(each => (each.open = true))`);
      const shown = String(await browser.read(`document.querySelector('.result').innerText`));
      expect(shown)
        .to.contain(`${usdcOf(operation.id)} USDC`)
        .and.to.contain('Download');
      const links = await linksShown();
      const again = links.find(link => link.includes('/answers/')) ?? '';
      const fetched = await fetch(again);
      expect(fetched.status).to.equal(200);
      expect((await fetched.arrayBuffer()).byteLength).to.be.above(10);
      expect(await browser.violations()).to.deep.equal([]);
      await expectQuiet();
    });

  it('sells on devnet, and links to an explorer', async () => {
    const port = String(await freePort());
    const more = { NETWORK: 'devnet', PORT: port, PUBLIC_URL: `http://127.0.0.1:${port}`, ADMIN_PORT: '0' };
    const devnet = await openWorld({ ...more, PEOPLE: 'panel', PANEL_TOKEN: 'x'.repeat(32) });
    const { publicKey } = Keypair.fromSecretKey(devnet.buyer);
    const own = await Browser.start();
    try {
      await own.beforePages(walletInPage(devnet.buyer, publicKey.toBase58(), 'solana:devnet'));
      await own.open(devnet.url + summarize.path);
      await own.until(READY);
      expect(await own.read(`document.querySelector('.pay').textContent`)).not.to.contain('sandbox');
      await own.read(`${PAY}.click()`);
      await own.until(PAID);
      expect(await devnet.earned()).to.equal(priceOf('summarize'));
      expect(
        await own.read(`document.querySelector('.result a[href^="https://solscan.io/tx/"]').search`),
      ).to.equal('?cluster=devnet');
    } finally {
      await own.close();
      await devnet.close();
    }
  });

  it('plays an answer that is audio', async () => {
    await openPage(SOLD.paid.find(({ id }) => id === 'textToSpeech')!);
    await browser.read(`${PAY}.click()`);
    await browser.until(PAID);
    await browser.until(`document.querySelector('.result audio').duration > 0.5`);
  });

  it('signs once when the page is reloaded between signature and answer, and continues automatically', async () => {
    await openPage(summarize);
    const earned = await world.earned();
    const { arrived } = await holdPaidAnswer(browser);
    await browser.read(
      `document.querySelector('[data-name=text]').value = 'A reload. It comes between. The answer is late.'`,
    );
    await browser.read(`${PAY}.click()`);
    await arrived;
    await browser.open(world.url + summarize.path);
    await browser.until(PAID);
    expect(await browser.read('window.signed')).to.equal(0);
    expect(await browser.read(`document.querySelector('[data-name=text]').value`)).to.contain('A reload.');
    expect((await world.earned()) - earned).to.equal(priceOf('summarize'));
  });

  it('signs once when the browser is killed between signature and answer', async () => {
    await openPage(summarize);
    const earned = await world.earned();
    const { arrived } = await holdPaidAnswer(browser);
    await browser.read(
      `document.querySelector('[data-name=text]').value = 'A kill. It comes between. The answer is late.'`,
    );
    await browser.read(`${PAY}.click()`);
    await arrived;
    await begin(await browser.kill());
    await browser.open(world.url + summarize.path);
    await browser.until(PAID);
    expect(await browser.read('window.signed')).to.equal(0);
    expect((await world.earned()) - earned).to.equal(priceOf('summarize'));
  });

  it('offers no new signature while a payment is undecided, even after a reload, and sends the same payment again after a 503', async () => {
    await openPage(summarize);
    const earned = await world.earned();
    world.facilitator.intervene(({ path, drop, forward, respond }) =>
      path.endsWith('/settle') ? drop() : forward().then(({ status, body }) => respond(status, body)),
    );
    await browser.read(`document.querySelector('[data-name=text]').value = 'Down. For a moment. Then up.'`);
    await browser.read(`${PAY}.click()`);
    await browser.until(`${SAID}.includes('The same payment is sent again in')`);
    expect(await browser.read(`Boolean(${PAY})`)).to.equal(false);
    await browser.open(world.url + summarize.path);
    await browser.until(`${SAID}.includes('The same payment is sent again in')`);
    expect(await browser.read(`Boolean(${PAY})`)).to.equal(false);
    world.facilitator.intervene(undefined);
    await browser.until(PAID);
    expect(await browser.read('window.signed')).to.equal(0);
    expect((await world.earned()) - earned).to.equal(priceOf('summarize'));
  });

  it('asks the wallet once when two tabs buy the same call at the same moment', async () => {
    await openPage(summarize);
    const earned = await world.earned();
    await browser.read(`window.held = new Promise(resolve => (window.confirm = resolve))`);
    const open = `window.other = window.open(location.href)`;
    await browser.call('Runtime.evaluate', { expression: open, userGesture: true });
    await browser.until(`window.other.${READY}`);
    await browser.read(`window.putInto(window.other)`);
    const inOther = (each: string): string => each.replaceAll('document.', 'window.other.document.');
    await browser.until(inOther(PAY));
    await browser.read(`void (${PAY}.click(), ${inOther(PAY)}.click())`);
    await browser.until(`${inOther(SAID)}.startsWith('Another tab of this browser is buying this call')`);
    await browser.until(`${SAID}.startsWith('Confirm the payment')`);
    await browser.read(`window.confirm()`);
    await browser.until(PAID);
    expect(await browser.read('window.signed')).to.equal(1);
    expect((await world.earned()) - earned).to.equal(priceOf('summarize'));
    await browser.read(`window.other.close()`);
  });

  it('keeps the payment for an invalid call, and buys the corrected call with it', async () => {
    const mintInfo = SOLD.paid.find(({ id }) => id === 'solMintInfo')!;
    await openPage(mintInfo);
    const earned = await world.earned();
    await browser.read(`${MINT_FIELD}.value = '${world.sandbox.info.payTo}'`);
    await browser.read(`${PAY}.click()`);
    await browser.until(`${SAID}.startsWith('400')`);
    expect(await browser.read(`Boolean(${PAY})`)).to.equal(false);
    await browser.read(`${MINT_FIELD}.value = '${world.sandbox.info.mints.classic}'`);
    await browser.until(buttonWith('Send the same payment again'));
    await browser.read(`${buttonWith('Send the same payment again')}.click()`);
    await browser.until(PAID);
    expect(await browser.read('window.signed')).to.equal(1);
    expect((await world.earned()) - earned).to.equal(priceOf('solMintInfo'));
  });

  it('shows the challenge of a call without paying, and charges nothing', async () => {
    await openPage(summarize);
    const earned = await world.earned();
    await browser.read(`${buttonWith('without paying')}.click()`);
    await browser.until(`${SAID}.startsWith('402')`);
    expect(String(await browser.read(`document.querySelector('.result').innerText`)))
      .to.contain(`${usdcOf('summarize')} USDC`)
      .and.to.contain(world.sandbox.info.payTo);
    expect(await world.earned()).to.equal(earned);
  });

  it('answers an error with a page in a browser, and with JSON for programs', async () => {
    const asked: [path: string, status: number, says: string][] = [
      ['/nothing<b>', 404, 'There is nothing here'],
      ['/answers/none', 404, 'no call with this key'],
      ['/llms.txt/x', 404, 'There is nothing here'],
    ];
    for (const [path, status, says] of asked) {
      const page = await fetch(world.url + path, { headers: { accept: BROWSER } });
      expect([page.status, page.headers.get('content-type')], path).to.deep.equal([
        status,
        'text/html; charset=utf-8',
      ]);
      const html = await page.text();
      expect(html.toLowerCase()).to.contain(says.toLowerCase()).and.not.to.contain('<b>');
      const json = await fetch(world.url + path);
      expect([json.status, Object.keys((await json.json()) as object)], path).to.deep.equal([
        status,
        ['error'],
      ]);
    }
    await browser.open(`${world.url}/nothing`);
    await browser.until(`document.querySelector('h1')`);
    expect(await browser.violations()).to.deep.equal([]);
  });

  it('buys by keyboard only', async () => {
    await openPage(summarize);
    await browser.read(`document.querySelector('[data-name=text]').focus()`);
    // The sandbox's wallet is offered first.
    for (let presses = 0; presses < 2; presses++) await browser.press('Tab', TAB);
    expect(await browser.read('document.activeElement.textContent')).to.contain('with Test wallet');
    expect(await browser.read('getComputedStyle(document.activeElement).outlineWidth')).to.equal('3px');
    await browser.press('Enter', ENTER);
    await browser.until(PAID);
  });

  for (const { id, path } of rows(SOLD.paid))
    it(`${id} has no accessibility violation (axe), in both colour schemes, 390 and 1280 px wide, and at 200 %`, async () => {
      for (const [width, dark, size] of [
        [1280, false, '100%'],
        [1280, true, '100%'],
        [390, false, '100%'],
        [390, true, '100%'],
        [640, false, '200%'],
      ] as const) {
        await browser.resize(width, 900, dark);
        await openPage({ path });
        await browser.read(`document.documentElement.style.fontSize = '${size}'`);
        expect(await browser.violations(), `${width} ${size}`).to.deep.equal([]);
        expect(await browser.read('document.documentElement.scrollWidth')).to.equal(width);
      }
      await browser.resize(1280, 900);
      await expectQuiet();
    });
});
