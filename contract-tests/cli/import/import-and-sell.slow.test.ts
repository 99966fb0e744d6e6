import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buyAll } from '../../support/agent.js';
import { ownPlace, startShop, succeed, type Running } from '../../support/other-shop.js';
import { TestUpstream } from '../../support/upstream-shop.js';

const COMMAND = fileURLToPath(new URL('../../../../src/cli/coinslot.js', import.meta.url));
const TOKEN = 'a-token-of-twenty-chars';

const json = (schema: object): object => ({
  description: 'Successful Response',
  content: { 'application/json': { schema } },
});
const INVALID = {
  description: 'Validation Error',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/HTTPValidationError' } } },
};
const answers = (status: number, schema: object): object => ({ [status]: json(schema), 422: INVALID });

/** A document as FastAPI writes it: no servers, nulls as alternatives, 422 everywhere, answers without descriptions. */
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Ferries', version: '0.1.0' },
  paths: {
    '/piers': {
      get: {
        summary: 'List Piers',
        operationId: 'list_piers_piers_get',
        parameters: [
          {
            name: 'near',
            in: 'query',
            required: false,
            schema: { anyOf: [{ type: 'string' }, { type: 'null' }], title: 'Near' },
          },
          {
            name: 'limit',
            in: 'query',
            required: false,
            schema: { type: 'integer', default: 2, title: 'Limit' },
          },
        ],
        responses: answers(200, {
          type: 'array',
          items: { $ref: '#/components/schemas/Pier' },
          title: 'Piers',
        }),
      },
    },
    '/piers/{pier_id}': {
      get: {
        summary: 'Read Pier',
        operationId: 'read_pier_piers__pier_id__get',
        security: [{ HTTPBearer: [] }],
        parameters: [
          { name: 'pier_id', in: 'path', required: true, schema: { type: 'integer', title: 'Pier Id' } },
        ],
        responses: answers(200, { $ref: '#/components/schemas/Pier' }),
      },
    },
    '/trips': {
      post: {
        summary: 'Plan Trip',
        operationId: 'plan_trip_trips_post',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Trip' } } },
        },
        responses: answers(201, {}),
      },
    },
    '/events': {
      get: {
        operationId: 'events_events_get',
        responses: { 200: { description: 'ok', content: { 'text/event-stream': {} } } },
      },
    },
  },
  components: {
    securitySchemes: { HTTPBearer: { type: 'http', scheme: 'bearer' } },
    schemas: {
      Pier: {
        type: 'object',
        required: ['id', 'name'],
        title: 'Pier',
        properties: {
          id: { type: 'integer', title: 'Id' },
          name: { type: 'string', title: 'Name' },
          next: { anyOf: [{ $ref: '#/components/schemas/Pier' }, { type: 'null' }] },
        },
      },
      Trip: {
        type: 'object',
        required: ['from', 'to'],
        title: 'Trip',
        properties: {
          from: { type: 'string', title: 'From' },
          to: { type: 'string', title: 'To' },
          at: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }], title: 'At' },
        },
      },
      HTTPValidationError: { type: 'object', properties: { detail: { type: 'array', items: {} } } },
    },
  },
};

const PIER = { id: 3, name: 'Tha Tien', next: null };

/** The API itself, and its document. */
function api({ url = '', method, headers }: IncomingMessage, response: ServerResponse): void {
  const say = (status: number, body: unknown): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (url === '/openapi.json') say(200, DOCUMENT);
  else if (url === '/moved.json') response.writeHead(302, { location: '/openapi.json' }).end();
  else if (url.startsWith('/piers/'))
    if (headers.authorization === `Bearer ${TOKEN}`) say(200, PIER);
    else say(401, { detail: 'Not authenticated' });
  else if (url.startsWith('/piers')) say(200, [PIER]);
  else if (url === '/trips' && method === 'POST') say(201, { minutes: 12 });
  else say(404, { detail: 'Not Found' });
}

describe('coinslot import, and then coinslot run', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let folder: string;
  let running: Running | undefined;
  beforeEach(async () => {
    upstream = await TestUpstream.open();
    upstream.answer = api;
    folder = mkdtempSync(join(tmpdir(), 'coinslot-import-'));
  });
  afterEach(async () => {
    await running?.kill();
    running = undefined;
    upstream.close();
    rmSync(folder, { recursive: true });
  });

  const env = (): Record<string, string> =>
    ownPlace(join(folder, 'state'), { ALLOW_PRIVATE_UPSTREAMS: 'true', API_TOKEN: TOKEN });
  const command = (...args: string[]): Promise<string> =>
    succeed(folder, env(), process.execPath, COMMAND, ...args);
  const failed = (...args: string[]): Promise<string> =>
    command(...args).then(
      () => {
        throw new Error('it did not fail');
      },
      (error: unknown) => (error as Error).message,
    );

  it('sells the operations that a running API describes: the official client buys each call at its price', async () => {
    const said = await command(
      'import',
      `${upstream.url}/moved.json`,
      ...['--price', 'POST /trips=0.25', '--price', '*=0.01'],
    );
    expect(said).to.contain('GET /piers').and.contain('0.25');
    expect(said).to.match(/GET \/events .*left out: .*text\/event-stream/);
    expect(said).to.contain('Set API_TOKEN before you start the server');
    expect(said).to.contain(`Calls are sent to ${upstream.url}.`);
    expect(said).to.contain('Next: ALLOW_PRIVATE_UPSTREAMS=true npx coinslot run');

    running = await startShop(folder, env(), process.execPath, COMMAND, 'run');
    const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, 'state', name), 'utf8'));
    const { rpcUrl } = read('sandbox.json') as { rpcUrl: string };
    const keypair = Uint8Array.from(read('buyer.json') as number[]);
    upstream.calls.splice(0);
    const bought = await buyAll(running.url, { keypair, rpcUrl }, 60_000);
    expect(
      bought.map(({ title, usdc, status, receipt }) => [title, usdc, status, receipt !== undefined]),
    ).to.deep.equal([
      ['List Piers', '0.01', 200, true],
      ['Read Pier', '0.01', 200, true],
      ['Plan Trip', '0.25', bought[2]?.status, true],
    ]);
    expect(bought[2]?.status).to.be.oneOf([200, 201]);
    expect(upstream.calls.map(({ method, url }) => `${method} ${url.replace(/\d+$/, 'N')}`)).to.deep.equal([
      'GET /piers?limit=N',
      'GET /piers/N',
      'POST /trips',
    ]);
    const served = await (await fetch(`${running.url}/openapi.json`)).text();
    expect(served).to.contain('"Ferries"').and.not.contain('API_TOKEN').and.not.contain(upstream.url);
  });

  it('never overwrites a contract, and writes none if nothing can be sold', async () => {
    writeFileSync(join(folder, 'openapi.yaml'), 'mine');
    const again = ['import', `${upstream.url}/openapi.json`, '--price', '*=1'];
    expect(await failed(...again))
      .to.contain('already exists')
      .and.contain('--replace');
    expect(readFileSync(join(folder, 'openapi.yaml'), 'utf8')).to.equal('mine');
    expect(await failed(...again, '--out', 'other.yaml', '--only', '/events')).to.contain(
      'Nothing in the document can be sold',
    );
    expect(await failed(...again, '--out', 'none/other.yaml')).to.match(
      /There is no folder .*none: create it/,
    );
    await command(...again, '--replace');
    expect(readFileSync(join(folder, 'openapi.yaml'), 'utf8')).to.contain('title: Ferries');
  });

  it('says which folders of a new shop to delete if an imported contract replaces the one of its handlers', async () => {
    await command('init', 'shop');
    const shop = join(folder, 'shop');
    const run = (...args: string[]): Promise<string> =>
      succeed(shop, env(), process.execPath, COMMAND, ...args);
    const said = await run('import', `${upstream.url}/openapi.json`, '--price', '*=1', '--replace');
    expect(said).to.contain(
      'Note: handlers/ is for the previous contract and would stop the build: delete it and its tests in test/.',
    );
    for (const name of ['handlers', 'test']) rmSync(join(shop, name), { recursive: true });
    expect(await run('import', `${upstream.url}/openapi.json`, '--price', '*=1', '--replace')).to.not.contain(
      'handlers/',
    );
    running = await startShop(shop, env(), process.execPath, COMMAND, 'run');
    expect((await fetch(`${running.url}/piers`)).status).to.equal(402);
  });

  it('says in one sentence what is wrong with the address of a document', async () => {
    upstream.answer = (request, response) => {
      if (request.url === '/docs') response.writeHead(200).end('<!doctype html><p>Docs');
      else if (request.url === '/loop') response.writeHead(302, { location: '/loop' }).end();
      else if (request.url === '/file') response.writeHead(302, { location: 'file:///etc/hostname' }).end();
      else if (request.url === '/cut') response.writeHead(200, { 'content-length': '99' }).write('{');
      else response.writeHead(404).end();
      if (request.url === '/cut') request.socket.destroy();
    };
    for (const [path, words] of [
      ['/docs', 'is a page in HTML'],
      ['/loop', 'redirects more than 5 times'],
      ['/file', 'redirects to file:'],
      ['/cut', "can't be fetched"],
      ['/nothing', 'answers 404'],
    ] as const) {
      const said = await failed('import', upstream.url + path, '--price', '*=1');
      expect(said, path)
        .to.contain(words)
        .and.not.match(/^\s+at /m);
    }
    expect(await failed('import', 'gone.json', '--price', '*=1')).to.contain('There is no file');
    expect(await failed('import', 'http://127.0.0.1:1/openapi.json', '--price', '*=1')).to.contain(
      'Is the API running?',
    );
    expect(await failed('import', 'gone.json')).to.contain("--price is missing: --price '*=0.01'");
  });
});
