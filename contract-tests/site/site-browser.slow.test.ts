import { expect } from 'chai';
import { Browser, noBrowser } from '../support/browser.js';
import { describeInCi, rows } from '../support/extent.js';
import { CONTRACTS, serveSite } from '../support/site.js';
import type { Contract } from '../../src/contract/contract.js';
import { priceOf, SOLD, usdcOf } from '../support/sold.js';
import { openWorld, type World } from '../support/world.js';

const TAB = 9;
const ENTER = 13;

/** A shop with `count` operations, in groups of up to 25. */
function shopOf(count: number): Contract {
  const contract = CONTRACTS['this repository']!;
  const [first] = contract.paid;
  const paid = Array.from({ length: count }, (_, index) => ({
    ...first!,
    ...{ id: `operation${index}`, path: `/v1/operation-${index}`, examplePath: `/v1/operation-${index}` },
    ...{ summary: `Operation number ${index}`, tags: [`Group ${Math.floor(index / 25) + 1}`] },
  }));
  const item = (contract.document.paths as Record<string, unknown>)[first!.path];
  const paths = Object.fromEntries(paid.map(({ path }) => [path, item]));
  return { ...contract, document: { ...contract.document, paths }, paid };
}

describeInCi(`The pages in a real browser${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, function () {
  this.timeout(180_000);
  let browser: Browser;
  let world: World;

  before(async function () {
    if (noBrowser) return this.skip();
    browser = await Browser.start();
    world = await openWorld();
  });
  after(async () => {
    if (noBrowser) return;
    await browser.close();
    await world.close();
  });
  beforeEach(async () => {
    await browser.open('about:blank');
    browser.complaints.length = 0;
  });

  const LANDING = `document.querySelector('.copy') && document.querySelector('#backends li')`;
  // The parts of /docs load one after another; the search is the last.
  const REFERENCE = ['h2', '[role=navigation]', '[data-testid=search-trigger][tabindex]']
    .map(part => `document.querySelector('#reference ${part}')`)
    .concat(`!document.querySelector('#reference').innerText.includes('Loading...')`)
    .join(' && ');
  const GUIDE = `document.querySelector('.guide h1')`;
  const pages: [path: string, ready: string][] = [
    ['/', LANDING],
    ['/docs', REFERENCE],
    ['/docs/guides', GUIDE],
    ['/docs/guides/how-to/other-proxies', GUIDE],
    ['/docs#/humans/brandfeedback', REFERENCE],
    ['/docs#/service/gethealth', REFERENCE],
  ];
  const looks: [width: number, dark: boolean][] = [
    [390, true],
    [390, false],
    [1280, true],
    [1280, false],
  ];

  async function expectQuiet(): Promise<void> {
    // The browser reports every 402, which is what an unpaid call gets.
    const complaints = browser.complaints.filter(text => !text.includes('a status of 402'));
    expect(complaints).to.deep.equal([]);
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
    expect(await browser.read('document.documentElement.scrollWidth <= innerWidth')).to.equal(true);
  }

  for (const [path, ready] of pages)
    for (const [width, dark] of rows(looks))
      it(`${path} has no accessibility violation (axe), no console error and no request to another host, ${width} px wide, ${dark ? 'dark' : 'light'}`, async () => {
        await browser.resize(width, 900, dark);
        await browser.open(world.url + path);
        await browser.until(ready);
        expect(await browser.violations()).to.deep.equal([]);
        await expectQuiet();
      });

  it('the page at / keeps its text on the screen at 200 %', async () => {
    await browser.resize(640, 450);
    await browser.open(world.url);
    await browser.until(LANDING);
    await browser.read(`document.documentElement.style.fontSize = '200%'`);
    expect(await browser.read('document.documentElement.scrollWidth')).to.equal(640);
    expect(await browser.violations()).to.deep.equal([]);
  });

  it('/docs keeps its text on the screen at 200 %, and at 400 %', async () => {
    for (const [width, height] of [
      [640, 450],
      [320, 256],
    ] as const) {
      await browser.resize(width, height);
      await browser.open(`${world.url}/docs`);
      await browser.until(REFERENCE);
      await expectQuiet();
      expect(await browser.violations(), String(width)).to.deep.equal([]);
    }
  });

  it('/docs grows with the reader’s text size, and keeps its text on the screen', async () => {
    const size = `parseFloat(getComputedStyle(document.querySelector('#reference p')).fontSize)`;
    for (const width of [1280, 390]) {
      await browser.resize(width, 900);
      await browser.open('about:blank');
      await browser.open(`${world.url}/docs`);
      await browser.until(REFERENCE);
      const before = Number(await browser.read(size));
      await browser.read(`document.documentElement.style.fontSize = '200%'`);
      expect(await browser.read(size)).to.equal(2 * before);
      expect(await browser.read('document.documentElement.scrollWidth')).to.equal(width);
      expect(await browser.violations()).to.deep.equal([]);
    }
  });

  it('the page at / keeps its text on the screen of a phone with doubled text size', async () => {
    await browser.resize(390, 844);
    await browser.open(world.url);
    await browser.until(LANDING);
    await browser.read(`document.documentElement.style.fontSize = '200%'`);
    expect(await browser.read('document.documentElement.scrollWidth')).to.equal(390);
  });

  const inFocus = `(document.activeElement.getAttribute('aria-label') || document.activeElement.textContent).trim()`;
  async function tabTo(name: string, limit: number): Promise<void> {
    const reached: string[] = [];
    for (let presses = 0; presses < limit; presses++) {
      await browser.press('Tab', TAB);
      expect(await browser.read(`getComputedStyle(document.activeElement).outlineWidth`)).to.equal('3px');
      reached.push(String(await browser.read(inFocus)));
      if (reached.at(-1)?.startsWith(name)) return;
    }
    throw new Error(`Tab reached no ${name}, only ${reached.join(' | ')}`);
  }

  for (const dark of rows([false, true]))
    it(`/docs can be searched, an operation found, and its page with the pay button opened, by keyboard only, ${dark ? 'dark' : 'light'}`, async () => {
      const { summary } = CONTRACTS['this repository']!.paid.find(({ id }) => id === 'brandFeedback')!;
      await browser.resize(1280, 900, dark);
      await browser.open(`${world.url}/docs`);
      await browser.until(REFERENCE);
      await tabTo('Search', 5);
      await browser.press('Enter', ENTER);
      await browser.until(`document.activeElement.tagName === 'INPUT'`);
      await browser.type('brand');
      await browser.until(`document.querySelector('[role=dialog] a')`);
      expect(await browser.violations()).to.deep.equal([]);
      await tabTo('POST/brand-feedback', 5);
      await browser.press('Enter', ENTER);
      await browser.until(
        `location.hash.endsWith('/brandfeedback') && !document.querySelector('[role=dialog]')`,
      );
      await tabTo('Try this call', 60);
      await browser.press('Enter', ENTER);
      await browser.until(`location.pathname === '/brand-feedback' && document.querySelector('.pay button')`);
      expect(await browser.read(`document.querySelector('h1').textContent`)).to.equal(summary);
      await expectQuiet();
    });

  const SAID = `document.querySelector('.say').textContent`;

  it('the first operation can be tried on the page at /: bought with the sandbox wallet by keyboard only, with answer, receipt and transfer shown', async () => {
    await browser.resize(1280, 900);
    await browser.open(world.url);
    await browser.until(`document.querySelector('.pay button')`);
    const earned = await world.earned();
    await browser.read(`document.querySelector('[data-name=text]').focus()`);
    await browser.press('Tab', TAB);
    expect(await browser.read(inFocus)).to.equal(`Pay ${usdcOf('summarize')} USDC with the sandbox wallet`);
    expect(await browser.read('getComputedStyle(document.activeElement).outlineWidth')).to.equal('3px');
    await browser.press('Enter', ENTER);
    await browser.until(`${SAID}.startsWith('Paid ')`);
    expect(await browser.read(`document.querySelector('.result').firstElementChild.innerText`)).to.contain(
      'summary',
    );
    await browser.read(`document.querySelectorAll('.result details').forEach(each => (each.open = true))`);
    await browser.until(`document.querySelector('.result').innerText.includes('of the local chain')`);
    expect(await browser.read(`document.querySelector('.result').innerText`)).to.contain(
      world.sandbox.info.payTo,
    );
    expect(await world.earned()).to.equal(earned + priceOf('summarize'));
    expect(await browser.violations()).to.deep.equal([]);
    await expectQuiet();
  });

  it('the page at / shows one way to pay at a time, each with a button to copy it', async () => {
    await browser.open(world.url);
    await browser.until(LANDING);
    const visible = `[...document.querySelectorAll('.tab')].filter(each => each.offsetParent).map(({ className }) => className).join()`;
    expect(await browser.read(visible)).to.equal('tab of-agent');
    for (const tab of ['code', 'mcp', 'agent']) {
      await browser.read(`document.getElementById('tab-${tab}').click()`);
      expect(await browser.read(visible)).to.equal(`tab of-${tab}`);
      expect(await browser.read(`Boolean(document.querySelector('.of-${tab} .copy'))`)).to.equal(true);
    }
    const [first] = SOLD.paid;
    expect(await browser.read(`document.getElementById('snippet-prompt').textContent`))
      .to.contain(world.url)
      .and.to.contain(first?.price.shown);
  });

  for (const [width, most] of [
    [1280, 3_000],
    [390, 5_000],
  ] as const)
    it(`the page at / is less than ${most} px high at a width of ${width} px, for five operations`, async () => {
      expect(SOLD.paid.length).to.equal(5);
      await browser.resize(width, 900);
      await browser.open(world.url);
      await browser.until(`${LANDING} && document.querySelector('.pay button')`);
      expect(await browser.read('document.documentElement.scrollHeight')).to.be.below(most);
    });

  for (const count of rows([60, 1, 1_000]))
    it(`the page at / of a shop with ${count} operations lists each once, stays short, and can be searched`, async () => {
      const site = await serveSite(shopOf(count));
      try {
        for (const width of [1280, 390]) {
          await browser.resize(width, 900);
          await browser.open(site.url);
          await browser.until(`document.querySelector('.pay button')`);
          expect(await browser.read(`document.querySelectorAll('.operations li').length`)).to.equal(count);
          expect(await browser.read('document.documentElement.scrollHeight')).to.be.below(
            width === 1280 ? 3_500 : 6_000,
          );
          expect(await browser.read('document.documentElement.scrollWidth')).to.equal(width);
        }
        expect(await browser.violations()).to.deep.equal([]);
        if (count === 1) return;
        await browser.read(`document.getElementById('search').focus()`);
        await browser.type(`number ${count - 1}`);
        await browser.until(`document.getElementById('found').textContent === '1 found'`);
        expect(
          await browser.read(
            `[...document.querySelectorAll('.operations li')].filter(each => each.offsetParent).length`,
          ),
        ).to.equal(1);
      } finally {
        site.close();
      }
    });

  for (const name of ['examples/petstore', 'any shop'])
    it(`the pages of ${name} have no accessibility violation (axe)`, async () => {
      const site = await serveSite(CONTRACTS[name]!);
      try {
        for (const [path, ready] of [
          ['/', `document.querySelector('.copy')`],
          ['/docs', REFERENCE],
        ] as const) {
          await browser.resize(390, 900, true);
          await browser.open(site.url + path);
          await browser.until(ready);
          expect(await browser.violations(), path).to.deep.equal([]);
        }
      } finally {
        site.close();
      }
    });
});
