import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import { loadContract } from '../../src/contract/parse-contract.js';
import { toAtomic } from '../../src/price/amount.js';

const FILE = new URL('../../../openapi.yaml', import.meta.url);
const { document, paid, free } = loadContract(FILE);

/** One field of the specification: its type, whether it is required, and its constraints. */
type Field = { type: unknown; required?: true } & Json;
type Paid = {
  path: string;
  tag: string;
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

/** From sections 1, 2.1 to 2.10, 4.2 and 8 of the specification. */
const PAID: Record<string, Paid> = {
  summarize: {
    path: '/v1/summarize',
    tag: 'Text',
    flow: 'authorization',
    request: { text: { ...needed, minLength: 1, maxLength: 100_000 } },
    // `method` was added to the specification's fields.
    answer: { summary: needed, method: text, mock: { type: 'boolean' } },
  },
  solTokenBrief: {
    path: '/v1/sol-token-brief',
    tag: 'Solana',
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
      // Fields added later, all optional.
      ageSeconds: { type: 'integer' },
      quotes: { type: 'array' },
      spread: figure,
      change24hPercent: figure,
      topHoldersPercent: figure,
      jupiterVerified: { type: ['boolean', 'null'] },
      firstPoolAt: { type: ['string', 'null'], format: 'date-time' },
      findings: { type: 'array' },
      warnings: { type: 'array' },
    },
  },
  solMintInfo: {
    path: '/v1/sol-mint-info',
    tag: 'Solana',
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
      slot: { type: 'integer' },
      sources: { type: 'array' },
      // Fields added later, all optional.
      extensions: { type: 'object' },
      metadata: { type: ['object', 'null'] },
      authorities: { type: 'array' },
      largestAccounts: { type: ['object', 'null'] },
      creation: { type: ['object', 'null'] },
      findings: { type: 'array' },
      warnings: { type: 'array' },
      brief: text,
    },
  },
  brandFeedback: {
    path: '/brand-feedback',
    tag: 'Humans',
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
    flow: 'authorization',
    request: { text: { ...needed, minLength: 1, maxLength: 2500 }, voice_id: { ...text, maxLength: 100 } },
  },
};

/** From section 4.3 of the specification, with the paths that it names without describing a body. */
const FREE: Record<string, string> = {
  getAnswer: '/answers/{key}',
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

/** The fields of an object schema, reduced to what the specification defines. */
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
  it('has the free operations', () => {
    expect(Object.fromEntries(free.map(({ id, path }) => [id, path]))).to.include(FREE);
    expect((document.info as Json).version).to.match(/^1\.\d+\.\d+$/);
    expect(document.openapi).to.equal('3.1.0');
  });

  // frozen.test.ts reports operations that are no longer sold.
  for (const operation of paid) {
    const { id } = operation;
    const wanted = PAID[id];
    if (!wanted) continue;
    describe(id, () => {
      const post = at(document, 'paths', wanted.path, 'post');

      it('has the path, tag and flow of the specification, and a fixed price', () => {
        const { path, tags, price, flow } = operation;
        expect({ path, tags, flow }).to.deep.equal({
          path: wanted.path,
          tags: [wanted.tag],
          flow: wanted.flow,
        });
        expect(post.tags).to.deep.equal([wanted.tag]);
        const { amount } = price;
        const shown = `${amount} USDC`;
        expect(price).to.deep.equal({
          mode: 'fixed',
          currency: 'USD',
          amount,
          atomic: toAtomic(amount),
          shown,
        });
        expect(post['x-price']).to.deep.equal({ mode: 'fixed', currency: 'USD', amount, flow: wanted.flow });
      });

      it('takes exactly the fields of the specification, with a length limit for each string', () => {
        expect(fieldsOf(operation.request!.schema, true)).to.deep.equal(wanted.request);
        expect(operation.request!.schema.type).to.equal('object');
        expect(operation.request!.schema.additionalProperties).to.equal(wanted.closed ? false : undefined);
        expect(at(post, 'requestBody').required).to.equal(true);
        expect(at(post, 'requestBody', 'content')).to.have.all.keys('application/json');
      });

      it('answers only with 200, 400, 402, 502 or 503, with the bodies and headers of the specification', () => {
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
        expect(follow(at(challenge, 'headers', 'PAYMENT-REQUIRED'))).to.have.property('schema');
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
        it('answers with exactly the fields of the specification and those added since', () => {
          const schema = follow(at(post, 'responses', '200', 'content', 'application/json', 'schema'));
          expect(fieldsOf(schema, false)).to.deep.equal(wanted.answer);
        });
      }
    });
  }

  it('returns speech as audio/wav with its two headers', () => {
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
      sentimentFrom: { ...text, enum: ['model', 'unknown'] },
    });
    expect(Object.keys(aggregate!.properties as Json)).to.deep.equal([
      'positive',
      'neutral',
      'negative',
      'opinionsKnown',
      'summary',
    ]);
  });

  it('describes errors, the challenge, the discovery document and the index as the specification does', () => {
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
