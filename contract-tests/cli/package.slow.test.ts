import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyRepository } from '../support/copied-repository.js';
import { describeInCi } from '../support/extent.js';
import { freePort } from '../support/free-port.js';
import { ownPlace, startShop, succeed, type Running } from '../support/other-shop.js';
import { addressOf, PAY_TO, SETTLED, StubMainnet } from '../support/stub-mainnet.js';
import { TestUpstream } from '../support/upstream-shop.js';
import { post, receiptOf, signFor } from '../support/world.js';

const MAX_PACKED_BYTES = 1_300_000;
const MAX_INSTALLED_MB = 100;
const INSTALL = [
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-progress',
  '--loglevel=error',
  '--prefer-offline',
];
/** What a shop that sells other people's APIs for real does without: a virtual machine, voices, word lists, clients, compilers. */
const ABSENT = [
  ...['litesvm', '@echogarden', 'unicode-emoji-json', 'eld', 'entities'],
  ...['@solana', '@solana-program', '@x402', '@modelcontextprotocol/client', 'coinslot-sandbox'],
  ...['typescript', 'openapi-typescript', 'mocha', 'prettier', 'eslint'],
];

/** The paid test of docs/how-to/testing.md, and the commands of its workflow for continuous integration. */
function paidTest(): { test: string; commands: string[] } {
  const guide = readFileSync(new URL('../../../docs/how-to/testing.md', import.meta.url), 'utf8');
  const [, test = ''] = /^```ts\n([^`]*?coinslot-sandbox\/testing[^]*?)^```$/m.exec(guide) ?? [];
  const [, workflow = ''] = /^```yaml\n([^]*?)^```$/m.exec(guide) ?? [];
  return { test, commands: [...workflow.matchAll(/^ *- run: (.*)$/gm)].map(([, command = '']) => command) };
}

/** What `du -sm` says of a folder. */
function megabytesOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const blocks = files.reduce((sum, file) => sum + lstatSync(join(folder, file)).blocks, 0);
  return (blocks * 512) / 2 ** 20;
}

describeInCi('The packages', function () {
  this.timeout(600_000);
  let folder: string;
  let source: string;
  let tarball: string;
  let running: Running | undefined;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-package-'));
    // Packing compiles, and other tests run what is compiled here.
    source = copyRepository('coinslot-source-');
    const options = ['--ignore-scripts=false', '--json', '--pack-destination', folder, '--loglevel=error'];
    const said = await succeed(
      source,
      ownPlace(folder),
      'npm',
      'pack',
      '.',
      './packages/sandbox',
      ...options,
    );
    const [engine, sandbox] = (JSON.parse(said) as { filename: string }[]).map(({ filename }) =>
      join(folder, filename),
    );
    for (const each of [engine, sandbox]) expect(statSync(each ?? '').size).to.be.below(MAX_PACKED_BYTES);
    tarball = engine ?? '';
  });
  afterEach(async () => {
    await running?.kill();
    running = undefined;
  });
  after(() => {
    for (const each of [folder, source]) rmSync(each, { recursive: true, force: true });
  });

  it('packed, and installed in an empty folder, write a shop there that builds, passes its test and sells', async () => {
    const env = ownPlace(join(folder, 'state'));
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
    expect(checked).to.match(/^\d+ kept, 0 broken(, \d+ pieces of advice)?, nothing was paid$/m);

    // Types of other packages that a shop does not have would be any.
    writeFileSync(
      join(shop, 'handlers', 'typed.ts'),
      "import type { PageContext } from 'coinslot';\nexport const wrong = ({ path }: PageContext): number => path;\n",
    );
    const compiler = join(shop, 'node_modules', '.bin', 'tsc');
    const fault = await succeed(shop, env, compiler, '--noEmit').catch(String);
    expect(fault).to.match(
      /^.*handlers\/typed\.ts\(2,57\): error TS2322: Type 'string' is not assignable to type 'number'/m,
    );
  });

  describe('of a shop that sells three HTTP APIs for real', () => {
    let shop: string;
    let command: string;
    let mainnet: StubMainnet;
    const buyer = Keypair.generate().secretKey;
    let upstream: TestUpstream;
    let port: number;
    let env: Record<string, string>;

    before(async () => {
      mainnet = await StubMainnet.open();
      upstream = await TestUpstream.open();
      port = await freePort();
      env = ownPlace(join(folder, 'state-of-three'), {
        NETWORK: 'mainnet',
        PUBLIC_URL: 'https://shop.example',
        PORT: String(port),
        ADMIN_PORT: '0',
        PAY_TO,
        SOLANA_RPC_URL: addressOf(mainnet.rpc),
        FACILITATOR_URL: addressOf(mainnet.facilitator),
        API: upstream.url,
        ALLOW_PRIVATE_UPSTREAMS: 'true',
      });
      shop = join(folder, 'three');
      mkdirSync(shop);
      command = join(shop, 'node_modules', '.bin', 'coinslot');
      await succeed(shop, env, 'npm', 'install', ...INSTALL, tarball);
      await succeed(shop, env, command, 'init');
      await succeed(shop, env, command, 'operation', 'remove', 'textStats');
      rmSync(join(shop, 'handlers'), { recursive: true });
      for (const name of ['first', 'second', 'third']) {
        const sold = ['--price', '0.01', '--upstream', `\${API}/${name}`, '--answer', '{"value":1}'];
        await succeed(shop, env, command, 'operation', 'add', name, ...sold);
      }
      await succeed(shop, env, command, 'build');
      rmSync(join(shop, 'node_modules'), { recursive: true });
      await succeed(shop, env, 'npm', 'install', '--omit=dev', ...INSTALL);
    });
    after(async () => {
      upstream.close();
      await mainnet.close();
    });

    it('are less than 100 MB, without chain, voices, word lists, clients and compilers', () => {
      const installed = join(shop, 'node_modules');
      expect(megabytesOf(installed)).to.be.below(MAX_INSTALLED_MB);
      expect(ABSENT.filter(name => existsSync(join(installed, name)))).to.deep.equal([]);
    });

    it('start on mainnet, and sell to the official client', async () => {
      running = await startShop(shop, env, command, 'run');
      const url = `http://127.0.0.1:${port}`;
      const headers = await signFor(
        { url, buyer, sandbox: { rpc: { url: addressOf(mainnet.rpc) } } },
        '/v1/third',
      );
      const sold = await post(`${url}/v1/third`, { text: 'One coin.' }, headers);
      expect([sold.status, sold.json()], sold.body.toString()).to.deep.equal([200, { value: 1 }]);
      expect(receiptOf(sold)).to.include({ success: true, transaction: SETTLED });
    });

    const unable: [string, Record<string, string>, string[], string][] = [
      [
        'a sandbox',
        { NETWORK: 'sandbox', SOLANA_RPC_URL: '', FACILITATOR_URL: '' },
        ['run'],
        'The sandbox needs',
      ],
      ['the buyer', {}, ['buy', 'first'], 'coinslot buy needs'],
      ['the test shop', {}, ['testing'], 'coinslot testing needs'],
    ];
    for (const [what, settings, args, says] of unable)
      it(`say what to run for ${what}, which is not installed`, async () => {
        const said = await succeed(shop, { ...env, ...settings }, command, ...args).catch(String);
        expect(said)
          .to.contain(
            `${says} the package coinslot-sandbox, which is not installed here: npm install --include=dev.`,
          )
          .and.not.match(/^\s+at /m);
      });

    it('say what to install for the embedded facilitator', async () => {
      const keyPair = join(folder, 'fee-payer.json');
      writeFileSync(keyPair, JSON.stringify([...buyer]), { mode: 0o600 });
      const embedded = { ...env, FACILITATOR_URL: 'embedded', FEE_PAYER_KEYPAIR: keyPair };
      const said = await succeed(shop, embedded, command, 'run').catch(String);
      const { devDependencies } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as {
        devDependencies: Record<string, string>;
      };
      const wanted = `@x402/svm@${devDependencies['@x402/svm']}`;
      expect(said)
        .to.contain(`embedded needs the package ${wanted}`)
        .and.not.match(/^\s+at /m);
      await succeed(shop, env, 'npm', 'install', '--omit=dev', ...INSTALL, wanted);
      running = await startShop(shop, embedded, command, 'run');
    });
  });
});
