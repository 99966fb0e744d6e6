import { expect } from 'chai';
import { ContractFault, type PricedOperation } from '../../src/contract/contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';

const PATH = '/v1/items/{id}/of/{list}';

/** A contract that sells one operation by `upstream` (one line of YAML). */
function contractOf(upstream: string, { flow = 'authorization', method = 'get', body = '' } = {}): string {
  return `openapi: 3.1.0
info: { title: A shop, version: 1.0.0 }
paths:
  ${PATH}:
    ${method}:
      operationId: getItem
      tags: [Items]
      summary: Get an item
      x-price: { mode: fixed, currency: USD, amount: '0.01', flow: ${flow} }
      x-upstream: ${upstream}
      parameters:
        - { name: id, in: path, required: true, schema: { type: string }, example: a }
        - { name: list, in: path, required: true, schema: { type: string }, example: b }
        - { name: lang, in: query, schema: { type: string } }
      ${body}
      responses:
        '200': { description: An item., content: { application/json: { schema: { type: object } } } }
        '400': { description: Invalid. }
        '402': { description: Pay. }
        '502': { description: Failed. }
        '503': { description: Unavailable. }
`;
}

const BODY = `requestBody: { required: true, content: { application/json: { schema: { type: object, properties: { a: { type: string } } }, example: { a: b } } } }`;
const URL_OK = 'https://api.example.com/{list}/{id}';

function faultsOf(upstream: string, options = {}): string[] {
  try {
    parseContract(contractOf(upstream, options), 'shop.yaml');
  } catch (error) {
    expect(error, String((error as Error).stack)).to.be.instanceOf(ContractFault);
    return (error as Error).message.split('\n').slice(1);
  }
  return [];
}

function read(upstream: string, options = {}): PricedOperation['upstream'] {
  return parseContract(contractOf(upstream, options)).paid[0]?.upstream;
}

describe('x-upstream in the contract', () => {
  it('needs no more than a URL', () => {
    expect(read(`{ url: '${URL_OK}' }`)).to.deep.equal({
      url: URL_OK,
      method: 'GET',
      headers: {},
      timeoutMs: 15_000,
      maxMembers: 20_000,
      check: 'schema',
    });
    expect(read(`{ url: '${URL_OK}' }`, { flow: 'upfront', method: 'post', body: BODY })).to.deep.equal({
      url: URL_OK,
      method: 'POST',
      headers: {},
      timeoutMs: 60_000,
      maxMembers: 20_000,
      check: 'schema',
    });
  });

  it('may have a method, headers and a time limit', () => {
    const upstream = `{ url: '\${API_URL}/{list}?id={id}&key=\${KEY}', method: POST, headers: { X-Api-Key: '\${KEY}', Accept: 'a/b; q={1}' }, timeoutMs: 19000 }`;
    expect(read(upstream)).to.deep.equal({
      url: '${API_URL}/{list}?id={id}&key=${KEY}',
      method: 'POST',
      headers: { 'x-api-key': '${KEY}', accept: 'a/b; q={1}' },
      timeoutMs: 19_000,
      maxMembers: 20_000,
      check: 'schema',
    });
    expect(read(`{ url: '${URL_OK}', timeoutMs: 600000 }`, { flow: 'upfront' })?.timeoutMs).to.equal(600_000);
  });

  const urls: [string, string][] = [
    ['ftp://api.example.com/{list}/{id}', 'must be an http(s) URL'],
    ['api.example.com/{list}/{id}', 'must be an http(s) URL'],
    ['/{list}/{id}', 'must be an http(s) URL'],
    ['wss://api.example.com/{list}/{id}', "is a websocket, which can't be sold as one call"],
    ['https:///{list}/{id}', 'must be an http(s) URL'],
    ['https://{list}.example.com/{id}', 'must not have {list} in its host'],
    ['https://api.example.com{list}/{id}', 'must not have {list} in its host'],
    ['${API_URL}{list}/{id}', 'must continue with / or ? after ${API_URL}'],
    ['${API_URL}.evil.example/{list}/{id}', 'must continue with / or ? after ${API_URL}'],
    ['https://${HOST}/{list}/{id}', 'may have ${HOST} only at its very beginning or in its query'],
    ['https://api.example.com/${KEY}/{list}/{id}', 'may have ${KEY} only at its very beginning'],
    ['https://user:pass@api.example.com/{list}/{id}', 'must not contain a user name or a password'],
    ['https://api.example.com/{list}/{id}#top', 'must have no fragment'],
    ['https://api.example.com/../{list}/{id}', 'must be written as a URL is sent'],
    ['https://api.example.com/ä/{list}/{id}', 'must be written as a URL is sent'],
    [
      'https://api.example.com/{list}/{item}/{id}',
      'has {item}, which is not a path parameter of the operation',
    ],
    ['https://api.example.com/{list}/{lang}/{id}', 'has {lang}, which is not a path parameter'],
    ['https://api.example.com/{id}', 'does not use the path parameter {list}'],
    ['https://api.example.com/{list}/{id}/{', "has a '{' or '}'"],
    ['https://api.example.com/{list}/{id}?lang=en', 'has the query parameter lang'],
    ['https://api.example.com/{list}/{id}?key=${}', '${} is not the name of an environment variable'],
    ['https://api.example.com/{list}/{id}?key=${a-b}', '${a-b} is not the name of an environment variable'],
  ];
  for (const [url, message] of urls) {
    it(`refuses the url ${url}`, () => {
      const faults = faultsOf(`{ url: '${url}' }`);
      expect(faults.join('\n')).to.contain(message);
      expect(faults).to.have.length(1);
      expect(faults[0]).to.contain(`shop.yaml:10 paths.${PATH}.get.x-upstream.url: `);
    });
  }

  const others: [string, string, string, object?][] = [
    ['an unknown key', `{ url: '${URL_OK}', retries: 3 }`, "x-upstream: unknown key 'retries'"],
    ['a text', `'${URL_OK}'`, 'x-upstream: must be an object'],
    ['no url', '{}', 'x-upstream.url: must be a string'],
    [
      'an unknown check',
      `{ url: '${URL_OK}', check: body }`,
      'x-upstream.check: must be one of schema, type, none',
    ],
    ['an unknown method', `{ url: '${URL_OK}', method: TRACE }`, 'x-upstream.method: must be one of GET,'],
    ['a method in lower case', `{ url: '${URL_OK}', method: get }`, 'x-upstream.method: must be one of GET,'],
    [
      'a GET for calls with a body',
      `{ url: '${URL_OK}', method: GET }`,
      'x-upstream.method: must not be GET',
      { method: 'post', body: BODY },
    ],
    [
      'headers that are a list',
      `{ url: '${URL_OK}', headers: [a] }`,
      'x-upstream.headers: must be an object',
    ],
    [
      'a header that is a number',
      `{ url: '${URL_OK}', headers: { a: 1 } }`,
      'x-upstream.headers.a: must be a string',
    ],
    [
      'a name with a space',
      `{ url: '${URL_OK}', headers: { 'a b': c } }`,
      'headers.a b: is not a valid header name',
    ],
    ['a line end', `{ url: '${URL_OK}', headers: { a: "b\\nc" } }`, 'headers.a: has characters'],
    ['a header twice', `{ url: '${URL_OK}', headers: { a: b, A: c } }`, 'headers.A: is present twice'],
    ['the host', `{ url: '${URL_OK}', headers: { Host: b } }`, 'headers.Host: is set by the server itself'],
    ['an open variable', `{ url: '${URL_OK}', headers: { a: '\${KEY' } }`, "headers.a: has '${' without '}'"],
    [
      'a variable without name',
      `{ url: '${URL_OK}', headers: { a: '\${}' } }`,
      'headers.a: ${} is not the name',
    ],
    ['a time that is a text', `{ url: '${URL_OK}', timeoutMs: '5' }`, 'timeoutMs: must be a whole number'],
    [
      'an invalid number of members',
      `{ url: '${URL_OK}', maxMembers: 0 }`,
      'maxMembers: must be a whole number of members from 1 to 1000000',
    ],
    ['no time at all', `{ url: '${URL_OK}', timeoutMs: 0 }`, 'timeoutMs: must be a whole number'],
    [
      'more time than the work of a call has',
      `{ url: '${URL_OK}', timeoutMs: 19001 }`,
      'timeoutMs: must be a whole number of milliseconds from 100 to 19000, because the work of a call may take 20 s',
    ],
    [
      'more than ten minutes for an order',
      `{ url: '${URL_OK}', timeoutMs: 600001 }`,
      'timeoutMs: must be a whole number of milliseconds from 100 to 600000',
      { flow: 'upfront' },
    ],
  ];
  for (const [name, upstream, message, options] of others) {
    it(`refuses ${name}`, () => {
      const faults = faultsOf(upstream, options);
      expect(faults.join('\n')).to.contain(message);
      expect(faults).to.have.length(1);
      expect(faults[0]).to.contain('shop.yaml:10 ');
    });
  }

  it('reports all errors at once', () => {
    const upstream = `{ url: 'ftp://x', method: TRACE, headers: { Host: b, 'a b': '\${' }, timeoutMs: 1, more: 1, most: 2 }`;
    expect(faultsOf(upstream)).to.have.length(8);
  });

  it('is refused for an operation that is not sold', () => {
    const free = `paths: { /a: { get: { operationId: a, x-upstream: { url: 'https://a.example' }, responses: { '200': {} } } } }`;
    expect(() => parseContract(free, 'shop.yaml')).to.throw(
      ContractFault,
      'has an x-upstream but neither a price nor x-free-proxy',
    );
  });
});
