import { expect } from 'chai';
import type { Parameter, PricedOperation, RequestBody } from '../../src/contract/contract.js';
import { exampleArguments, inputSchemaOf, requestOf } from '../../src/mcp/tool-arguments.js';
import { fixed } from '../../src/price/fixed.js';

const parameter = (name: string, where: Parameter['in'], more: Partial<Parameter> = {}): Parameter => ({
  name,
  in: where,
  required: where === 'path',
  schema: { type: 'string' },
  plain: { type: 'string' },
  list: false,
  example: 'x',
  ...more,
});

const operation = (more: Partial<PricedOperation>): PricedOperation => ({
  id: 'quote',
  method: 'GET',
  path: '/v1/quotes/{symbol}',
  examplePath: '/v1/quotes/SOL',
  tags: [],
  summary: 'A quote',
  price: { mode: 'fixed', currency: 'USD', amount: '0.01', atomic: 10_000n, shown: '0.01 USDC' },
  pricing: fixed.read({ amount: '0.01' }),
  flow: 'authorization',
  parameters: [],
  answers: [{ status: 200, mimeType: 'application/json', kind: 'json' }],
  ...more,
});

const BODY: RequestBody = {
  mimeType: 'application/json',
  kind: 'json',
  object: true,
  objectArguments: true,
  others: [],
  required: true,
  schema: { type: 'object' },
  plain: { type: 'object', properties: { note: { type: 'string' } } },
  example: { note: 'hello' },
  maxBytes: 1024,
};

describe('the arguments of a tool', () => {
  it('are the body, if an operation has no parameters', () => {
    const summarize = operation({ method: 'POST', path: '/v1/summarize', request: BODY });
    expect(inputSchemaOf(summarize)).to.deep.equal(BODY.plain);
    expect(exampleArguments(summarize)).to.deep.equal({ note: 'hello' });
    expect(requestOf(summarize, { note: 'a' })).to.deep.equal({
      path: '/v1/summarize',
      query: '',
      body: { form: BODY, type: 'application/json', value: { note: 'a' } },
    });
  });

  it('are the parameters by name, and produce the same request as the call over HTTP', () => {
    const quote = operation({
      parameters: [
        parameter('symbol', 'path'),
        parameter('days', 'query'),
        parameter('tag', 'query', { list: true }),
      ],
    });
    expect(inputSchemaOf(quote)).to.deep.include({ required: ['symbol'] });
    const request = requestOf(quote, { symbol: 'S/L é', days: 7, tag: ['a', 'b&c'] });
    expect(request).to.deep.equal({
      path: '/v1/quotes/S%2FL%20%C3%A9',
      query: 'days=7&tag=a&tag=b%26c',
      body: undefined,
    });
  });

  it('distinguish two parameters of the same name, and a parameter from a body of the same name', () => {
    const odd = operation({
      method: 'POST',
      path: '/v1/{id}',
      parameters: [parameter('id', 'path'), parameter('id', 'query'), parameter('body', 'query')],
      request: BODY,
    });
    expect(inputSchemaOf(odd)).to.deep.include({ required: ['id', 'body'] });
    const sent = { id: 'one', query_id: 'two', query_body: 'three', body: { note: 'four' } };
    expect(requestOf(odd, sent)).to.deep.equal({
      path: '/v1/one',
      query: 'id=two&body=three',
      body: { form: BODY, type: 'application/json', value: { note: 'four' } },
    });
  });

  it("are encoded in the contract's style: lists with separators, objects with brackets", () => {
    const styled = operation({
      path: '/v1/quotes',
      parameters: [
        parameter('days', 'query', { list: true, style: { kind: 'separated', by: ',', object: false } }),
        parameter('size', 'query', { style: { kind: 'members', lists: { w: false, h: false } } }),
        parameter('made', 'query', { style: { kind: 'brackets', lists: { gte: false } } }),
        parameter('expand', 'query', { list: true, style: { kind: 'brackets', lists: {} } }),
        parameter('X-Region', 'header', { list: true }),
      ],
    });
    const sent = {
      days: [1, 2],
      size: { w: 1, h: 2 },
      made: { gte: 7 },
      expand: ['a'],
      'X-Region': ['eu', 'us'],
    };
    expect(requestOf(styled, sent)).to.deep.equal({
      path: '/v1/quotes',
      query: 'days=1%2C2&w=1&h=2&made%5Bgte%5D=7&expand%5B%5D=a',
      body: undefined,
      headers: { 'x-region': 'eu, us' },
    });
    expect(requestOf(styled, { days: ['1,2'] })).to.equal(
      "days must not contain ',', which separates its parts in a query",
    );
    expect(requestOf(styled, { made: { gte: { deeper: 1 } } })).to.match(
      /^made must contain only text, numbers/,
    );
  });

  it('are the fields of a form, which is encoded as over HTTP', () => {
    const form: RequestBody = {
      ...BODY,
      kind: 'form',
      mimeType: 'application/x-www-form-urlencoded',
      form: [{ name: 'sizes', list: true, style: { kind: 'separated', by: ',', object: false } }],
    };
    const order = operation({ method: 'POST', path: '/v1/orders', request: form });
    expect(inputSchemaOf(order)).to.deep.equal(BODY.plain);
    const value = 'note=a%20%26%20b&sizes=1,2&tag=x&tag=y';
    expect(requestOf(order, { note: 'a & b', sizes: [1, 2], tag: ['x', 'y'] })).to.deep.equal({
      path: '/v1/orders',
      query: '',
      body: { form, type: form.mimeType, value },
    });
    expect(requestOf(order, { note: { deep: 1 } })).to.match(/^note must be text/);
    expect(requestOf(order, { note: '\ud800' })).to.match(/^note must be text/);
    expect(requestOf(order, { '\ud800': 'a' })).to.match(/^field names must be valid Unicode strings/);
  });

  it('are rejected by name if no HTTP request could contain them', () => {
    const quote = operation({ parameters: [parameter('symbol', 'path'), parameter('days', 'query')] });
    expect(requestOf(quote, {})).to.equal('symbol is missing');
    expect(requestOf(quote, { symbol: '' })).to.equal('symbol is missing');
    for (const value of [{}, null, [[]], '\ud800'])
      expect(requestOf(quote, { symbol: 'SOL', days: value }), JSON.stringify(value)).to.match(
        /^days must be/,
      );
  });
});
