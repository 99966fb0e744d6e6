import { expect } from 'chai';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

/** The paid test of docs/how-to/testing.md, and the commands of its workflow for continuous integration. */
function paidTest(): { test: string; commands: string[] } {
  const guide = readFileSync(new URL('../../../docs/how-to/testing.md', import.meta.url), 'utf8');
  const [, test = ''] = /^```ts\n([^`]*?coinslot\/testing[^]*?)^```$/m.exec(guide) ?? [];
  const [, workflow = ''] = /^```yaml\n([^]*?)^```$/m.exec(guide) ?? [];
  return { test, commands: [...workflow.matchAll(/^ *- run: (.*)$/gm)].map(([, command = '']) => command) };
}

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

    // What a shop's own continuous integration does.
    const { test, commands } = paidTest();
    writeFileSync(join(shop, 'test', 'sale.test.ts'), test);
    expect(commands).to.deep.equal(['npm ci', 'npm test']);
    const said = [];
    for (const command of commands) said.push(await succeed(shop, env, 'sh', '-c', command));
    expect(said.join('\n')).to.match(/^# pass 4$/m);

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
