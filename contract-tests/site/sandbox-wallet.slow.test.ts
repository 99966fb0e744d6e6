import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { BROWSER, textOfElement } from '../support/site.js';
import { priceOf, usdcOf } from '../support/sold.js';
import { call, openWorld, post, receiptOf, signFor, TEXT, type World } from '../support/world.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** A folder in the repository, so that code in it finds the packages. */
const FOLDER = join(ROOT, 'dist', 'snippets');
const run = promisify(execFile);

/** A request with any Host and Origin, which fetch can't send. */
function ask(url: string, path: string, headers: Record<string, string>, body: string, method = 'POST') {
  return new Promise<{
    status: number;
    headers: NodeJS.Dict<string | string[]>;
    json: Record<string, string>;
  }>((resolve, reject) => {
    const sent = request(url + path, { method, headers, agent: false }, response => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          json: JSON.parse(text || '{}') as Record<string, string>,
        }),
      );
    });
    sent.on('error', reject).end(body);
  });
}

describe('The page of a sandbox', function () {
  this.timeout(120_000);
  let world: World;
  let html: string;

  before(async () => {
    world = await openWorld();
    html = (await call(world.url, { headers: { accept: BROWSER } })).body.toString();
    mkdirSync(FOLDER, { recursive: true });
  });
  after(async () => {
    await world.close();
    rmSync(FOLDER, { recursive: true, force: true });
  });

  const PAY = '/sandbox/wallet/payments';
  const JSON_TYPE = { 'content-type': 'application/json' };
  const price = priceOf('summarize');
  const buying = JSON.stringify({ operation: 'summarize', amount: String(price) });
  const own = (): Record<string, string> => ({ ...JSON_TYPE, origin: world.url });

  describe('has a wallet that', () => {
    it('buys: its payment is answered with a receipt, and its transfer is on the chain', async () => {
      const earned = await world.earned();
      const signed = await ask(world.url, PAY, { ...own(), 'sec-fetch-site': 'same-origin' }, buying);
      expect(signed.status, JSON.stringify(signed.json)).to.equal(200);
      expect(signed.json.amount).to.equal(usdcOf('summarize'));
      const answer = await post(
        `${world.url}/v1/summarize`,
        { text: TEXT },
        { 'PAYMENT-SIGNATURE': signed.json.header ?? '' },
      );
      expect(answer.status).to.equal(200);
      const { transaction } = receiptOf(answer);
      const looked = await ask(
        world.url,
        '/sandbox/wallet/transfers',
        own(),
        JSON.stringify({ signature: transaction }),
      );
      expect(looked.json).to.include({
        signature: transaction,
        from: world.sandbox.info.buyer,
        to: world.sandbox.info.payTo,
        amount: usdcOf('summarize'),
      });
      expect(await world.earned()).to.equal(earned + 10_000n);
    });

    it('signs a new payment each time', async () => {
      const headers = await Promise.all([1, 2, 3].map(() => ask(world.url, PAY, own(), buying)));
      expect(new Set(headers.map(({ json }) => json.header)).size).to.equal(3);
    });

    const port = (): string => new URL(world.url).port;
    const foreign: [who: string, headers: () => Record<string, string>][] = [
      ['a page of another site', () => ({ origin: 'https://evil.example' })],
      ['another server on this machine', () => ({ origin: 'http://127.0.0.1:3000' })],
      ['the same port under another name of this machine', () => ({ origin: `http://localhost:${port()}` })],
      [
        'a page under a name that leads here (DNS rebinding)',
        () => ({ host: `evil.example:${port()}`, origin: `http://evil.example:${port()}` }),
      ],
      [
        'a subdomain of localhost',
        () => ({ host: `evil.localhost:${port()}`, origin: `http://evil.localhost:${port()}` }),
      ],
      ['a page without an origin, such as a sandboxed frame', () => ({ origin: 'null' })],
      ['a program that names no origin', () => ({})],
      [
        'a page whose browser says that it is of another site',
        () => ({ origin: world.url, 'sec-fetch-site': 'same-site' }),
      ],
    ];
    for (const [who, headers] of foreign)
      it(`signs nothing for ${who}`, async () => {
        for (const path of [PAY, '/sandbox/wallet/transfers']) {
          const answer = await ask(world.url, path, { ...JSON_TYPE, ...headers() }, buying);
          expect(answer.status).to.equal(403);
          expect(answer.json).to.have.keys('error');
          expect(answer.headers).not.to.have.property('access-control-allow-origin');
        }
      });

    it('lets no page from another site send JSON, and reads no other content type', async () => {
      const preflight = await ask(
        world.url,
        PAY,
        { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
        '',
        'OPTIONS',
      );
      expect(preflight.status).to.equal(405);
      expect(preflight.headers).not.to.have.property('access-control-allow-origin');
      const form = await ask(world.url, PAY, { origin: world.url, 'content-type': 'text/plain' }, buying);
      expect([form.status, form.json.header]).to.deep.equal([400, undefined]);
    });

    it("signs only this server's offers, and says what is wrong with others", async () => {
      const wrong = [
        '{}',
        '{"operation":"getHealth"}',
        '{"operation":7}',
        '{"operation":"summarize"}',
        `{"operation":"summarize","amount":${price}}`,
        `{"operation":"summarize","amount":"${price - 1n}"}`,
        `{"operation":"summarize","amount":"${price + 1n}"}`,
        '[]',
        '{',
        `{"x":"${'x'.repeat(5_000)}"}`,
      ];
      for (const body of wrong) {
        const answer = await ask(world.url, PAY, own(), body);
        expect([answer.status, answer.json.header], body).to.deep.equal([400, undefined]);
        expect(answer.json.error).to.match(/Nothing was signed/);
      }
      for (const signature of ['', 'x', '1'.repeat(64), 7])
        expect(
          (await ask(world.url, '/sandbox/wallet/transfers', own(), JSON.stringify({ signature }))).status,
        ).to.be.oneOf([400, 404]);
      expect((await ask(world.url, '/sandbox/wallet/keys', own(), '{}')).status).to.equal(404);
    });
  });

  describe('shows code that buys when it is run:', () => {
    const env = (): NodeJS.ProcessEnv => ({
      PATH: process.env['PATH'],
      KEYPAIR: join(world.stateDir, 'buyer.json'),
      RPC_URL: world.sandbox.rpc.url,
    });

    /** Runs code, and checks that it paid for one call. */
    async function sold(work: () => Promise<string>): Promise<string> {
      const earned = await world.earned();
      const said = await work();
      expect(await world.earned(), said).to.equal(earned + 10_000n);
      return said;
    }

    async function runModule(id: string): Promise<string> {
      const { outputText } = ts.transpileModule(textOfElement(html, `snippet-${id}`), {
        compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
      });
      const file = join(FOLDER, `${id}.mjs`);
      writeFileSync(file, outputText);
      return (await run(process.execPath, [file], { env: env(), timeout: 60_000 })).stdout;
    }

    it('TypeScript', async () => {
      expect(await sold(() => runModule('typescript'))).to.match(/^200 \{\s+summary: /);
    });

    it('MCP', async () => {
      expect(await sold(() => runModule('mcp'))).to.match(/^paid /);
    });

    it('curl, with a payment by an x402 client between its steps', async () => {
      const code = textOfElement(html, 'snippet-curl');
      expect(code)
        .to.match(/^# 1\./m)
        .and.to.match(/^# 3\./m);
      const { 'PAYMENT-SIGNATURE': payment = '' } = await signFor(world, '/v1/summarize');
      const said = await sold(async () => {
        const { stdout } = await run('bash', ['-ec', code], {
          env: { ...env(), PAYMENT: payment },
          timeout: 60_000,
        });
        return stdout;
      });
      expect([...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).to.deep.equal([
        '402',
        '200',
      ]);
    });
  });

  it('offers to pay, with a mint that its chain has', async () => {
    const page = await call(`${world.url}/v1/sol-mint-info`, { headers: { accept: BROWSER } });
    expect(page.body.toString())
      .to.contain('data-sandbox-wallet')
      .and.to.contain(world.sandbox.info.mints.classic);
  });
});
