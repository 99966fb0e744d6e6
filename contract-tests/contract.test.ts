import { expect } from 'chai';
import addFormatsModule from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { compileContract, ContractFault, loadContract, parseContract, type Json } from '../src/contract.js';
import { closedAnswers } from './support/oracle.js';

const FILE = new URL('../../openapi.yaml', import.meta.url);
const TEXT = readFileSync(FILE, 'utf8');
const { document, paid, free } = loadContract(FILE);

/** One field of the specification: its type, whether it is required, and its constraints. */
type Field = { type: unknown; required?: true } & Json;
type Paid = {
  path: string;
  tag: string;
  amount: string;
  atomic: bigint;
  flow: string;
  closed?: true;
  request: Record<string, Field>;
  answer?: Record<string, Field>;
};

const MINT = {
  type: 'string',
  required: true,
  minLength: 32,
  maxLength: 44,
  pattern: '^[1-9A-HJ-NP-Za-km-z]{32,44}$',
} as const;
const text = { type: 'string' };
const needed = { type: 'string', required: true } as const;
const figure = { type: ['number', 'null'] };

/** Specification 1, 2.1 to 2.10, 4.2 and 8. */
const PAID: Record<string, Paid> = {
  summarize: {
    path: '/v1/summarize',
    tag: 'Text',
    amount: '0.01',
    atomic: 10_000n,
    flow: 'authorization',
    request: { text: { ...needed, minLength: 1, maxLength: 100_000 } },
    answer: { summary: needed, mock: { type: 'boolean' } },
  },
  solTokenBrief: {
    path: '/v1/sol-token-brief',
    tag: 'Solana',
    amount: '0.01',
    atomic: 10_000n,
    flow: 'authorization',
    closed: true,
    request: { mint: MINT },
    answer: {
      mint: needed,
      symbol: text,
      name: text,
      priceUsd: figure,
      mcapUsd: figure,
      fdvUsd: figure,
      liquidityUsd: figure,
      volume24hUsd: figure,
      holders: figure,
      organicScore: figure,
      brief: needed,
      sources: { type: 'array', required: true },
      asOf: { ...needed, format: 'date-time' },
      disclaimer: text,
    },
  },
  solMintInfo: {
    path: '/v1/sol-mint-info',
    tag: 'Solana',
    amount: '0.01',
    atomic: 10_000n,
    flow: 'authorization',
    closed: true,
    request: { mint: MINT },
    answer: {
      mint: needed,
      network: text,
      decimals: { type: 'integer', required: true },
      supply: needed,
      mintAuthority: { type: ['string', 'null'] },
      freezeAuthority: { type: ['string', 'null'] },
      tokenProgram: text,
      initialized: { type: 'boolean' },
      sources: { type: 'array' },
    },
  },
  brandFeedback: {
    path: '/brand-feedback',
    tag: 'Humans',
    amount: '0.50',
    atomic: 500_000n,
    flow: 'upfront',
    request: {
      brand: { ...needed, minLength: 1, maxLength: 200 },
      question: { ...needed, minLength: 1, maxLength: 2_000 },
      n: { type: 'integer', minimum: 1, maximum: 50, default: 5 },
    },
    answer: {
      brand: needed,
      question: text,
      n: { type: 'integer' },
      responses: { type: 'array', required: true },
      aggregate: { type: 'object' },
      mock: { type: 'boolean' },
    },
  },
  textToSpeech: {
    path: '/v1/tts',
    tag: 'Audio',
    amount: '0.025',
    atomic: 25_000n,
    flow: 'authorization',
    request: { text: { ...needed, minLength: 1, maxLength: 2500 }, voice_id: { ...text, maxLength: 100 } },
  },
};

/** Specification 4.3, and the paths that the specification names without a body. */
const FREE: Record<string, string> = {
  getIndex: '/',
  getDiscovery: '/.well-known/x402',
  getSellerDiscovery: '/seller/.well-known/x402',
  getBrandDiscovery: '/brand/.well-known/x402',
  getTtsDiscovery: '/tts/.well-known/x402',
  getOpenapi: '/openapi.json',
  getHealth: '/health',
  getBrandHealth: '/brand/health',
  getTtsHealth: '/tts/health',
  listVoices: '/tts/v1/voices',
};

const at = (value: unknown, ...path: string[]): Json =>
  path.reduce<unknown>((node, key) => (node as Json)[key], value) as Json;
/** Follows one `$ref`. */
const follow = (node: Json): Json =>
  typeof node.$ref === 'string' ? at(document, ...node.$ref.slice(2).split('/')) : node;
const schemaNamed = (name: string): Json => at(document, 'components', 'schemas', name);

const NOT_COMPARED = ['description', 'items', 'properties', 'required'];

/** The fields of an object schema, reduced to what the specification says of a field. */
function fieldsOf(schema: Json, constraints: boolean): Record<string, Json> {
  const required = (schema.required ?? []) as string[];
  return Object.fromEntries(
    Object.entries(schema.properties as Record<string, Json>).map(([name, field]) => {
      const own = Object.entries(follow(field)).filter(([key]) => !NOT_COMPARED.includes(key));
      const rest = Object.fromEntries(own);
      const kept = constraints ? rest : { type: rest.type, ...(rest.format ? { format: rest.format } : {}) };
      return [name, required.includes(name) ? { ...kept, required: true } : kept];
    }),
  );
}

describe('The contract sells what the specification says', () => {
  it('has exactly the five paid operations and the free ones', () => {
    expect(paid.map(operation => operation.id)).to.deep.equal(Object.keys(PAID));
    expect(Object.fromEntries(free.map(({ id, path }) => [id, path]))).to.deep.equal(FREE);
    expect((document.info as Json).version).to.equal('1.0.0');
    expect(document.openapi).to.equal('3.1.0');
  });

  for (const [id, wanted] of Object.entries(PAID)) {
    describe(id, () => {
      const operation = paid.find(entry => entry.id === id)!;
      const post = at(document, 'paths', wanted.path, 'post');

      it('has its path, tag, price and flow', () => {
        const { path, tag, price, flow } = operation;
        expect({ path, tag, flow }).to.deep.equal({ path: wanted.path, tag: wanted.tag, flow: wanted.flow });
        expect(post.tags).to.deep.equal([wanted.tag]);
        const { amount, atomic } = wanted;
        expect(price).to.deep.equal({ mode: 'fixed', currency: 'USD', amount, atomic });
        expect(post['x-price']).to.deep.equal({ mode: 'fixed', currency: 'USD', amount, flow: wanted.flow });
      });

      it('takes exactly the fields of the specification, with a limit for each text', () => {
        expect(fieldsOf(operation.requestSchema, true)).to.deep.equal(wanted.request);
        expect(operation.requestSchema.type).to.equal('object');
        expect(operation.requestSchema.additionalProperties).to.equal(wanted.closed ? false : undefined);
        expect(at(post, 'requestBody').required).to.equal(true);
        expect(at(post, 'requestBody', 'content')).to.have.all.keys('application/json');
      });

      it('answers 200, 400, 402, 502, 503 and nothing else, with the bodies and headers of the specification', () => {
        const responses = post.responses as Record<string, Json>;
        expect(responses).to.have.all.keys('200', '400', '402', '502', '503');
        for (const status of ['400', '502', '503']) {
          expect(at(follow(responses[status]!), 'content', 'application/json', 'schema').$ref).to.equal(
            '#/components/schemas/ErrorMessage',
          );
        }
        const challenge = follow(responses['402']!);
        expect(at(challenge, 'content', 'application/json', 'schema').$ref).to.equal(
          '#/components/schemas/PaymentChallenge',
        );
        expect(follow(at(challenge, 'headers', 'PAYMENT-REQUIRED')).required).to.equal(true);
        expect(follow(at(follow(responses['503']!), 'headers', 'Retry-After')).required).to.equal(true);
      });

      it('carries the payment in optional header parameters', () => {
        const parameters = (post.parameters as Json[]).map(follow);
        for (const name of ['PAYMENT-SIGNATURE', 'X-PAYMENT']) {
          expect(parameters).to.deep.include({
            ...parameters.find(entry => entry.name === name),
            in: 'header',
            required: false,
          });
        }
        expect(parameters.some(parameter => parameter.required)).to.equal(false);
        expect(operation.summary).to.have.length.within(10, 80);
      });

      if (wanted.answer) {
        it('answers exactly the fields of the specification', () => {
          const schema = follow(at(post, 'responses', '200', 'content', 'application/json', 'schema'));
          expect(fieldsOf(schema, false)).to.deep.equal(wanted.answer);
        });
      }
    });
  }

  it('speaks as audio/wav with its two headers', () => {
    const ok = at(document, 'paths', '/v1/tts', 'post', 'responses', '200');
    expect(ok.content).to.deep.equal({ 'audio/wav': { schema: { type: 'string', format: 'binary' } } });
    for (const name of ['X-TTS-Voice-Id', 'X-TTS-Format'])
      expect(at(ok, 'headers', name).required).to.equal(true);
  });

  it('describes replies and their aggregate as the specification does', () => {
    const { responses, aggregate } = schemaNamed('BrandFeedback').properties as Record<string, Json>;
    const reply = follow(responses!.items as Json);
    expect(fieldsOf(reply, true)).to.deep.equal({
      text: needed,
      sentiment: { ...needed, enum: ['positive', 'neutral', 'negative'] },
    });
    expect(Object.keys(aggregate!.properties as Json)).to.deep.equal([
      'positive',
      'neutral',
      'negative',
      'summary',
    ]);
  });

  it('describes error, challenge, discovery document and index as the specification does', () => {
    expect(fieldsOf(schemaNamed('ErrorMessage'), false)).to.deep.equal({ error: needed });
    expect(fieldsOf(schemaNamed('PaymentChallenge'), false)).to.deep.equal({
      x402Version: { type: 'integer', required: true },
      error: text,
      accepts: { type: 'array', required: true },
      resource: { type: 'object' },
      extensions: { type: 'object' },
    });
    expect(fieldsOf(schemaNamed('PaymentOption'), false)).to.deep.equal({
      scheme: needed,
      network: needed,
      amount: text,
      maxAmountRequired: text,
      resource: { type: 'string', format: 'uri' },
      description: text,
      mimeType: text,
      outputSchema: { type: 'object' },
      payTo: needed,
      maxTimeoutSeconds: { type: 'integer' },
      asset: needed,
      extra: { type: 'object' },
    });
    expect(Object.keys(schemaNamed('Discovery').properties as Json)).to.deep.equal([
      'version',
      'resources',
      'instructions',
    ]);
    expect(Object.keys(schemaNamed('ServiceIndex').properties as Json)).to.deep.equal([
      'service',
      'endpoints',
      'discovery',
      'upstreamDiscovery',
      'health',
      'site',
    ]);
  });
});

describe('The contract is a document that other tools can use', () => {
  const ajv = new Ajv2020({ strict: false });
  (addFormatsModule as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addFormat('binary', true);
  ajv.addSchema(document, 'contract');

  /** All `{schema, example}` pairs in the document, with the JSON pointer of the schema. */
  function* examples(node: unknown, pointer: string): Generator<{ pointer: string; example: unknown }> {
    if (typeof node !== 'object' || node === null) return;
    if ('schema' in node && 'example' in node) yield { pointer: `${pointer}/schema`, example: node.example };
    for (const [key, value] of Object.entries(node)) {
      if (key === 'example') continue;
      yield* examples(
        value,
        `${pointer}/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`,
      );
    }
  }

  it('has examples that validate against their schemas', () => {
    const found = [...examples(document, '')];
    expect(found).to.have.length.of.at.least(14);
    for (const { pointer, example } of found) {
      const validate = ajv.compile({ $ref: `contract#${pointer}` });
      expect(validate(example), `${pointer}: ${ajv.errorsText(validate.errors)}`).to.equal(true);
    }
  });

  it('resolves every reference', () => {
    const references = [...TEXT.matchAll(/\$ref: '([^']+)'/g)].map(match => match[1]!);
    expect(references).to.have.length.above(20);
    for (const reference of references) {
      expect(reference.startsWith('#/'), reference).to.equal(true);
      expect(follow({ $ref: reference }), reference).to.be.an('object');
    }
  });

  it('asks for no credentials and names no schema like a request or a response', () => {
    expect(document.security).to.deep.equal([]);
    expect(document.components).not.to.have.property('securitySchemes');
    expect(document.components).not.to.have.property('requestBodies');
    const names = Object.keys(at(document, 'components', 'schemas'));
    expect(names.filter(name => /(Request|Response)$/.test(name))).to.deep.equal([]);
  });

  it('lets every object of an answer grow: generated clients in Go refuse a field that they do not know', () => {
    expect(closedAnswers(document)).to.deep.equal([]);
  });

  it('has no schema whose name generators give to a type of their own', () => {
    const names = Object.keys(at(document, 'components', 'schemas'));
    expect(names.filter(name => /^(Error|Response|Request|Client|Object)$/.test(name))).to.deep.equal([]);
  });

  it('declares every x402Version that is served, which is any', () => {
    expect(at(document, 'components', 'parameters', 'x402Version', 'schema')).not.to.have.property('enum');
  });

  it('is what the generated types were made from', async function () {
    this.timeout(60_000);
    const fresh = COMMENT_HEADER + astToString(await openapiTS(FILE));
    const committed = readFileSync(new URL('../../generated/openapi.d.ts', import.meta.url), 'utf8');
    expect(committed === fresh, 'generated/openapi.d.ts is stale: run `make generate`').to.equal(true);
  });
});

describe('A contract that was compiled', () => {
  let folder: string;
  let file: string;
  let compiled: URL;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'contract-'));
    file = join(folder, 'openapi.yaml');
    compiled = pathToFileURL(join(folder, 'openapi.json'));
    writeFileSync(file, TEXT);
    writeFileSync(compiled, compileContract(TEXT));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** As if the compiled contract had another title, which no YAML has. */
  function mark(): void {
    const content = JSON.parse(readFileSync(compiled, 'utf8')) as { document: { info: Json } };
    content.document.info.title = 'compiled';
    writeFileSync(compiled, JSON.stringify(content));
  }

  const titleOf = (): unknown => at(loadContract(file, compiled).document, 'info').title;

  it('is the contract', () => {
    expect(loadContract(file, compiled)).to.deep.equal(parseContract(TEXT));
    mark();
    expect(titleOf()).to.equal('compiled');
  });

  it('is not used once the contract was changed, in one character', () => {
    mark();
    writeFileSync(file, TEXT.replace("amount: '0.01'", "amount: '0.02'"));
    const { document: changed, paid: sold } = loadContract(file, compiled);
    expect(at(changed, 'info').title).to.equal(at(document, 'info').title);
    expect(sold.map(({ price }) => price.amount)).to.include('0.02');
  });

  it('is not used where it is missing or broken', () => {
    for (const text of ['', '{', 'null', '{"document":{}}']) {
      writeFileSync(compiled, text);
      expect(titleOf(), text).to.equal(at(document, 'info').title);
    }
    rmSync(compiled);
    expect(titleOf()).to.equal(at(document, 'info').title);
  });

  it('is never made of one with a fault, which is told with its line', () => {
    const broken = TEXT.replace("amount: '0.01'", 'amount: 0.01');
    expect(() => compileContract(broken)).to.throw(ContractFault, /openapi\.yaml:\d+ paths\./);
    writeFileSync(file, broken);
    expect(() => loadContract(file, compiled)).to.throw(ContractFault, /openapi\.yaml:\d+ paths\./);
  });
});

describe('A contract with a fault stops the start', () => {
  const PRICE = "x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }";
  const lineOf = (part: string): number => TEXT.slice(0, TEXT.indexOf(part)).split('\n').length;

  function faultOf(text: string): string {
    try {
      parseContract(text, 'shop.yaml');
    } catch (error) {
      expect(error, String((error as Error).stack)).to.be.instanceOf(ContractFault);
      return (error as Error).message;
    }
    throw new Error('the contract was accepted');
  }

  const prices: [string, string, string][] = [
    [
      'an unknown key',
      "{ mode: fixed, currency: USD, amount: '0.01', flow: authorization, tax: '1' }",
      "unknown key 'tax'",
    ],
    [
      'a number for a string',
      '{ mode: fixed, currency: USD, amount: 0.01, flow: authorization }',
      'in quotes, not number',
    ],
    ['no amount', '{ mode: fixed, currency: USD, flow: authorization }', 'not undefined'],
    [
      'another currency',
      "{ mode: fixed, currency: EUR, amount: '0.01', flow: authorization }",
      "currency must be 'USD'",
    ],
    [
      'another mode',
      "{ mode: dynamic, currency: USD, amount: '0.01', flow: authorization }",
      "mode must be 'fixed'",
    ],
    ['no flow', "{ mode: fixed, currency: USD, amount: '0.01' }", 'flow must be'],
    [
      'seven decimals',
      "{ mode: fixed, currency: USD, amount: '0.0100001', flow: authorization }",
      "'0.0100001'",
    ],
    ['a negative amount', "{ mode: fixed, currency: USD, amount: '-0.01', flow: authorization }", "'-0.01'"],
    ['zero', "{ mode: fixed, currency: USD, amount: '0.00', flow: authorization }", 'more than zero'],
    ['an exponent', "{ mode: fixed, currency: USD, amount: '1e-2', flow: authorization }", "'1e-2'"],
    ['a leading zero', "{ mode: fixed, currency: USD, amount: '00.01', flow: authorization }", "'00.01'"],
    [
      'a line end',
      '{ mode: fixed, currency: USD, amount: "0.01\\n", flow: authorization }',
      'decimal string',
    ],
    ['a list', '[fixed]', 'must be an object'],
    ['nothing', '~', 'must be an object'],
  ];

  for (const [name, price, message] of prices) {
    it(`names the place of a price with ${name}`, () => {
      const fault = faultOf(TEXT.replace(PRICE, `x-price: ${price}`));
      expect(fault).to.contain(message);
      expect(fault).to.contain(`shop.yaml:${lineOf(PRICE)} paths./v1/summarize.post.x-price: `);
      expect(fault.match(/shop\.yaml:/g)).to.have.length(1);
    });
  }

  it('tells all faults at once', () => {
    const broken = TEXT.replace(
      PRICE,
      "x-price: { mode: free, currency: EUR, amount: 1, flow: later, '0': x }",
    )
      .replace("amount: '0.50'", "amount: '1e-2'")
      .replace(`      x-price: { mode: fixed, currency: USD, amount: '0.025', flow: authorization }\n`, '');
    const lines = faultOf(broken).split('\n').slice(1);
    expect(lines.filter(line => line.includes('/v1/summarize.post.x-price'))).to.have.length(5);
    expect(lines.filter(line => line.includes('/brand-feedback.post.x-price'))).to.have.length(1);
    expect(
      lines.filter(line => line.includes('/v1/tts.post: answers 402 but has no x-price')),
    ).to.have.length(1);
    expect(lines).to.have.length(7);
  });

  const minimal = (operation: string): string => `openapi: 3.1.0\npaths:\n  /a:\n    ${operation}`;
  const wrong: [string, string, string][] = [
    [
      'a POST that is free',
      minimal('post: { operationId: a, responses: { 200: {} } }'),
      'shop.yaml:4 paths./a.post: is free',
    ],
    [
      'a GET that is paid',
      minimal('get: { operationId: a, x-price: {}, responses: { 402: {} } }'),
      'must be a POST',
    ],
    [
      'a price that is never asked',
      minimal("get: { operationId: a, x-price: {}, responses: { '200': {} } }"),
      'never answers 402',
    ],
    ['an operation without id', minimal('get: { responses: {} }'), 'has no operationId'],
    ['an operation that is no object', minimal('get: soon'), 'paths./a.get: must be an object'],
    ['an empty operation', minimal('get:'), 'paths./a.get: must be an object'],
    ['an empty path', 'paths:\n  /a:\n', 'paths./a: must be an object'],
    ['a path that is a text', 'paths:\n  /a: soon\n', 'paths./a: must be an object'],
    ['no paths', 'openapi: 3.1.0\n', 'paths: must be an object'],
    ['paths that are a list', 'paths: [a]\n', 'paths: must be an object'],
    [
      'responses that are a text',
      minimal("get: { operationId: a, responses: '402', x-price: 1 }"),
      'never answers 402',
    ],
    ['nothing in it', '', 'not even an object'],
    ['a text alone', 'hello', 'not even an object'],
    ['a list', '[]', 'not even an object'],
    ['broken YAML', 'paths: [', 'shop.yaml: '],
    ['a key twice', 'paths: {}\npaths: {}\n', 'shop.yaml: '],
    [
      'the same operationId twice',
      'paths:\n  /a: { get: { operationId: x, responses: {} } }\n  /b: { get: { operationId: x, responses: {} } }\n',
      'shop.yaml:3 paths./b: repeats the operationId x',
    ],
  ];

  for (const [name, text, message] of wrong) {
    it(`says what is wrong with ${name}`, () => expect(faultOf(text)).to.contain(message));
  }

  it('refuses a requestBody that is a reference, has no schema of an object or no example', () => {
    const place = 'paths./v1/summarize.post.requestBody: ';
    const bodies: [string, string][] = [
      ["{ $ref: '#/components/requestBodies/A' }", 'must be written inline'],
      [
        "{ content: { application/json: { schema: { $ref: '#/components/schemas/ErrorMessage' }, example: {} } } }",
        'inline',
      ],
      ['{ content: { application/json: { schema: soon, example: {} } } }', 'inline'],
      ['{ content: { application/json: { schema: { type: object, properties: {} } } } }', 'needs an example'],
      [
        '{ content: { application/json: { schema: { type: object, properties: {} }, example: soon } } }',
        'needs an example',
      ],
    ];
    for (const [body, message] of bodies) {
      const operation = `post: { operationId: a, ${PRICE}, requestBody: ${body}, responses: { 402: {} } }`;
      const fault = faultOf(minimal(operation));
      expect(fault).to.contain(`${place.replace('/v1/summarize', '/a')}`);
      expect(fault).to.contain(message);
    }
  });
});
