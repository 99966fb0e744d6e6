import { expect } from 'chai';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyRepository } from '../support/copied-repository.js';
import { describeInCi } from '../support/extent.js';
import { ownPlace, startShop, succeed, type Running } from '../support/other-shop.js';

const MAX_PACKED_BYTES = 1_300_000;
const INSTALL = [
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-progress',
  '--loglevel=error',
  '--prefer-offline',
];

describeInCi('The package', function () {
  this.timeout(600_000);
  let folder: string;
  let source: string;
  let running: Running | undefined;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-package-'));
    // Packing compiles, and other tests run what is compiled here.
    source = copyRepository('coinslot-source-');
  });
  after(async () => {
    await running?.kill();
    for (const each of [folder, source]) rmSync(each, { recursive: true, force: true });
  });

  it('packed, and installed in an empty folder, writes a shop there that builds, passes its test and sells', async () => {
    const env = ownPlace(join(folder, 'state'));
    const pack = [
      'pack',
      '--ignore-scripts=false',
      '--json',
      '--pack-destination',
      folder,
      '--loglevel=error',
    ];
    const [packed] = JSON.parse(await succeed(source, env, 'npm', ...pack)) as { filename: string }[];
    const tarball = join(folder, packed?.filename ?? '');
    expect(statSync(tarball).size).to.be.below(MAX_PACKED_BYTES);

    const shop = join(folder, 'shop');
    mkdirSync(shop);
    await succeed(shop, env, 'npm', 'install', ...INSTALL, tarball);
    const command = join(shop, 'node_modules', '.bin', 'coinslot');
    await succeed(shop, env, command, 'init');
    await succeed(shop, env, 'npm', 'install', ...INSTALL);
    const tested = await succeed(shop, env, 'npm', 'test');
    expect(tested)
      .to.contain('Built: textStats (0.01 USDC)')
      .and.to.match(/^# pass 1$/m);
    for (const absent of ['mocha', 'prettier', 'eslint'])
      expect(existsSync(join(shop, 'node_modules', absent)), absent).to.equal(false);

    running = await startShop(shop, env, command, 'run');
    const page = await fetch(running.url, { headers: { accept: 'text/html' } });
    expect(await page.text()).to.contain('op-textStats');
    const bundle = await fetch(`${running.url}/docs/redoc.js`);
    expect([bundle.status, (await bundle.text()).includes('Redocly')]).to.deep.equal([200, true]);
    const bought = await succeed(shop, env, command, 'buy', 'textStats', '{"text":"Two words."}');
    expect(JSON.parse(bought)).to.deep.equal({ words: 2, characters: 10 });
    const summary = await succeed(shop, env, command, 'ledger', 'summary');
    expect(summary).to.contain('Revenue: 0.01 USDC');
    const checked = await succeed(shop, env, command, 'conformance', running.url);
    expect(checked).to.match(/^\d+ kept, 0 broken, nothing was paid$/m);
  });
});
