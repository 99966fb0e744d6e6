import { expect } from 'chai';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { askDirectory, type Standing } from '../../../src/cli/list/directory.js';
import { listShop, type Directories, type Listing, type Task } from '../../../src/cli/list/list-shop.js';
import { fakeShop, PAY_TO, standIn, type Answer, type Call, type StandIn } from './stand-ins.js';

describe('coinslot list, the report about directories', () => {
  const open: StandIn[] = [];
  afterEach(() => {
    for (const each of open.splice(0)) each.close();
  });

  async function opened(standing: Promise<StandIn>): Promise<StandIn> {
    const one = await standing;
    open.push(one);
    return one;
  }

  type Says = (call: Call, shop: string) => Answer | undefined;
  /** By default, a directory that does not know the shop and finds nothing wrong with it. */
  async function directory(says: Says, shop: StandIn): Promise<StandIn> {
    const nothing = (path: string): Answer =>
      path === '/validate'
        ? { body: { valid: true, preflight: [], simulation: { outcome: 'accepted' } } }
        : path === '/discovery/resources'
          ? { body: { x402Version: 2, items: [], pagination: { limit: 1000, offset: 0, total: 0 } } }
          : { status: 404, body: { error: 'not found' } };
    return opened(standIn(call => says(call, shop.url) ?? nothing(call.path)));
  }

  type Heard = Listing & { of: (name: string) => Standing; calls: Call[]; shop: StandIn };
  async function ask(says: Says, task: Partial<Task> = {}): Promise<Heard> {
    const shop = await opened(fakeShop());
    const { url, calls } = await directory(says, shop);
    const directories: Directories = { coinbase: url, payai: url, x402scan: url, mcpRegistry: url };
    const listing = await listShop({ url: shop.url, directories, offline: false, ...task });
    const of = (name: string): Standing => {
      const standing = listing.standings.find(each => each.directory === name);
      if (!standing) throw new Error(`nothing of ${name}`);
      return standing;
    };
    return { ...listing, of, calls, shop };
  }

  const entry = (shop: string): object => ({ resource: `${shop}/weather`, type: 'http', accepts: [] });

  it('says for each directory that does not list the shop what to do next', async () => {
    const { of, standings, findings } = await ask(() => undefined);
    expect(standings.map(({ directory: name }) => name)).to.deep.equal([
      'PayAI',
      'Coinbase',
      'x402scan',
      'pay-skills',
      'MCP registry',
    ]);
    for (const name of ['PayAI', 'Coinbase', 'MCP registry']) expect(of(name).state).to.equal('not listed');
    for (const { next } of standings) expect(next).to.have.length.above(0);
    expect(findings.map(({ promise }) => promise)).to.include("Coinbase's validator accepts GET /weather");
  });

  it('says which directories list the shop', async () => {
    const { of, calls } = await ask(({ path, url }, shop) => {
      if (path === '/discovery/merchant')
        return { body: { resources: [entry(shop)], pagination: { total: 1 } } };
      if (path === '/discovery/resources')
        return { body: { items: [entry(shop)], pagination: { total: 1 } } };
      if (url.pathname.startsWith('/v0.1/servers/'))
        return { body: { server: { name: 'example.shop/weather', version: '1.0.0' } } };
      return undefined;
    });
    for (const name of ['PayAI', 'Coinbase', 'MCP registry']) expect(of(name).state, name).to.equal('listed');
    const merchant = calls.find(({ path }) => path === '/discovery/merchant');
    expect(merchant?.url.searchParams.get('payTo')).to.equal(PAY_TO);
    expect(calls.find(({ path }) => path === '/validate')?.body).to.contain(
      '/weather?city=Bergen","method":"GET"',
    );
    expect(calls.some(({ path }) => path.includes('example.shop%2Fweather'))).to.equal(true);
  });

  it('reads a directory page by page, and no further than needed', async () => {
    const page = (at: number, shop: string): Answer => {
      const items = Array.from({ length: 1_000 }, (_, each) => ({
        resource: `https://other.example/${at + each}`,
      }));
      if (at === 2_000) items[500] = entry(shop) as { resource: string };
      return { body: { items, pagination: { limit: 1_000, offset: at, total: 9_000 } } };
    };
    const { of, calls } = await ask(({ path, url }, shop) =>
      path === '/discovery/resources' ? page(Number(url.searchParams.get('offset')), shop) : undefined,
    );
    expect(of('PayAI').state).to.equal('listed');
    const pages = calls.filter(({ path }) => path === '/discovery/resources');
    expect(pages.map(({ url }) => url.searchParams.get('offset'))).to.deep.equal(['0', '1000', '2000']);
  });

  it('stops after 60 pages of an endless directory, and reports that it did', async () => {
    const { of, calls } = await ask(({ path }) =>
      path === '/discovery/resources'
        ? { body: { items: [{ resource: 'https://other.example/' }], pagination: { total: 10 ** 12 } } }
        : undefined,
    );
    expect(of('PayAI').found).to.contain('among its first 60 entries; it has more');
    expect(calls.filter(({ path }) => path === '/discovery/resources')).to.have.length(60);
  });

  it("gives the reasons why Coinbase's validator refuses an operation", async () => {
    const preflight = [
      { check: 'returns_402', passed: true, severity: 'required', detail: '402' },
      { check: 'bazaar.schema', passed: false, severity: 'required', detail: 'no schema block' },
    ];
    const { findings, failed } = await ask(({ path }) =>
      path === '/validate'
        ? { body: { valid: false, preflight, simulation: { outcome: 'rejected' } } }
        : undefined,
    );
    const [found] = findings.filter(({ promise }) => promise.startsWith('Coinbase'));
    expect(found).to.deep.include({
      advice: false,
      fault: 'bazaar.schema: no schema block; a listing would be rejected',
    });
    expect(failed).to.equal(true);
  });

  const silent: [string, Says, string][] = [
    ['refuses', () => ({ status: 403, body: 'no' }), 'it answered 403'],
    [
      'fails',
      () => ({ status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad' }),
      'it answered 502',
    ],
    ['answers garbage', () => ({ body: '{"items":' }), 'the body is not JSON'],
    [
      'answers a page',
      () => ({ headers: { 'content-type': 'text/html' }, body: '<h1>' }),
      'Content-Type is text/html',
    ],
    ['answers another object', () => ({ body: { hello: 1 } }), 'it answered'],
    [
      'answers without end',
      () => ({ body: `{"x":"${'x'.repeat(9_000_000)}"}` }),
      'is longer than 8388608 bytes',
    ],
  ];
  for (const [what, says, words] of silent)
    it(`says that a directory ${what}, which is not the shop's fault`, async () => {
      const { of, findings } = await ask(says);
      for (const name of ['PayAI', 'Coinbase', 'MCP registry'])
        expect(of(name).state, name).to.equal('unknown');
      expect(of('PayAI').found).to.contain(words);
      const faults = findings.filter(({ fault }) => fault !== undefined);
      expect(faults.map(({ promise }) => promise)).to.have.length(1);
    });

  it("says that a directory can't be reached, or does not answer in time", async () => {
    const gone = await standIn(() => undefined);
    gone.close();
    expect(await askDirectory(gone.url)).to.deep.equal({ why: "can't be reached (ECONNREFUSED)" });
    const { url } = await opened(standIn(() => undefined));
    expect(await askDirectory(url, {}, 50)).to.deep.equal({ why: 'did not answer within 0.05 s' });
  });

  it('says that the shop must be published again if the MCP registry has an older version of it', async () => {
    const { of } = await ask(({ path }) =>
      path.startsWith('/v0.1/servers/') ? { body: { server: { version: '0.9.0' } } } : undefined,
    );
    expect(of('MCP registry')).to.deep.include({ state: 'partly listed' });
    expect(of('MCP registry').found).to.contain('in version 0.9.0; the shop has 1.0.0');
    expect(of('MCP registry').next.join()).to.contain('mcp-publisher publish');
  });

  describe('the files for pay-skills', () => {
    let folder: string;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'coinslot-list-'));
    });
    afterEach(() => rmSync(folder, { recursive: true, force: true }));
    const write = (name: string, category?: string): Promise<Heard> =>
      ask(() => undefined, { provider: { folder, name, ...(category ? { category } : {}) } });
    const file = (): string => join(folder, 'providers/acme/weather/PAY.md');

    it("have everything that the catalogue requires, with the API's description in a file next to them", async () => {
      const { of, shop } = await write('acme/weather', 'data');
      const [, head = '', text = ''] = readFileSync(file(), 'utf8').split(/^---$/m);
      const fields = parse(head) as Record<string, string>;
      expect(fields).to.deep.include({
        name: 'weather',
        title: 'Weather',
        category: 'data',
        service_url: shop.url,
        openapi: { path: 'openapi.json' },
      });
      expect(fields['use_case'])
        .to.match(/^Use for /)
        .and.to.have.length.within(32, 255);
      expect(text).to.contain('`GET /weather`: 0.02 USDC');
      const described = JSON.parse(
        readFileSync(join(folder, 'providers/acme/weather/openapi.json'), 'utf8'),
      ) as object;
      expect(described).to.have.property('paths');
      expect(of('pay-skills').next.join()).to.contain('pull request').and.not.to.contain('CHOOSE');
    });

    it('mark what only the seller can fill in, and keep what the seller wrote', async () => {
      expect((await write('acme/weather')).of('pay-skills').next.join()).to.contain('CHOOSE');
      writeFileSync(file(), 'mine');
      expect((await write('acme/weather')).of('pay-skills').found).to.contain('edited by hand');
      expect(readFileSync(file(), 'utf8')).to.equal('mine');
    });

    for (const [name, category, says] of [
      ['../../etc/x', undefined, 'is not <operator>/<name>'],
      ['acme/weather', 'weather', 'is not one of ai_ml'],
    ] as const)
      it(`are not written for ${name}, category ${category ?? 'unknown'}`, async () => {
        const said = await write(name, category).catch((error: unknown) => String(error));
        expect(said).to.contain(says);
        expect(existsSync(join(folder, 'providers'))).to.equal(false);
      });
  });
});
