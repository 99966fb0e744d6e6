import { expect } from 'chai';
import { contractYaml } from '../../../src/cli/import/contract-yaml.js';
import { compileContract } from '../../../src/contract/compile-contract.js';
import {
  importContract,
  type Imported,
  type ImportOptions,
  type Row,
} from '../../../src/contract/import/import-contract.js';
import { ImportFault } from '../../../src/contract/import/source-document.js';
import type { Json } from '../../../src/contract/json.js';
import { parseContract } from '../../../src/contract/parse-contract.js';
import { objectOf } from '../../../src/contract/references.js';

const UPSTREAM = 'https://api.example.com';
const OK = { description: 'ok', content: { 'application/json': { schema: { type: 'object' } } } };
const called = (more: Json = {}): Json => ({ responses: { 200: OK }, ...more });

const documentOf = (paths: Json, more: Json = {}): Json => ({
  openapi: '3.1.0',
  info: { title: 'Pets of Bangkok', version: '7' },
  servers: [{ url: UPSTREAM }],
  ...more,
  paths,
});

const imported = (document: Json | string, options: Partial<ImportOptions> = {}): Promise<Imported> =>
  importContract(typeof document === 'string' ? document : JSON.stringify(document), {
    prices: ['*=0.01'],
    ...options,
  });

const rowOf = ({ table }: Imported, path: string): Row => {
  const row = table.find(each => each.path === path);
  if (!row) throw new Error(`no row of ${path}`);
  return row;
};

/** What the written contract sells, as the server reads it. */
async function sold(result: Imported): Promise<ReturnType<typeof parseContract>['paid']> {
  const text = contractYaml(result.contract, 'x');
  await compileContract(text);
  return parseContract(text).paid;
}

async function refused(work: Promise<unknown>): Promise<string> {
  const fault: unknown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(fault).to.be.instanceOf(ImportFault);
  return (fault as Error).message;
}

/** The same API in each version, in that version's notation. */
const TWO: Json = {
  swagger: '2.0',
  info: { title: 'Pets of Bangkok', version: '7' },
  host: 'api.example.com',
  basePath: '/v2',
  schemes: ['http', 'https'],
  consumes: ['application/json'],
  produces: ['application/json'],
  paths: {
    '/pets/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, type: 'integer' }],
      get: {
        operationId: 'getPet',
        responses: { 200: { description: 'A pet', schema: { $ref: '#/definitions/Pet' } } },
      },
    },
    '/pets': {
      post: {
        operationId: 'addPet',
        parameters: [{ $ref: '#/parameters/Pet' }],
        responses: { 200: { $ref: '#/responses/Pet' } },
      },
    },
  },
  parameters: { Pet: { name: 'pet', in: 'body', required: true, schema: { $ref: '#/definitions/Pet' } } },
  responses: { Pet: { description: 'A pet', schema: { $ref: '#/definitions/Pet' } } },
  definitions: {
    Pet: {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', 'x-nullable': true },
        age: { type: 'number', minimum: 0, exclusiveMinimum: true },
        friend: { $ref: '#/definitions/Pet' },
      },
    },
    Unused: { type: 'object' },
  },
};

const three = (openapi: string, name: Json, age: Json): Json => ({
  openapi,
  info: { title: 'Pets of Bangkok', version: '7' },
  servers: [{ url: 'https://{where}.example.com/v2/', variables: { where: { default: 'api' } } }],
  paths: {
    '/pets/{id}': {
      parameters: [{ $ref: '#/components/parameters/Id' }],
      get: { operationId: 'getPet', responses: { 200: { $ref: '#/components/responses/Pet' } } },
    },
    '/pets': {
      post: {
        operationId: 'addPet',
        requestBody: { $ref: '#/components/requestBodies/Pet' },
        responses: { 200: { $ref: '#/components/responses/Pet' } },
      },
    },
  },
  components: {
    parameters: { Id: { name: 'id', in: 'path', required: true, schema: { type: 'integer' } } },
    requestBodies: {
      Pet: {
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
      },
    },
    responses: {
      Pet: {
        description: 'A pet',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
      },
    },
    schemas: {
      Pet: {
        type: 'object',
        required: ['name'],
        properties: { name, age, friend: { $ref: '#/components/schemas/Pet' } },
      },
      Unused: { type: 'object' },
    },
  },
});

const NOW: [Json, Json] = [{ type: ['string', 'null'] }, { type: 'number', exclusiveMinimum: 0 }];
const VERSIONS: [string, Json][] = [
  ['Swagger 2.0', TWO],
  [
    'OpenAPI 3.0',
    three(
      '3.0.3',
      { type: 'string', nullable: true },
      { type: 'number', minimum: 0, exclusiveMinimum: true },
    ),
  ],
  ['OpenAPI 3.1', three('3.1.0', ...NOW)],
  ['OpenAPI 3.2', three('3.2.0', ...NOW)],
];

describe('coinslot import', () => {
  for (const [version, document] of VERSIONS)
    it(`sells the same operations from a ${version} document as from any other version`, async () => {
      const result = await imported(document);
      expect(
        (await sold(result)).map(({ id, upstream, price }) => [id, upstream?.url, price.amount]),
      ).to.deep.equal([
        ['getPet', 'https://api.example.com/v2/pets/{id}', '0.01'],
        ['addPet', 'https://api.example.com/v2/pets', '0.01'],
      ]);
      const { contract } = result;
      expect(objectOf(contract.info).title).to.equal('Pets of Bangkok');
      expect(contract.components).to.deep.equal({
        schemas: {
          Pet: {
            type: 'object',
            required: ['name'],
            properties: {
              name: { type: ['string', 'null'] },
              age: { type: 'number', exclusiveMinimum: 0 },
              friend: { $ref: '#/components/schemas/Pet' },
            },
          },
        },
      });
      expect(objectOf(objectOf(objectOf(contract.paths)['/pets']).post).requestBody).to.deep.equal({
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
      });
    });

  it('reads YAML like JSON', async () => {
    const text = contractYaml(documentOf({ '/a': { get: called() } }), 'mine');
    expect((await imported(text)).contract).to.deep.equal(
      (await imported(documentOf({ '/a': { get: called() } }))).contract,
    );
  });

  it('applies, of all matching patterns, the one with the most characters other than *; if several have equally many, the last', async () => {
    const paths = {
      '/report': { post: called({ operationId: 'report', tags: ['slow'] }) },
      '/quote': { get: called({ operationId: 'quote' }) },
      '/map': { get: called({ operationId: 'map', tags: ['slow'] }) },
    };
    const prices = ['POST /report=0.50', '*=0.01', 'slow=0.2', 'quot*=0.03', 'post /rep*=0.7'];
    const both = [
      await imported(documentOf(paths), { prices }),
      await imported(documentOf(paths), { prices: prices.reverse() }),
    ];
    for (const { table } of both)
      expect(table.map(({ path, price }) => [path, price])).to.deep.equal([
        ['/report', '0.50'],
        ['/quote', '0.03'],
        ['/map', '0.20'],
      ]);
    const { table } = await imported(documentOf(paths), { prices: ['*=0.01', '*=0.02'] });
    expect(table.map(({ price }) => price)).to.deep.equal(['0.02', '0.02', '0.02']);
  });

  it('names a price whose pattern matches no operation, because it may contain a typo', async () => {
    const paths = { '/cities/{name}': { get: called() } };
    const prices = ['*=0.01', 'GET /citys/*=0.50'];
    expect((await imported(documentOf(paths), { prices })).notes).to.deep.equal([
      "no operation matches the price for 'GET /citys/*'",
    ]);
    expect((await imported(documentOf(paths), { prices: ['GET /cities/*=0.50'] })).notes).to.deep.equal([]);
  });

  it('sells nothing without a price, and refuses a price of 0 or an invalid one', async () => {
    const result = await imported(documentOf({ '/a': { get: called() }, '/b': { get: called() } }), {
      prices: ['/a=1'],
    });
    expect((await sold(result)).map(({ path }) => path)).to.deep.equal(['/a']);
    expect(rowOf(result, '/b').leftOut).to.equal("has no price: --price 'GET /b=0.01'");
    const paths = { '/a': { get: called() } };
    for (const [price, words] of [
      ['*=0', 'a price must be more than 0'],
      ['*=0.00', 'a price must be more than 0'],
      ['*', 'is not a price'],
      ['*=1.1234567', 'fractional digits'],
      ['*=-1', 'is not a decimal string'],
    ] as const)
      expect(await refused(imported(documentOf(paths), { prices: [price] }))).to.contain(words);
  });

  it('lists in the table only what --only names', async () => {
    const paths = { '/a': { get: called() }, '/b': { get: called() }, '/c/{d}': { post: called() } };
    const { table, notes } = await imported(documentOf(paths), { only: ['GET /a', '/c/*', 'GET /d'] });
    expect(table.map(({ path }) => path)).to.deep.equal(['/a', '/c/{d}']);
    expect(notes).to.deep.equal(["no operation matches --only 'GET /d'"]);
  });

  it('says why it leaves out an operation, and how it changes one', async () => {
    const stream = { description: 'ok', content: { 'text/event-stream': { schema: { type: 'string' } } } };
    const cookie = (required: boolean): Json => ({
      parameters: [{ name: 'sid', in: 'cookie', required, schema: { type: 'string' } }],
    });
    const result = await imported(
      documentOf(
        {
          '/stream': { get: { responses: { 200: stream } } },
          '/both': {
            get: { responses: { 200: { ...stream, content: { ...OK.content, ...stream.content } } } },
          },
          '/cookie': { get: called(cookie(true)) },
          '/biscuit': { get: called(cookie(false)) },
          '/old': { get: called({ deprecated: true }) },
          '/calls': { post: called({ callbacks: { done: {} } }) },
          '/moved': { get: { responses: { 302: { description: 'there' } } } },
          '/made': { post: { responses: { 201: OK, 400: { description: 'no' } } } },
          '/any': { get: { responses: { default: { description: 'ok', content: { '*/*': {} } } } } },
          '/nothing': { get: { responses: { 404: { description: 'no' } } } },
          '/trace': { trace: called() },
        },
        { webhooks: { petBorn: { post: {} } } },
      ),
    );
    const said = Object.fromEntries(
      result.table.map(({ path, leftOut = 'sells', notes }) => [path, [leftOut, ...notes].join('; ')]),
    );
    expect(said['/stream']).to.contain('a stream (text/event-stream)');
    expect(said['/both']).to.equal('sells');
    expect(said['/cookie']).to.contain('needs the cookie sid');
    expect(said['/biscuit']).to.equal('sells; without the cookie sid');
    expect(said['/old']).to.equal('sells; deprecated');
    expect(said['/calls']).to.equal('sells; without its callbacks');
    expect(said['/moved']).to.contain('redirects');
    expect(said['/made']).to.match(/^sells/);
    expect(said['/any']).to.equal('sells; its answer is the default response in the document');
    expect(said['/nothing']).to.contain('declares no answer');
    expect(said['/trace']).to.not.match(/^sells/);
    expect(said['petBorn']).to.contain('the API makes');
    expect((await sold(result)).map(({ path }) => path)).to.have.members(
      Object.entries(said).flatMap(([path, words]) => (words.startsWith('sells') ? [path] : [])),
    );
  });

  it('keeps names and schemas of the API apart from those of the server', async () => {
    const answer = {
      200: {
        ...OK,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorMessage' } } },
      },
    };
    const result = await imported(
      documentOf(
        {
          '/health': { get: called({ operationId: 'getHealth' }) },
          '/again': { get: called({ operationId: 'getHealth' }) },
          '/a.b': { get: { operationId: 'meta/root', responses: answer } },
          '/unnamed/{pet-id}': { get: called() },
        },
        { components: { schemas: { ErrorMessage: { type: 'object', required: ['code'] } } } },
      ),
    );
    expect((await sold(result)).map(({ id }) => id)).to.deep.equal([
      'getHealth2',
      'getHealth3',
      'meta_root',
      'getUnnamedPetId',
    ]);
    expect(objectOf(result.contract.components).schemas).to.deep.equal({
      ErrorMessage2: { type: 'object', required: ['code'] },
    });
  });

  it("removes examples that their schemas reject, and optional parameters that can't be sold", async () => {
    const wrong = { schema: { type: 'integer', default: '' }, example: 'many' };
    const result = await imported(
      documentOf({
        '/a': {
          get: {
            parameters: [
              { name: 'limit', in: 'query', ...wrong },
              { name: 'deep', in: 'query', style: 'deepObject', schema: { type: 'object' } },
              { name: 'after', in: 'query', required: true, schema: { type: 'string' } },
            ],
            responses: {
              200: {
                description: 'ok',
                content: { 'application/json': { schema: { type: 'object' }, example: 7 } },
              },
            },
          },
        },
      }),
    );
    const [operation] = await sold(result);
    expect(operation?.parameters.map(({ name }) => name)).to.include.members(['limit', 'after']);
  });

  it('leaves an example alone if its error is somewhere else', async () => {
    const id = { name: 'id', in: 'path', required: true, schema: { $ref: '#/components/schemas/Id' } };
    const result = await imported(
      documentOf(
        {
          '/a/{id}': { get: called({ parameters: [{ ...id, example: 'wrong' }] }) },
          '/b/{id}': { get: called({ parameters: [id] }) },
        },
        {
          components: {
            schemas: { Id: { type: 'string', pattern: '^se(-[a-z0-9]+)+$', example: 'se-28529731' } },
          },
        },
      ),
    );
    expect((await sold(result)).map(({ examplePath }) => examplePath)).to.deep.equal([
      '/a/se-28529731',
      '/b/se-28529731',
    ]);
  });

  it('sends the credentials that the document requires, read from variables that the import names, unless --secret says what to send', async () => {
    const securitySchemes = {
      key: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
      query: { type: 'apiKey', in: 'query', name: 'appid' },
      bearer: { type: 'http', scheme: 'bearer' },
      basic: { type: 'http', scheme: 'basic' },
      oauth: { type: 'oauth2', flows: {} },
      tls: { type: 'mutualTLS' },
    };
    const paths = Object.fromEntries(
      Object.keys(securitySchemes).map(name => [`/${name}`, { get: called({ security: [{ [name]: [] }] }) }]),
    );
    const document = documentOf(
      { ...paths, '/open': { get: called() } },
      { components: { securitySchemes } },
    );
    const result = await imported(document);
    const sent = Object.fromEntries(
      (await sold(result)).map(({ path, upstream }) => [path, { url: upstream?.url, ...upstream?.headers }]),
    );
    expect(sent).to.deep.equal({
      '/key': { url: `${UPSTREAM}/key`, 'x-api-key': '${X_API_KEY}' },
      '/query': { url: `${UPSTREAM}/query?appid=\${APPID}` },
      '/bearer': { url: `${UPSTREAM}/bearer`, authorization: 'Bearer ${API_TOKEN}' },
      '/basic': { url: `${UPSTREAM}/basic`, authorization: 'Basic ${API_BASIC}' },
      '/oauth': { url: `${UPSTREAM}/oauth`, authorization: 'Bearer ${API_TOKEN}' },
      '/open': { url: `${UPSTREAM}/open` },
    });
    expect(result.asked.map(({ variable }) => variable)).to.deep.equal([
      'X_API_KEY',
      'APPID',
      'API_TOKEN',
      'API_BASIC',
    ]);
    expect(rowOf(result, '/tls').leftOut).to.contain('mutualTLS');

    const given = await imported(document, { secrets: ['Authorization=Bearer ${MINE}'], only: ['/bearer'] });
    expect([(await sold(given))[0]?.upstream?.headers, given.asked]).to.deep.equal([
      { authorization: 'Bearer ${MINE}' },
      [],
    ]);
  });

  it('refuses a key that is written in place of its variable, and does not repeat it', async () => {
    const paths = { '/a': { get: called() } };
    const said = await refused(imported(documentOf(paths), { secrets: ['Authorization=Bearer sk-12345'] }));
    expect(said).to.contain('does not name a variable').and.not.contain('12345');
  });

  it('does not ask a buyer for a header that the shop sends itself', async () => {
    const parameters = [{ name: 'x-token', in: 'header', required: true, schema: { type: 'string' } }];
    const result = await imported(documentOf({ '/a': { get: called({ parameters }) } }), {
      secrets: ['X-Token=${API_TOKEN}'],
    });
    expect((await sold(result)).map(({ parameters: asked }) => asked)).to.deep.equal([[]]);
  });

  it('calls the server that --upstream or the document names; a relative address is resolved against that of the document', async () => {
    const paths = { '/a': { get: called() } };
    const at = new URL('http://127.0.0.1:8000/docs/openapi.json');
    const urlOf = async (document: Json, options: Partial<ImportOptions>): Promise<unknown> =>
      (await sold(await imported(document, options)))[0]?.upstream?.url;
    const nowhere = documentOf(paths, { servers: undefined });
    expect(await urlOf(nowhere, { at })).to.equal('http://127.0.0.1:8000/a');
    expect(await urlOf(documentOf(paths, { servers: [{ url: '/v1' }] }), { at })).to.equal(
      'http://127.0.0.1:8000/v1/a',
    );
    expect(await urlOf(nowhere, { upstream: '${API_URL}/v1/' })).to.equal('${API_URL}/v1/a');
    expect(await refused(imported(nowhere))).to.contain('--upstream https://api.example.com');
  });

  it('has the shop send only those environment variables that the seller was told to set', async () => {
    const components = {
      securitySchemes: { sneaky: { type: 'apiKey', in: 'cookie', name: '${DATABASE_URL};a' } },
    };
    const own = { url: `${UPSTREAM}/u?k=${'${FIRST_KEY}'}`, headers: { 'X-Key': '${SECOND_KEY}' } };
    const paths = {
      '/sneaky': { get: called({ security: [{ sneaky: [] }] }) },
      '/own': { get: called({ 'x-upstream': own }) },
    };
    const result = await imported(documentOf(paths, { components }));
    expect(rowOf(result, '/sneaky').leftOut).to.contain('which is not a valid cookie name');
    expect(rowOf(result, '/own').leftOut).to.equal(undefined);
    expect(result.asked.map(({ variable }) => variable)).to.deep.equal(['FIRST_KEY', 'SECOND_KEY']);
  });

  it('leaves out an operation whose x-upstream comes from the web and names a variable, unless --upstream names the API', async () => {
    const own = { url: 'https://other.example/u', headers: { 'X-Key': '${SECRET}' } };
    const paths = {
      '/own': { get: called({ 'x-upstream': own }) },
      '/plain': { get: called({ 'x-upstream': { url: 'https://other.example/p' } }) },
    };
    const at = new URL('https://docs.example/openapi.json');
    const fromWeb = await imported(documentOf(paths), { at });
    expect(rowOf(fromWeb, '/own').leftOut).to.contain(
      'would send the variable SECRET to an address of its choice',
    );
    expect((await sold(fromWeb)).map(({ upstream }) => upstream?.url)).to.deep.equal([
      'https://other.example/p',
    ]);
    for (const options of [{ at }, {}]) {
      const told = await imported(documentOf(paths), {
        ...options,
        upstream: 'https://mine.example/v2',
        secrets: ['Authorization=${TOKEN}'],
      });
      expect((await sold(told)).map(({ upstream }) => [upstream?.url, upstream?.headers])).to.deep.equal([
        ['https://mine.example/v2/own', { authorization: '${TOKEN}' }],
        ['https://mine.example/v2/plain', { authorization: '${TOKEN}' }],
      ]);
      expect(rowOf(told, '/own').notes).to.deep.equal([
        'without its x-upstream: --upstream says where the API is',
      ]);
    }
  });

  it('reads files next to the document if the document refers to them, and no others', async () => {
    const files: Record<string, string> = {
      'file:///api/pet.yaml': 'Pet: { type: object, properties: { owner: { $ref: "people.json#/Owner" } } }',
      'file:///api/people.json': '{"Owner":{"type":"object","required":["name"]}}',
    };
    const asked: string[] = [];
    const answer = (reference: string): Json => ({
      get: {
        responses: {
          200: { description: 'ok', content: { 'application/json': { schema: { $ref: reference } } } },
        },
      },
    });
    const result = await imported(
      documentOf({ '/pet': answer('pet.yaml#/Pet'), '/far': answer('https://elsewhere.example/a.json') }),
      {
        at: new URL('file:///api/openapi.json'),
        load: file => {
          asked.push(file.href);
          const text = files[file.href];
          return text === undefined ? Promise.reject(new Error('not there')) : Promise.resolve(text);
        },
      },
    );
    expect(asked).to.have.members(Object.keys(files));
    expect(objectOf(result.contract.components).schemas).to.deep.equal({
      Pet: { type: 'object', properties: { owner: { $ref: '#/components/schemas/Owner' } } },
      Owner: { type: 'object', required: ['name'] },
    });
    expect(result.notes.join()).to.contain('elsewhere.example');
  });

  const BROKEN: [string, string, string][] = [
    ['nothing', '', 'is not an OpenAPI document'],
    ['a page', '<!DOCTYPE html><html>', 'is a page in HTML'],
    ['no YAML', 'a: [', 'is neither JSON nor YAML'],
    ['a list', '[1]', 'is not an OpenAPI document'],
    ['no version', '{"paths":{}}', "neither openapi: '3.…' nor swagger: '2.0'"],
    ['version 4', '{"openapi":"4.0.0"}', 'OpenAPI 4.0.0 is not supported'],
    ['no paths', '{"openapi":"3.1.0","webhooks":{}}', 'has no paths'],
    ['too deep', `{"openapi":"3.1.0","paths":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`, 'levels deep'],
    [
      'aliases that multiply',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
        .split('')
        .map((name, at) => `${name}: &${name} [${`*${'abcdefg'[at]},`.repeat(9)}]\n`)
        .join('')}`,
      'is neither JSON nor YAML',
    ],
  ];
  for (const [what, text, words] of BROKEN)
    it(`says in one sentence why a document can't be imported: ${what}`, async () => {
      expect(await refused(imported(text))).to.contain(words);
    });

  it("says why a document with parts of wrong types can't be imported, and never crashes", async () => {
    const odd: unknown[] = [null, 7, 'text', [], [null], {}, true];
    for (const value of odd)
      for (const document of [
        documentOf({ '/a': value }),
        documentOf({ '/a': { get: value } }),
        documentOf({
          '/a': { get: called({ parameters: value, security: value, tags: value, requestBody: value }) },
        }),
        documentOf({ '/a': { post: called({ parameters: [value], requestBody: { content: value } }) } }),
        documentOf({ '/a': { get: { responses: value } } }),
        documentOf({ '/a': { get: { responses: { 200: value } } } }),
        documentOf({
          '/a': { get: { responses: { 200: { content: { 'application/json': { schema: value } } } } } },
        }),
        documentOf(
          { '/a': { get: called() } },
          { servers: value, tags: value, components: value, info: value },
        ),
        { ...TWO, definitions: value, parameters: value, responses: value, securityDefinitions: value },
        { ...TWO, paths: { '/a': { get: { parameters: [value], responses: { 200: value } } } } },
      ])
        await imported(document, { upstream: UPSTREAM }).catch((error: unknown) => {
          expect(error, JSON.stringify(document)).to.be.instanceOf(ImportFault);
        });
  });

  it('makes the price of an operation depend on the call if a pattern of --price-by matches it', async () => {
    const schema = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };
    const requestBody = { required: true, content: { 'application/json': { schema } } };
    const result = await imported(
      documentOf({ '/a': { post: called({ requestBody }) }, '/b': { post: called({ requestBody }) } }),
      {
        pricesBy: [
          '*=value of /body/none, 1 per 1, at most 2',
          'post /a=length of /body/text, 0.001 per 10, at most 0.05',
        ],
      },
    );
    expect(rowOf(result, '/a').price).to.equal('0.01 to 0.05');
    expect(rowOf(result, '/b').leftOut).to.contain('by points to a value that no call has');
    const [operation] = await sold(result);
    expect([operation?.path, operation?.price.shown]).to.deep.equal(['/a', '0.01 to 0.05 USDC']);
    const { atomic } = await operation!.pricing.quote({
      params: {},
      query: {},
      body: { text: 'x'.repeat(250) },
    });
    expect(atomic).to.equal(25_000n);
  });

  it('says what is wrong with a rule of --price-by', async () => {
    for (const [rule, words] of [
      ['length of /body/text, 0.001 per 10, at most 0.05', 'does not name the operations whose price rises'],
      ['*=words', '--price-by must be like'],
      ['*=handler, at most 0.50', 'imported operations are served by an API'],
      ['=length of /body/text, 0.001 per 10, at most 0.05', 'does not name the operations whose price rises'],
    ])
      expect(
        await refused(imported(documentOf({ '/a': { post: called() } }), { pricesBy: [rule!] })),
        rule,
      ).to.contain(words);
  });

  it('keeps a tiered price from the document, and shows its mode in the table', async () => {
    const schema = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };
    const steps = [{ upTo: 100, amount: '0.01' }, { amount: '0.03' }];
    const price = {
      mode: 'tiered',
      currency: 'USD',
      flow: 'authorization',
      by: '/body/text',
      measure: 'length',
      steps,
    };
    const requestBody = { required: true, content: { 'application/json': { schema } } };
    const result = await imported(documentOf({ '/a': { post: called({ 'x-price': price, requestBody }) } }), {
      prices: [],
    });
    expect(rowOf(result, '/a').price).to.equal('tiered');
    const [operation] = await sold(result);
    expect(operation?.price.shown).to.equal('0.01 to 0.03 USDC');
  });
});
