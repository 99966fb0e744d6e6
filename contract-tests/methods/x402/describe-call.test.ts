import { expect } from 'chai';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { PricedOperation } from '../../../src/contract/contract.js';
import { parseContract } from '../../../src/contract/parse-contract.js';
import type { Json } from '../../../src/contract/json.js';
import { MAX_HEADER_BYTES, OTHER_HEADER_BYTES } from '../../../src/methods/header-bytes.js';
import { renderChallenge } from '../../../src/methods/x402/challenge.js';
import { headerAdvice } from '../../../src/methods/x402/header-room.js';
import { bazaarOf, callShape, outputSchemaOf, typeText } from '../../../src/methods/x402/describe-call.js';
import { discoveryOf, indexOf, servedContract } from '../../../src/documents/discovery.js';
import { ANY_SHOP } from '../../support/any-shop.js';
import { operationIn } from '../../support/sold.js';
import { sellingOf } from '../../support/selling.js';

const contract = parseContract(ANY_SHOP);
const operation = (id: string): PricedOperation => operationIn(contract, id);
const TERMS = {
  network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  v1Network: 'solana',
  asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  payTo: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4',
  publicUrl: `https://${'agents-pay-here.'.repeat(3)}a.org`,
};
const LIVE = { feePayer: TERMS.payTo, recentBlockhash: TERMS.payTo };
const challenge = (sold: PricedOperation, version: 1 | 2 = 2): Json & { extensions: Record<string, Json> } =>
  JSON.parse(renderChallenge(sold, TERMS, LIVE, version).body.toString()) as never;

describe('The description of a call', () => {
  it('names method, path, query and body, with references resolved', () => {
    expect(contract.paid.map(callShape)).to.deep.equal([
      'GET /quotes/{symbol} path {"symbol": string} query {"days"?: integer, "kind"?: "spot" | "future", "tag"?: string[], ' +
        '"exact"?: boolean, "limit"?: integer | "all"}',
      'GET /quotes/latest',
      'POST /trees/{id}.json path {"id": integer} {"name": string, "kids"?: any[]}',
      'POST /print {"width": integer, "colour"?: "red" | "blue" | string}',
      'PUT /woods/{id} path {"id": integer} {"name": string, "kids"?: any[]}',
      'DELETE /woods/{id} path {"id": integer} query {"roots"?: boolean, "axe"?: integer[], "comma"?: integer[], "space"?: string[], ' +
        '"pipe"?: boolean[] | null, "pairs"?: object, "size"?: object, "deep"?: object | integer, "free"?: object, "expand"?: string[]} ' +
        'header {"X-Region"?: "eu" | "us", "X-Axes"?: integer[]}',
      'PATCH /woods/{id} path {"id": integer} {"twigs"?: integer}',
      'DELETE /woods {"ids": integer[]}',
      'POST /saplings form {"kind": string, "count"?: integer, "tags"?: string[], "sizes"?: number[], "place"?: object}',
    ]);
    const { instructions } = discoveryOf(contract.paid, sellingOf(TERMS));
    expect(instructions).to.contain('listed below').and.to.contain('The answer is text/plain.');
    expect(typeText({ type: ['string', 'null'] })).to.equal('string | null');
    expect(typeText({ enum: Array.from({ length: 50 }, (_, value) => value) })).to.equal('any');
    expect(typeText({ type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } })).to.equal(
      '(string | integer)[]',
    );
  });

  it('is a bazaar extension that its own schema accepts, for every kind of operation', () => {
    for (const sold of contract.paid)
      for (const whole of [true, false]) {
        const { info, schema } = bazaarOf(sold, whole) as { info: Json; schema: Json };
        const validate = new Ajv2020({ strict: false }).compile(schema);
        expect(validate(info), `${sold.id}: ${JSON.stringify(validate.errors)}`).to.equal(true);
      }
    expect(bazaarOf(operation('quote'), true)).to.deep.include({
      routeTemplate: '/quotes/:symbol',
      info: {
        input: {
          type: 'http',
          method: 'GET',
          queryParams: { days: 7, kind: 'spot' },
          pathParams: { symbol: 'SOL' },
        },
        output: { type: 'json' },
      },
    });
    expect(bazaarOf(operation('latest'), true).info).to.have.deep.property('output', {
      type: 'text',
      format: 'text/plain',
    });
    expect(bazaarOf(operation('print'), true).info).to.have.deep.property('output', {
      type: 'binary',
      format: 'image/png',
    });
    expect(bazaarOf(operation('growTree'), true).info).to.have.deep.nested.property('input.body', {
      name: 'root',
      kids: [{ name: 'leaf' }],
    });
  });

  it('has a query schema for every GET, because crawlers expect it, but an example only of parts that are sent', () => {
    const { info, schema } = bazaarOf(operation('latest'), true) as { info: Json; schema: Json };
    expect(schema).to.have.deep.nested.property('properties.input.properties.queryParams', {
      type: 'object',
      properties: {},
    });
    expect(info).not.to.have.nested.property('input.queryParams');
  });

  it('says in v1 where each part of the request is sent, and what is answered', () => {
    expect(outputSchemaOf(operation('quote'), true)).to.have.deep.nested.property('input.pathParams', {
      symbol: { type: 'string', description: undefined, required: true },
    });
    expect(outputSchemaOf(operation('quote'), true)).to.have.deep.property('output', { price: 1.25 });
    expect(outputSchemaOf(operation('print'), true)).to.have.deep.property('output', {
      type: 'binary',
      format: 'image/png',
    });
    expect(outputSchemaOf(operation('print'), true)).to.have.nested.property(
      'input.bodyFields.colour.type',
      '"red" | "blue" | string',
    );
  });

  it('describes a body for PUT, PATCH and others that have one, and the query for a DELETE without a body', () => {
    const inputs = ['replaceTree', 'pruneTree', 'recall', 'fellTree'].map(id => {
      const { info, schema } = bazaarOf(operation(id), true) as { info: Json; schema: Json };
      return [info.input, (schema.properties as { input: Json }).input.required];
    });
    const withBody = ['type', 'method', 'bodyType', 'body'];
    const trees = { pathParams: { id: 7 } };
    expect(inputs).to.deep.equal([
      [{ type: 'http', method: 'PUT', bodyType: 'json', body: { name: 'root' }, ...trees }, withBody],
      [{ type: 'http', method: 'PATCH', bodyType: 'json', body: { twigs: 2 }, ...trees }, withBody],
      [{ type: 'http', method: 'DELETE', bodyType: 'json', body: { ids: [1] } }, withBody],
      [
        {
          type: 'http',
          method: 'DELETE',
          queryParams: { roots: false },
          ...trees,
          headers: { 'X-Region': 'eu' },
        },
        ['type', 'method'],
      ],
    ]);
  });

  it('is reduced part by part if it does not fit into the header', () => {
    const tree = operation('growTree');
    const fields = Object.fromEntries(
      Array.from({ length: 60 }, (_, number) => [`field${number}`, { type: 'string', maxLength: number }]),
    );
    const plain = { ...tree.request!.plain, properties: fields };
    const wide = { ...tree, request: { ...tree.request!, plain } };
    const { bazaar } = challenge(wide).extensions as { bazaar: { info: Json; schema: Json } };
    expect(bazaar.info, 'the example stays').to.have.deep.nested.property(
      'input.body',
      tree.request!.example,
    );
    expect(bazaar.schema).to.have.deep.nested.property('properties.input.properties.body', {
      type: 'object',
    });
    for (const version of [1, 2] as const)
      expect(renderChallenge(wide, TERMS, LIVE, version).body.toString('base64')).to.have.length.at.most(
        MAX_HEADER_BYTES,
      );
    const huge = { ...wide, request: { ...wide.request, example: { name: 'a'.repeat(4_000) } } };
    expect(challenge(huge).extensions).to.have.all.keys('payment-identifier');
    const refusal = renderChallenge(wide, TERMS, LIVE, 2, 'x'.repeat(160));
    expect(refusal.headers['PAYMENT-REQUIRED']).to.have.length.at.most(MAX_HEADER_BYTES);
  });
});

describe('A challenge with little room in its header', () => {
  const tree = operation('growTree');
  const long = (characters: number): PricedOperation => ({ ...tree, summary: 's'.repeat(characters) });
  const termsOf = { ...TERMS, service: { name: 'Trees', iconUrl: 'https://trees.example/icon.png' } };
  const headerOf = (of: PricedOperation, error?: string): string =>
    renderChallenge({ ...of, tags: ['Trees'] }, termsOf, LIVE, 2, error).headers['PAYMENT-REQUIRED'] ?? '';
  const read = (of: PricedOperation): { accepts: [Json]; resource: Json; extensions: Json } =>
    JSON.parse(Buffer.from(headerOf(of), 'base64').toString('utf8')) as ReturnType<typeof read>;

  it('leaves out first the schemas, then what only v1 reads, the examples and the tags, but never the price', () => {
    const seen: string[] = [];
    for (let characters = 10; characters < 1_700; characters += 10) {
      const { accepts, resource, extensions } = read(long(characters));
      expect(accepts[0]).to.include({ amount: tree.price.atomic.toString(), payTo: TERMS.payTo });
      const has = [
        'maxAmountRequired' in accepts[0],
        'resource' in accepts[0],
        'bazaar' in extensions,
        'tags' in resource,
      ];
      if (seen.at(-1) !== has.join()) seen.push(has.join());
    }
    expect(seen).to.deep.equal([
      'true,true,true,true',
      'false,false,true,true',
      'false,false,false,true',
      'false,false,false,false',
    ]);
  });

  it('leaves room for all other headers of the answer, even if it contains a long error', () => {
    for (const characters of [10, 300, 600, 900, 1_200])
      for (const error of [undefined, 'x'.repeat(2_000)])
        expect(headerOf(long(characters), error).length + OTHER_HEADER_BYTES).to.be.at.most(MAX_HEADER_BYTES);
  });

  it('is reported with the field to shorten, if it leaves parts out', () => {
    expect(headerAdvice({ paid: [tree] }, termsOf)).to.deep.equal([]);
    expect(headerAdvice({ paid: [tree, long(900)] }, termsOf)).to.have.length(1);
    expect(headerAdvice({ paid: [long(900)] }, termsOf)[0]).to.match(
      /the 402 of growTree leaves out v1 extras.*Shorten its summary \(1800 bytes\)/,
    );
  });
});

describe('The documents of any contract', () => {
  it('list its operations, discovery documents and health checks, with URLs that can be called', () => {
    const trees = contract.free.find(({ id }) => id === 'treesForSale')!;
    expect(trees.discovery).to.deep.equal(['latest', 'growTree', 'print']);
    expect(contract.free.find(({ id }) => id === 'marketsHealth')!.health).to.deep.equal(['quote']);
    expect(discoveryOf(contract.paid, sellingOf(TERMS)).resources).to.deep.equal(
      ['/quotes/SOL', '/quotes/latest', '/trees/7.json', '/print', '/woods/7', '/woods', '/saplings'].map(
        path => TERMS.publicUrl + path,
      ),
    );
    expect(indexOf(contract, TERMS.publicUrl)).to.deep.include({
      endpoints: {
        'GET /quotes/{symbol}': '0.002 USDC',
        'GET /quotes/latest': '0.002 USDC',
        'POST /trees/{id}.json': '1.5 USDC',
        'POST /print': '1.5 USDC',
        'PUT /woods/{id}': '0.002 USDC',
        'DELETE /woods/{id}': '0.002 USDC',
        'PATCH /woods/{id}': '0.002 USDC',
        'DELETE /woods': '0.002 USDC',
        'POST /saplings': '0.002 USDC',
      },
      discovery: ['/.well-known/x402', '/openapi.json'],
      upstreamDiscovery: ['/trees/.well-known/x402'],
      health: ['/markets/health', '/health'],
    });
  });

  it('never reveal which service produces the answer', () => {
    const upstream =
      "x-upstream: { url: 'https://secret.example/{symbol}', headers: { key: '${SECRET}' } }\n      parameters:\n        - { name: days";
    const text = ANY_SHOP.replace('parameters:\n        - { name: days', upstream);
    expect(text).to.include('secret.example');
    const served = JSON.stringify(servedContract(parseContract(text), sellingOf(TERMS), TERMS.publicUrl));
    expect(served).not.to.match(/secret|x-upstream/i);
  });
});
