import { Keypair } from '@solana/web3.js';
import { Ajv, type ValidateFunction } from 'ajv';
import { expect } from 'chai';
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { licenseOf, type Bill } from '../tools/third-party.js';
import { copyRepository } from '../support/copied-repository.js';
import { describeInCi, isEverythingRun, repeated, rows } from '../support/extent.js';
import { freePort } from '../support/free-port.js';
import { faultOf, linksOf, pagesIn } from '../support/page-links.js';
import { ownPlace, startShop, succeed, type Running } from '../support/other-shop.js';
import { addressOf, PAY_TO, SETTLED, StubMainnet } from '../support/stub-mainnet.js';
import { TestUpstream } from '../support/upstream-shop.js';
import { post, receiptOf, signFor } from '../support/world.js';

/** Redoc alone takes 650 000 bytes. */
const MAX_PACKED_BYTES = 1_800_000;
const MAX_INSTALLED_MB = 100;
/**
 * Licences of packages that only the sandbox needs, through @solana/web3.js. They are used unmodified, and are not part of
 * a shop that sells on mainnet. The first two have their licence in a file.
 */
const KNOWN_LICENSES = [
  'eyes: none declared',
  'text-encoding-utf-8: none declared',
  'rpc-websockets: LGPL-3.0-only',
];
/** Licences that allow a shop to run and sell what is installed with it. */
const LICENSES =
  /^\(?(MIT|ISC|Apache-2\.0|0BSD|BSD-[23]-Clause|BlueOak-1\.0\.0|CC0-1\.0|Unlicense|PSF-2\.0|Python-2\.0)/;
const INSTALL = [
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-progress',
  '--loglevel=error',
  '--prefer-offline',
];
/** What a shop that resells other APIs on mainnet does not need: a virtual machine, voices, word lists, clients, compilers. */
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

/** The size of a folder by `du -sm`. */
function megabytesOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const blocks = files.reduce((sum, file) => sum + lstatSync(join(folder, file)).blocks, 0);
  return (blocks * 512) / 2 ** 20;
}

/** The output of `npm publish --dry-run` for a packed file, including warnings. */
async function publish(file: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('npm', ['publish', '--dry-run', file], {
    cwd: dirname(file),
  });
  // Warnings about this machine's settings are not about the package.
  return `${stdout}${stderr}`.replaceAll(/^npm warn (Unknown \w+ config|using --force).*$/gm, '');
}

const BILL_SCHEMAS = new URL(
  '../../../contract-tests/tools/node_modules/@cyclonedx/cyclonedx-library/res/schema/',
  import.meta.url,
);

function billSchema(): ValidateFunction {
  const read = (name: string): object =>
    JSON.parse(readFileSync(new URL(name, BILL_SCHEMAS), 'utf8')) as object;
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const name of ['spdx.SNAPSHOT.schema.json', 'jsf-0.82.SNAPSHOT.schema.json'])
    ajv.addSchema(read(name), `http://cyclonedx.org/schema/${name}`);
  return ajv.compile(read('bom-1.5.SNAPSHOT.schema.json'));
}

describeInCi('The packages', function () {
  this.timeout(600_000);
  let folder: string;
  let source: string;
  let packed: string[];
  let shop: string;
  let manifest: string;
  let running: Running | undefined;

  const pack = async (target: string): Promise<string[]> => {
    const packer = join(source, 'dist/contract-tests/tools/package.js');
    return (await succeed(source, ownPlace(folder), process.execPath, packer, target)).trim().split('\n');
  };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-package-'));
    // A copy is packed, because packing compiles and other tests run the compiled files.
    source = copyRepository('coinslot-source-');
    packed = await pack(folder);
    for (const each of packed) expect(statSync(each).size).to.be.below(MAX_PACKED_BYTES);
    shop = join(folder, 'shop');
    mkdirSync(shop);
    await succeed(shop, ownPlace(folder), 'npm', 'install', ...INSTALL, packed[0] ?? '');
    manifest = readFileSync(join(shop, 'package.json'), 'utf8');
  });
  afterEach(async () => {
    await running?.kill();
    running = undefined;
  });
  after(() => {
    for (const each of [folder, source]) rmSync(each, { recursive: true, force: true });
  });

  describe('packed for publication', () => {
    const trees: string[] = [];

    before(() => {
      for (const file of packed) {
        const tree = `${file}.d`;
        mkdirSync(tree);
        execFileSync('tar', ['-xzf', file, '-C', tree, '--strip-components=1']);
        trees.push(tree);
      }
    });

    it('are accepted by npm publish without a warning', async () => {
      for (const said of await Promise.all(rows(packed).map(publish)))
        expect(said)
          .to.contain('dry-run')
          .and.not.match(/npm (warn|error) (?!publish This command)/i);
    });

    it('have pages whose links and images exist', () => {
      for (const tree of trees) {
        const pages = pagesIn(tree);
        expect(pages.map(page => relative(tree, page))).to.include('README.md');
        const faults = pages.flatMap(page => linksOf(page).map(link => faultOf(page, link)));
        expect(faults.filter(Boolean)).to.deep.equal([]);
      }
      expect(pagesIn(trees[0] ?? '').length).to.be.above(20);
    });

    it('contain the files that an operator needs, and no development files', () => {
      const [engine = ''] = trees;
      for (const file of [
        'ops/Caddyfile',
        'ops/alerts.yml',
        'docs/reference/settings.md',
        'SECURITY.md',
        'CHANGELOG.md',
        'LICENSE',
      ])
        expect(existsSync(join(engine, file)), file).to.equal(true);
      for (const tree of trees) {
        const manifest = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as object;
        expect(manifest).to.include.keys('license', 'engines', 'exports', 'files', 'publishConfig');
        expect(manifest).not.to.have.any.keys('private', 'scripts', 'workspaces', 'mocha');
      }
    });

    it('list everything that is installed with them in a bill of materials that matches the CycloneDX schema', function () {
      // Only .ci/run and make test-all install the tools.
      if (!existsSync(BILL_SCHEMAS)) return this.skip();
      const isBill = billSchema();
      for (const tree of trees) {
        const bill = JSON.parse(readFileSync(join(tree, 'sbom.cdx.json'), 'utf8')) as Bill;
        expect(isBill(bill), JSON.stringify(isBill.errors)).to.equal(true);
        const { name, version, dependencies } = JSON.parse(
          readFileSync(join(tree, 'package.json'), 'utf8'),
        ) as {
          name: string;
          version: string;
          dependencies: Record<string, string>;
        };
        expect(bill.components.map(({ name }) => name)).to.include.members(Object.keys(dependencies));
        const own = bill.dependencies.find(({ ref }) => ref === `${name}@${version}`);
        expect(own?.dependsOn).to.have.members(Object.entries(dependencies).map(each => each.join('@')));
        const licenses = readFileSync(join(tree, 'THIRD-PARTY-LICENSES.md'), 'utf8');
        for (const component of bill.components) {
          expect(licenses).to.contain(`- ${component['bom-ref']}: `);
          if (!KNOWN_LICENSES.includes(`${component.name}: ${licenseOf(component)}`))
            expect(licenseOf(component), component.name).to.match(LICENSES);
        }
      }
    });

    it('have the same bytes when they are packed again', async function () {
      if (repeated(1, 0) === 0) return this.skip();
      const again = mkdtempSync(join(folder, 'again-'));
      const hashes = (files: string[]): string[] =>
        files.map(file => createHash('sha256').update(readFileSync(file)).digest('hex'));
      expect(hashes(await pack(again))).to.deep.equal(hashes(packed));
    });
  });

  it('installed in an empty folder, write a shop that builds, passes its test and sells', async () => {
    const env = ownPlace(join(folder, 'state'));
    const command = join(shop, 'node_modules', '.bin', 'coinslot');
    await succeed(shop, env, command, 'init');
    await succeed(shop, env, 'npm', 'install', ...INSTALL);
    for (const absent of ['mocha', 'prettier', 'eslint'])
      expect(existsSync(join(shop, 'node_modules', absent)), absent).to.equal(false);

    // The steps of a shop's own continuous integration.
    const { test, commands } = paidTest();
    writeFileSync(join(shop, 'test', 'sale.test.ts'), test);
    expect(commands).to.deep.equal(['npm ci', 'npm test']);
    const said = [];
    // Only make test-all runs `npm ci`, which takes as long as everything else. `npm test` also runs the test that init wrote.
    for (const command of commands.slice(repeated(0, 1)))
      said.push(await succeed(shop, env, 'sh', '-c', command));
    expect(said.join('\n'))
      .to.contain('Built: textStats (0.01 USDC)')
      .and.to.match(/^# pass 4$/m);

    running = await startShop(shop, env, command, 'run');
    const page = await fetch(running.url, { headers: { accept: 'text/html' } });
    expect(await page.text()).to.contain('<code>POST /v1/text-stats</code>');
    const guide = await (await fetch(`${running.url}/docs/guides/how-to/buy`)).text();
    expect(guide).to.contain('Buy from a program').and.to.contain('href="/docs/guides/how-to/');
    const bundle = await fetch(`${running.url}/docs/redoc.js`);
    expect([bundle.status, (await bundle.text()).includes('Redocly')]).to.deep.equal([200, true]);
    const bought = await succeed(shop, env, command, 'buy', 'textStats', '{"text":"Two words."}');
    expect(JSON.parse(bought)).to.deep.equal({ words: 2, characters: 10 });

    // The library for programs that buy.
    writeFileSync(
      join(shop, 'test', 'buyer.ts'),
      `import { readFileSync } from 'node:fs';
import { createBuyer } from 'coinslot-sandbox/buyer';
const [url = '', state = ''] = process.argv.slice(2);
const { rpcUrl } = JSON.parse(readFileSync(state + '/sandbox.json', 'utf8')) as { rpcUrl: string };
const buyer = await createBuyer({ keypair: state + '/buyer.json', rpcUrl, folder: state + '/bought' });
const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"text":"Two words."}' };
const answer = await buyer.fetch(url + '/v1/text-stats', init);
console.log(JSON.stringify([await answer.json(), buyer.statement().leftToday]));
`,
    );
    const compile = join(shop, 'node_modules', '.bin', 'tsc');
    await succeed(shop, env, compile, '--outDir', 'built');
    const library = await succeed(
      shop,
      env,
      process.execPath,
      'built/test/buyer.js',
      running.url,
      join(folder, 'state'),
    );
    expect(JSON.parse(library)).to.deep.equal([{ words: 2, characters: 10 }, '0.99']);

    const summary = await succeed(shop, env, command, 'ledger', 'summary');
    expect(summary).to.contain('Revenue: 0.02 USDC');
    const checked = await succeed(shop, env, command, 'conformance', running.url);
    expect(checked).to.match(/^\d+ kept, 0 broken(, \d+ pieces? of advice)?, nothing was paid$/m);

    // If these types came from a package that the shop does not have, they would be `any`, and this would not be an error.
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

  describe('of a shop that resells three HTTP APIs on mainnet', () => {
    let three: string;
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
      three = join(folder, 'three');
      mkdirSync(three);
      writeFileSync(join(three, 'package.json'), manifest);
      // Until it is built, this shop uses the packages that were installed for the first shop.
      symlinkSync(join(shop, 'node_modules'), join(three, 'node_modules'));
      command = join(three, 'node_modules', '.bin', 'coinslot');
      await succeed(three, env, command, 'init');
      await succeed(three, env, command, 'operation', 'remove', 'textStats');
      rmSync(join(three, 'handlers'), { recursive: true });
      for (const name of ['first', 'second', 'third']) {
        const sold = ['--price', '0.01', '--upstream', `\${API}/${name}`, '--answer', '{"value":1}'];
        await succeed(three, env, command, 'operation', 'add', name, ...sold);
      }
      unlinkSync(join(three, 'node_modules'));
      await succeed(three, env, 'npm', 'install', '--omit=dev', ...INSTALL);
      await succeed(three, env, command, 'build');
    });
    after(async () => {
      upstream.close();
      await mainnet.close();
    });

    it('take less than 100 MB, without chain, voices, word lists, clients and compilers', () => {
      const installed = join(three, 'node_modules');
      expect(megabytesOf(installed)).to.be.below(MAX_INSTALLED_MB);
      expect(ABSENT.filter(name => existsSync(join(installed, name)))).to.deep.equal([]);
    });

    it('start on mainnet, and sell to the official client', async () => {
      running = await startShop(three, env, command, 'run');
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
    for (const [what, settings, args, says] of rows(unable))
      it(`say what to run if ${what} is needed and not installed`, async () => {
        const said = await succeed(three, { ...env, ...settings }, command, ...args).catch(String);
        expect(said)
          .to.contain(
            `${says} the package coinslot-sandbox, which is not installed here. If package.json has it in devDependencies,`,
          )
          .and.not.match(/^\s+at /m);
      });

    it('say what to install for the embedded facilitator', async () => {
      const keyPair = join(folder, 'fee-payer.json');
      writeFileSync(keyPair, JSON.stringify([...buyer]), { mode: 0o600 });
      const embedded = { ...env, FACILITATOR_URL: 'embedded', FEE_PAYER_KEYPAIR: keyPair };
      const said = await succeed(three, embedded, command, 'run').catch(String);
      const { devDependencies } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as {
        devDependencies: Record<string, string>;
      };
      const wanted = `@x402/svm@${devDependencies['@x402/svm']}`;
      expect(said)
        .to.contain(`embedded needs the package ${wanted}`)
        .and.not.match(/^\s+at /m);
      if (!isEverythingRun) return;
      await succeed(three, env, 'npm', 'install', '--omit=dev', ...INSTALL, wanted);
      running = await startShop(three, embedded, command, 'run');
    });
  });
});
