import { expect } from 'chai';
import { ContractFault } from '../../src/contract/contract.js';
import { compileContract } from '../../src/contract/compile-contract.js';

const PRICE = "x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }";
const UPSTREAM = "x-upstream: { url: 'https://api.example.com/a' }";
const JSON_TYPE = 'content: { application/json: { schema: { type: object } } }';
const ANSWER = `responses: { '200': { ${JSON_TYPE} } }`;

/** One operation of a contract. If it is the first one, it begins at line 3 of the file, and `lines` begin at line 5. */
function operation(lines: string[], path = '/a', method = 'get'): string {
  return [`  ${path}:`, `    ${method}:`, ...lines.map(line => `      ${line}`)].join('\n');
}

function shop(...operations: string[]): string {
  return `openapi: 3.1.0\npaths:\n${operations.join('\n')}\n`;
}

const nowhere = "$ref: '#/components/schemas/Nix'";
const TYPES = 'only string, number, integer, boolean, array, object, null: type: integer';
const own = ['operationId: a', PRICE, UPSTREAM];
const inAnswer = (...schema: string[]): string[] => [
  ...own,
  'responses:',
  "  '200':",
  '    content:',
  '      application/json:',
  ...schema.map(line => `        ${line}`),
];
const ANSWERED = 'paths./a.get.responses.200.content.application/json.schema';

const faults: Record<string, [string, string]> = {
  'an undeclared path parameter, which is reported only once': [
    shop(
      operation(
        ['operationId: a', PRICE, "x-upstream: { url: 'https://api.example.com/{id}' }", ANSWER],
        '/a/{id}',
      ),
    ),
    '5 paths./a/{id}.get.parameters: must declare id, which is in the path: parameters: [{ name: id, in: path, required: true, schema: { type: string } }]',
  ],
  'an undeclared path parameter of an operation that has other parameters': [
    shop(
      operation(
        [
          'operationId: a',
          PRICE,
          "x-upstream: { url: 'https://api.example.com/{id}' }",
          'parameters: [{ name: n, in: query, schema: { type: string } }]',
          ANSWER,
        ],
        '/a/{id}',
      ),
    ),
    '8 paths./a/{id}.get.parameters: must declare id, which is in the path: - { name: id, in: path, required: true, schema: { type: string } }',
  ],
  'a price that is a number': [
    shop(operation(['operationId: a', PRICE.replace("'0.01'", '0.05'), UPSTREAM, ANSWER])),
    "6 paths./a.get.x-price: amount must be a decimal string in quotes, not number: amount: '0.05'",
  ],
  'a price that is not an amount of USDC': [
    shop(operation(['operationId: a', PRICE.replace("'0.01'", '-1'), UPSTREAM, ANSWER])),
    "6 paths./a.get.x-price: amount must be a decimal string in quotes, not number: amount: '0.01'",
  ],
  'an unknown key of a price': [
    shop(operation(['operationId: a', PRICE.replace('flow', 'tax: 1, flow'), UPSTREAM, ANSWER])),
    "6 paths./a.get.x-price: unknown key 'tax': a price has only mode, currency, flow, amount",
  ],
  'an unknown key of an upstream': [
    shop(operation(['operationId: a', PRICE, UPSTREAM.replace(' }', ', timeout: 3 }'), ANSWER])),
    "7 paths./a.get.x-upstream: unknown key 'timeout': an x-upstream has url, method, headers, timeoutMs, maxMembers, check only. Is it timeoutMs?",
  ],
  'an upstream without a URL': [
    shop(operation(['operationId: a', PRICE, 'x-upstream: {}', ANSWER])),
    '7 paths./a.get.x-upstream.url: must be a string, such as https://api.example.com/path',
  ],
  'the second of two operations with the same name': [
    shop(operation([...own, ANSWER]), operation([PRICE, 'operationId: a', UPSTREAM, ANSWER], '/b')),
    '12 paths./b.get.operationId: repeats the operationId a of GET /a: give each operation its own',
  ],
  'a reference that leads nowhere': [
    shop(operation(inAnswer('schema:', `  ${nowhere}`))),
    `13 ${ANSWERED}.$ref: the reference #/components/schemas/Nix leads nowhere`,
  ],
  'a parameter whose reference leads nowhere': [
    shop(operation([...own, ANSWER, 'parameters:', `  - ${nowhere}`])),
    '10 paths./a.get.parameters.0.$ref: the reference #/components/schemas/Nix leads nowhere',
  ],
  'a parameter of the path whose reference leads nowhere': [
    `${shop(operation([...own, ANSWER]))}    parameters: [{ ${nowhere} }]`,
    '5 paths./a.get: the reference #/components/schemas/Nix leads nowhere (in paths./a.parameters.0.$ref)',
  ],
  'a reference to a reference that leads nowhere': [
    `${shop(operation(inAnswer("schema: { $ref: '#/components/schemas/Pet' }")))}components:\n  schemas:\n    Pet: { properties: { owner: { ${nowhere} } } }\n`,
    `12 ${ANSWERED}.$ref: the schema of its answer (application/json) can't be used: the reference #/components/schemas/Nix leads nowhere (in components.schemas.Pet.properties.owner.$ref)`,
  ],
  'an unknown type of a parameter': [
    shop(
      operation([
        ...own,
        ANSWER,
        'parameters:',
        '  - name: n',
        '    in: query',
        '    required: true',
        '    schema:',
        '      type: int',
      ]),
    ),
    `14 paths./a.get.parameters.0.schema.type: no schema has the type int, ${TYPES}`,
  ],
  'an unknown type in a body': [
    shop(
      operation(
        [
          ...own,
          ANSWER,
          'requestBody:',
          '  content:',
          '    application/json:',
          '      schema:',
          '        required: [n]',
          '        properties:',
          '          type: { type: string }',
          '          n: { type: int }',
        ],
        '/a',
        'post',
      ),
    ),
    `16 paths./a.post.requestBody.content.application/json.schema.properties.n.type: no schema has the type int, ${TYPES}`,
  ],
  'an unknown type in an answer': [
    shop(operation(inAnswer('schema:', '  items:', "    type: [int, 'null']"))),
    `14 ${ANSWERED}.items.type: the schema of its answer (application/json) can't be used: no schema has the type int, ${TYPES}`,
  ],
};

describe('An error of a contract is reported with its line, its place and a correction:', () => {
  for (const [name, [text, fault]] of Object.entries(faults))
    it(name, async () => {
      const error: unknown = await compileContract(text).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).to.be.instanceOf(ContractFault);
      const [, ...told] = (error as Error).message.split('\n');
      expect(told).to.deep.equal([`  openapi.yaml:${fault}`]);
    });
});
