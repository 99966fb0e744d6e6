import { expect } from 'chai';
import { Browser, noBrowser } from '../support/browser.js';
import { describeInCi } from '../support/extent.js';
import { CONTRACTS, serveSite } from '../support/site.js';
import { usdcOf } from '../support/sold.js';
import { openWorld, type World } from '../support/world.js';

const TAB = 9;
const ENTER = 13;

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
  // Its parts come one after the other; the search is the last.
  const REFERENCE = ['h2', '[role=navigation]', '[data-testid=search-trigger][tabindex]']
    .map(part => `document.querySelector('#reference ${part}')`)
    .concat(`!document.querySelector('#reference').innerText.includes('Loading...')`)
    .join(' && ');
  const pages: [path: string, ready: string][] = [
    ['/', LANDING],
    ['/docs', REFERENCE],
    ['/docs#/humans/brandfeedback', REFERENCE],
    ['/docs#/service/gethealth', REFERENCE],
  ];
  const looks: [width: number, dark: boolean][] = [
    [1280, false],
    [1280, true],
    [390, false],
    [390, true],
  ];

  async function expectQuiet(): Promise<void> {
    // The browser reports every 402; that is what an unpaid call gets.
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
    for (const [width, dark] of looks)
      it(`${path} has no fault that axe finds, no complaint and no other host, ${width} wide, ${dark ? 'dark' : 'light'}`, async () => {
        await browser.resize(width, 900, dark);
        await browser.open(world.url + path);
        await browser.until(ready);
        expect(await browser.violations()).to.deep.equal([]);
        await expectQuiet();
      });

  it('the page at / keeps its words on the screen with text at 200 %', async () => {
    await browser.resize(640, 450);
    await browser.open(world.url);
    await browser.until(LANDING);
    await browser.read(`document.documentElement.style.fontSize = '200%'`);
    expect(await browser.read('document.documentElement.scrollWidth')).to.equal(640);
    expect(await browser.violations()).to.deep.equal([]);
  });

  it('/docs keeps its words on the screen at 200 %, and at 400 %', async () => {
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

  it('/docs grows with the text size of the reader, and keeps its words on the screen', async () => {
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

  it('the page at / keeps its words on a phone that doubles its text', async () => {
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

  for (const dark of [false, true])
    it(`/docs: search, operation, and the way to try and pay, by keyboard only, ${dark ? 'dark' : 'light'}`, async () => {
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
      await browser.until(
        `location.pathname === '/' && document.querySelector('#op-brandFeedback details[open]')`,
      );
      expect(await browser.read(`document.querySelector('#op-brandFeedback h3').textContent`)).to.equal(
        summary,
      );
      await expectQuiet();
    });

  it('buys with the sandbox wallet, by keyboard only, and shows answer, receipt and transfer', async () => {
    await browser.resize(1280, 900);
    await browser.open(world.url);
    await browser.until(LANDING);
    const earned = await world.earned();
    await browser.read(`document.querySelector('#op-summarize summary').focus()`);
    await browser.press('Enter', ENTER);
    const reached: unknown[] = [];
    for (let presses = 0; presses < 4; presses++) {
      await browser.press('Tab', TAB);
      reached.push(await browser.read(`document.activeElement.name || document.activeElement.textContent`));
    }
    const pay = `Pay ${usdcOf('summarize')} USDC with the sandbox wallet`;
    expect(reached).to.deep.equal(['path', 'body', 'Call without paying', pay]);
    expect(await browser.read('getComputedStyle(document.activeElement).outlineWidth')).to.equal('3px');
    await browser.press('Enter', ENTER);
    await browser.until(`document.querySelector('#op-summarize .say').textContent.startsWith('Paid ')`);
    const shown = String(await browser.read(`document.querySelector('#op-summarize .trace').innerText`));
    for (const part of [
      '402 Payment Required',
      'With the payment: 200',
      '"summary"',
      'Receipt',
      world.sandbox.info.payTo,
    ])
      expect(shown).to.contain(part);
    expect(await world.earned()).to.equal(earned + 10_000n);
    expect(await browser.violations()).to.deep.equal([]);
    await expectQuiet();
  });

  it('shows the decoded challenge of an unpaid call, and charges nothing', async () => {
    await browser.open(world.url);
    await browser.until(LANDING);
    const earned = await world.earned();
    await browser.read(`document.querySelector('#op-solMintInfo [data-ask]').click()`);
    await browser.until(
      `document.querySelector('#op-solMintInfo .say').textContent.startsWith('Nothing was charged')`,
    );
    const challenge = JSON.parse(
      String(await browser.read(`document.querySelector('#op-solMintInfo .trace pre').textContent`)),
    ) as { x402Version: number };
    expect(challenge.x402Version).to.equal(2);
    expect(await world.earned()).to.equal(earned);
  });

  it('plays a bought WAV, and buys what it shows as an example of a mint', async () => {
    await browser.open(world.url);
    await browser.until(LANDING);
    for (const id of ['textToSpeech', 'solMintInfo']) {
      await browser.read(`document.querySelector('#op-${id} [data-pay]').click()`);
      await browser.until(`document.querySelector('#op-${id} .say').textContent.startsWith('Paid ')`);
    }
    await browser.until(`document.querySelector('#op-textToSpeech audio').duration > 0.5`);
    await expectQuiet();
  });

  it('sends nothing to another server, and says why', async () => {
    await browser.open(world.url);
    await browser.until(LANDING);
    await browser.read(
      `document.querySelector('#op-summarize [name=path]').value = 'https://evil.example/v1/summarize'`,
    );
    await browser.read(`document.querySelector('#op-summarize [data-pay]').click()`);
    await browser.until(
      `document.querySelector('#op-summarize .say').textContent.includes('must begin with /')`,
    );
    await expectQuiet();
  });

  it('shows the code of one language at a time', async () => {
    await browser.open(world.url);
    await browser.until(LANDING);
    const visible = `[...document.querySelectorAll('.snippet pre')].filter(each => each.offsetParent).map(({ id }) => id).join()`;
    expect(await browser.read(visible)).to.equal('snippet-curl');
    await browser.read(`document.getElementById('choose-python').click()`);
    expect(await browser.read(visible)).to.equal('snippet-python');
  });

  for (const name of ['examples/petstore', 'any shop'])
    it(`the pages of ${name} have no fault either`, async () => {
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
