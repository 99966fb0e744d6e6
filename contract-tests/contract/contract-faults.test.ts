import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { ContractFault } from '../../src/contract/contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';

/** A contract that does not change with this repository's operations. */
const FILE = new URL('../../../contract-tests/released/openapi-1.0.0.yaml', import.meta.url);
const TEXT = readFileSync(FILE, 'utf8');

describe('A contract with an error prevents startup, and the message', () => {
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
    it(`says where an invalid price is: ${name}`, () => {
      const fault = faultOf(TEXT.replace(PRICE, `x-price: ${price}`));
      expect(fault).to.contain(message);
      expect(fault).to.contain(`shop.yaml:${lineOf(PRICE)} paths./v1/summarize.post.x-price: `);
      expect(fault.match(/shop\.yaml:/g)).to.have.length(1);
    });
  }

  const taken: [string, string, RegExp][] = [
    ['/v1/summarize:', '/mcp:', /paths\.\/mcp: the server itself answers MCP clients at this path/],
    ['operationId: summarize', 'operationId: pick_up', /pick_up is an MCP tool of the server itself/],
  ];
  for (const [theirs, ours, message] of taken)
    it(`says that ${ours} belongs to the server itself, so that the operation would never be called`, () => {
      expect(faultOf(TEXT.replace(theirs, ours)))
        .to.match(message)
        .and.match(/choose another/);
    });

  it('lists all errors at once', () => {
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
  const sold = (more: string): string =>
    `{ operationId: a, x-price: { mode: fixed, currency: USD, amount: '1', flow: authorization }, ${more}, responses: { 200: { content: { a/b: {} } } } }`;
  const wrong: [string, string, string][] = [
    [
      'a POST that is free',
      minimal('post: { operationId: a, responses: { 200: {} } }'),
      'shop.yaml:4 paths./a.post: is free',
    ],
    [
      'a TRACE that is paid',
      minimal('trace: { operationId: a, x-price: {}, responses: { 402: {} } }'),
      'is paid, so its method must be one of GET, POST, PUT, PATCH, DELETE',
    ],
    [
      'a price with nothing to sell',
      minimal('get: { operationId: a, x-price: {} }'),
      "paths./a.get.responses: must declare 200, which is what is sold: '200': { content: ",
    ],
    [
      'an operation without an id',
      minimal('get: { responses: {} }'),
      'has no operationId, which buyers and handlers use as its name: operationId: getA',
    ],
    ['an operation that is not an object', minimal('get: soon'), 'paths./a.get: must be an object'],
    [
      'a cookie',
      minimal(`get: ${sold('parameters: [{ name: a, in: cookie, schema: { type: string } }]')}`),
      'paths./a.get.parameters.0: a is a cookie, which buyers do not have: use in: query or in: header',
    ],
    [
      'a header of the connection',
      minimal(
        `get: ${sold('parameters: [{ name: Transfer-Encoding, in: header, schema: { type: string } }]')}`,
      ),
      'Transfer-Encoding is a header that buyers cannot choose, so it cannot be a parameter',
    ],
    [
      'a header that is both declared and sent',
      minimal(
        `get: ${sold("x-upstream: { url: 'https://a.example', headers: { x-a: b } }, parameters: [{ name: X-A, in: header, schema: { type: string } }]")}`,
      ),
      'paths./a.get.x-upstream.headers.x-a: is a header that the operation declares as its own',
    ],
    ['an empty operation', minimal('get:'), 'paths./a.get: must be an object'],
    ['an empty path', 'paths:\n  /a:\n', 'paths./a: must be an object'],
    ['a path that is a text', 'paths:\n  /a: soon\n', 'paths./a: must be an object'],
    ['no paths', 'openapi: 3.1.0\n', 'paths: must be an object'],
    ['paths that are a list', 'paths: [a]\n', 'paths: must be an object'],
    [
      'responses that are a text',
      minimal("get: { operationId: a, responses: '402', x-price: 1 }"),
      'paths./a.get.responses: must be an object',
    ],
    ['nothing in it', '', 'an object that begins with'],
    ['a text alone', 'hello', 'an object that begins with'],
    ['a list', '[]', 'an object that begins with'],
    ['broken YAML', 'paths: [', 'shop.yaml: '],
    ['a key twice', 'paths: {}\npaths: {}\n', 'shop.yaml: '],
    [
      'the same operationId twice',
      'paths:\n  /a: { get: { operationId: x, responses: {} } }\n  /b: { get: { operationId: x, responses: {} } }\n',
      'shop.yaml:3 paths./b.get.operationId: repeats the operationId x of GET /a',
    ],
  ];

  for (const [name, text, message] of wrong) {
    it(`says what is wrong with ${name}`, () => expect(faultOf(text)).to.contain(message));
  }

  it('names each error of a requestBody: a broken reference, a stream, a form that is not an object, no valid example', () => {
    const place = 'paths./v1/summarize.post.requestBody';
    const bodies: [string, string][] = [
      ["{ $ref: '#/components/requestBodies/A' }", ': must have content: requestBody: { required: true'],
      [
        '{ content: { multipart/form-data: { schema: { type: string }, example: {} } } }',
        '.content.multipart/form-data: must have the schema of an object',
      ],
      [
        '{ content: { application/json: { schema: {} } } }',
        '.content.application/json: needs an example that is JSON other than null',
      ],
      ['{ content: { text/plain: { example: 1 } } }', '.content.text/plain: needs an example that is a text'],
      [
        '{ content: { application/x-ndjson: { example: a } } }',
        '.content.application/x-ndjson: is a stream, which a call cannot have',
      ],
    ];
    const text =
      '{ content: { application/json: { schema: { type: object, properties: {} }, example: soon } } }';
    const wrong = `post: { operationId: a, ${PRICE}, requestBody: ${text}, responses: { 402: {} } }`;
    expect(faultOf(minimal(wrong))).to.contain('application/json: needs an example that is an object');
    const nowhere = "{ content: { application/json: { schema: { $ref: '#/components/a' }, example: {} } } }";
    const lost = `post: { operationId: a, ${PRICE}, requestBody: ${nowhere}, responses: { 402: {} } }`;
    expect(faultOf(minimal(lost))).to.contain('schema.$ref: the reference #/components/a leads nowhere');
    for (const [body, message] of bodies) {
      const operation = `post: { operationId: a, ${PRICE}, requestBody: ${body}, responses: { 402: {} } }`;
      const fault = faultOf(minimal(operation));
      expect(fault).to.contain(`${place.replace('/v1/summarize', '/a')}`);
      expect(fault).to.contain(message);
    }
  });

  it('reports each error of a path parameter once, and no further error where that parameter is used', () => {
    const upstream = "x-upstream: { url: 'https://api.example.com/{harbour}' }";
    const sold = "responses: { '200': { content: { application/json: {} } } }";
    const port = (parameter: string): string =>
      `paths:\n  /ports/{harbour}:\n    get: { operationId: a, ${PRICE}, ${upstream}, ${parameter}${sold} }\n`;
    const place = 'shop.yaml:3 paths./ports/{harbour}.get.parameters';
    for (const [parameter, fault] of [
      [
        'parameters: [{ name: harbour, in: path, required: true }], ',
        '.0: harbour needs a schema: schema: {',
      ],
      [
        'parameters: [{ name: harbour, in: path, schema: {} }], ',
        '.0: harbour must be required, because it is',
      ],
      [
        "parameters: [{ name: harbour, in: path, required: true, schema: { type: string, pattern: '^(?=a)b' } }], ",
        '.0: harbour needs an example, and none can be made from its schema: example: …',
      ],
    ] as const) {
      const [, ...faults] = faultOf(port(parameter)).split('\n');
      expect(faults.map(each => each.trim().slice(0, place.length + fault.length))).to.deep.equal([
        place + fault,
      ]);
    }
    expect(faultOf(port(''))).to.contain(
      'must declare harbour, which is in the path: parameters: [{ name: harbour, in: path, required: true, schema: { type: string } }]',
    );
  });

  it('explains an invalid x-mcp or x-answers of a free operation', () => {
    const marked = (mark: string): string =>
      TEXT.replace('operationId: listVoices\n', `operationId: listVoices\n      ${mark}\n`);
    expect(faultOf(marked('x-mcp: maybe'))).to.include('x-mcp: must be true or false');
    for (const text of [
      marked('x-answers: yes').replace('/tts/v1/voices:', '/voices/{key}:'),
      marked('x-answers: true'),
    ])
      expect(faultOf(text)).to.include('x-answers: must be true, and its path must have one parameter');
  });
});
