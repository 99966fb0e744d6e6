import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { compileContract } from '../../src/contract/compile-contract.js';
import { ContractFault } from '../../src/contract/contract.js';
import { parseContract, readText } from '../../src/contract/parse-contract.js';
import type { Json } from '../../src/contract/json.js';
import { ANY_SHOP } from '../support/any-shop.js';

const ROOT = new URL('../../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');

const PRICE = "{ mode: fixed, currency: USD, amount: '0.01', flow: authorization }";
const UPFRONT = "{ mode: fixed, currency: USD, amount: '0.01', flow: upfront }";
const ANSWER = "{ '200': { content: { application/json: { schema: { type: object } } } } }";

/** A contract of one paid GET, with the given additions. */
const thin = (operation = '', paths = '', more = ''): string => `openapi: 3.1.0
info: { title: A thin shop }
paths:
  /ports/{harbour}:
    get:
      operationId: findPort
      x-price: ${PRICE}
      parameters: [{ name: harbour, in: path, required: true, schema: { type: string, minLength: 2 } }]
      ${operation || `responses: ${ANSWER}`}
${paths}${more}`;

const at = (value: unknown, ...path: string[]): Json =>
  path.reduce<unknown>((node, key) => (node as Json)[key], value) as Json;

/** The errors of a contract that the build refuses. */
async function faultsOf(text: string): Promise<string[]> {
  try {
    await compileContract(text);
  } catch (error) {
    expect(error, String((error as Error).stack)).to.be.instanceOf(ContractFault);
    return (error as Error).message.split('\n').slice(1);
  }
  throw new Error('the contract was accepted');
}

/** The expanded contract without what was added: what the seller wrote. */
function withoutAdded(text: string): unknown {
  const { contract, added } = readText(text);
  const document = structuredClone(contract.document);
  for (const { path } of [...added].reverse()) {
    const parent = at(document, ...path.slice(0, -1));
    const last = path.at(-1) ?? '';
    if (Array.isArray(parent)) parent.splice(Number(last), 1);
    else delete parent[last];
  }
  return document;
}

describe('The expansion of a contract', () => {
  it("changes nothing if the contract is complete, as this repository's is", () => {
    const text = read('openapi.yaml');
    const { contract, added } = readText(text);
    expect(added).to.deep.equal([]);
    expect(JSON.stringify(contract.document)).to.equal(JSON.stringify(parse(text)));
  });

  const WHOLE = [
    'openapi.yaml',
    'examples/petstore/openapi.yaml',
    'contract-tests/released/openapi-1.0.0.yaml',
  ];
  for (const [name, text] of [...WHOLE.map(file => [file, read(file)]), ['a thin contract', thin()]] as [
    string,
    string,
  ][])
    it(`adds nothing to a contract that is already expanded: ${name}`, () => {
      const { document } = parseContract(text);
      const again = readText(JSON.stringify(document));
      expect(again.added).to.deep.equal([]);
      expect(again.contract.document).to.deep.equal(document);
    });

  it('adds the request and responses of every paid call to an operation with a price', () => {
    const { contract } = readText(thin());
    const operation = at(contract.document, 'paths', '/ports/{harbour}', 'get');
    expect(operation.responses).to.have.all.keys('200', '400', '402', '502', '503');
    expect(at(operation, 'responses', '200', 'headers')).to.have.all.keys(
      ...['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE', 'Answer-Receipt', 'Location', 'X-Request-Id'],
    );
    const parameters = (operation.parameters as { $ref?: string }[]).flatMap(({ $ref }) => $ref ?? []);
    expect(parameters.map(reference => reference.split('/').at(-1))).to.deep.equal([
      'PAYMENT-SIGNATURE',
      'X-PAYMENT',
      'x402Version',
    ]);
    expect(operation).to.deep.include({ summary: 'Find port', tags: ['Operations'] });
    const { document } = parseContract(thin().replace(PRICE, UPFRONT));
    expect(at(document, 'paths', '/ports/{harbour}', 'get').parameters).to.deep.include({
      $ref: '#/components/parameters/Prefer',
    });
  });

  it('adds the documents of the server itself, and only components that something refers to', () => {
    const { document, free } = parseContract(thin());
    expect(free.map(({ id }) => id)).to.deep.equal([
      'getIndex',
      'getDiscovery',
      'getOpenapi',
      'getHealth',
      'getAnswer',
    ]);
    const text = JSON.stringify(document);
    for (const [kind, components] of Object.entries(document.components as Record<string, Json>))
      for (const name of Object.keys(components))
        expect(text, name).to.contain(`"#/components/${kind}/${name}"`);
    for (const [reference] of text.matchAll(/(?<="\$ref":")#[^"]+/g))
      expect(at(document, ...reference.slice(2).split('/')), reference).to.be.an('object');
  });

  it('adds GET /answers/{key} to a contract that is older than that operation', () => {
    const released = read('contract-tests/released/openapi-1.0.0.yaml');
    expect(released).not.to.contain('/answers/{key}');
    const { free, document } = parseContract(released);
    expect(free.find(({ answers }) => answers)?.path).to.equal('/answers/{key}');
    expect(at(document, 'paths', '/v1/summarize', 'post', 'responses', '200', 'headers')).to.have.property(
      'Location',
    );
    const sold = at(document, 'paths', '/answers/{key}', 'get', 'responses', '200', 'content');
    expect(sold).to.have.all.keys('application/json', 'audio/wav');
  });

  for (const [name, text] of [
    ['a thin contract', thin()],
    ['one with aliases, references and parts of the documents', ANY_SHOP],
  ] as const)
    it(`records the source of each part that it added, and leaves the rest unchanged: ${name}`, () => {
      const { added } = readText(text);
      expect(added.filter(({ why }) => why === '')).to.deep.equal([]);
      const left = withoutAdded(text) as { components?: Json; paths: Json };
      const own = parse(text) as { components?: Json; paths: Json };
      expect(left.paths).to.have.all.keys(...Object.keys(own.paths));
      for (const path of Object.keys(own.paths)) expect(at(own.paths, path), path).to.be.an('object');
      for (const name of Object.keys(own.components?.schemas ?? {}))
        expect(at(left, 'components', 'schemas', name)).to.deep.equal(at(own, 'components', 'schemas', name));
    });

  it('does not replace what the seller wrote: an answer, a component, a document at another path', () => {
    const own = `responses:
        '200': { description: The port., content: { application/json: { schema: { type: object } } } }
        '400': { description: Wrong., content: { application/json: { schema: { $ref: '#/components/schemas/ErrorMessage' } } } }`;
    const moved = '  /about: { get: { operationId: getIndex, summary: About us } }\n';
    const component = 'components: { schemas: { ErrorMessage: { type: object, description: Ours. } } }\n';
    const { document, free } = parseContract(thin(own, moved, component));
    const responses = at(document, 'paths', '/ports/{harbour}', 'get', 'responses');
    expect(at(responses, '200').description).to.equal('The port.');
    expect(at(responses, '400').description).to.equal('Wrong.');
    expect(at(document, 'components', 'schemas', 'ErrorMessage').description).to.equal('Ours.');
    expect(free.filter(({ id }) => id === 'getIndex').map(({ path }) => path)).to.deep.equal(['/about']);
    const index = at(document, 'paths', '/about', 'get');
    expect(index.summary).to.equal('About us');
    expect(index.responses).to.have.all.keys('200', '304');
  });

  it('leaves the path of a server document to an operation that the seller sells there', () => {
    const taken = ['/health', '/answers/{id}'].map(
      (path, index) =>
        `  ${path}:\n    get: { operationId: own${index}, x-price: ${PRICE}, parameters: [${path.includes('{') ? '{ name: id, in: path, required: true, schema: { type: string } }' : ''}], responses: ${ANSWER} }\n`,
    );
    const { paid, free } = parseContract(thin('', taken.join('')));
    expect(paid.map(({ id }) => id)).to.deep.equal(['findPort', 'own0', 'own1']);
    expect(free.map(({ id }) => id)).to.deep.equal(['getIndex', 'getDiscovery', 'getOpenapi']);
  });

  it('completes a discovery document for which the seller gives only the list of operations', () => {
    const section =
      '  /sea/.well-known/x402: { get: { operationId: seaDiscovery, x-discovery: { operations: [findPort] } } }\n';
    const { document, free } = parseContract(thin('', section));
    expect(free.find(({ id }) => id === 'seaDiscovery')?.discovery).to.deep.equal(['findPort']);
    expect(at(document, 'paths', '/sea/.well-known/x402', 'get')).to.include.keys(
      'responses',
      'tags',
      'summary',
    );
    expect(free.map(({ id }) => id)).to.include('getDiscovery');
  });

  describe('generates missing examples', () => {
    const EXAMPLES = `openapi: 3.1.0
info: { title: A thin shop }
paths:
  /boats/{id}:
    post:
      operationId: moveBoat
      x-price: ${PRICE}
      parameters:
        - { name: id, in: path, required: true, schema: { type: integer, minimum: 3 } }
        - { name: slow, in: query, schema: { type: boolean } }
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [port, at]
              properties:
                port: { type: string, pattern: '^[A-Z]{4}$' }
                at: { type: string, format: date-time }
                crew: { type: array, items: { $ref: '#/components/schemas/Sailor' } }
      responses:
        '200': { content: { application/json: { schema: { $ref: '#/components/schemas/Sailor' } } } }
components:
  schemas:
    Sailor:
      type: object
      required: [name]
      properties: { name: { type: string }, friends: { type: array, items: { $ref: '#/components/schemas/Sailor' } } }
`;

    it('from schemas, including recursive ones, checks the examples against the schemas, and marks the examples', async () => {
      await compileContract(EXAMPLES);
      const { contract, added } = readText(EXAMPLES);
      const [sold] = contract.paid;
      expect(sold?.examplePath).to.equal('/boats/3');
      expect(sold?.request?.example).to.have.all.keys('port', 'at');
      expect(sold?.answers[0].example).to.have.property('name');
      const generated = added.filter(({ why }) => why === 'generated from its schema');
      expect(generated.map(({ path }) => path.slice(3).join('.'))).to.deep.equal([
        'parameters.0.example',
        'requestBody.content.application/json.example',
        'responses.200.content.application/json.example',
      ]);
      for (const { path } of generated)
        expect(at(contract.document, ...path.slice(0, -1))['x-generated-example']).to.equal(true);
    });

    it('and asks the seller for an example if it can make none that the schema accepts', async () => {
      const [fault, ...others] = await faultsOf(
        thin().replace('minLength: 2', () => "pattern: '^(?=.*7)(?!7).{9}$'"),
      );
      expect(others).to.deep.equal([]);
      expect(fault).to.match(
        /openapi\.yaml:8 paths\.\/ports\/\{harbour\}\.get\.parameters\.0: harbour needs an example, .*: example: …$/,
      );
    });
  });

  const conflicts: [string, string, RegExp][] = [
    [
      'a price of a server document',
      thin('', `  /index:\n    get: { operationId: getIndex, x-price: ${PRICE}, responses: ${ANSWER} }\n`),
      /^openapi\.yaml:11 .*\.x-price: getIndex is the name of one of the server's own free documents: remove x-price/,
    ],
    [
      'the name of a server document',
      thin().replace('findPort', 'getAnswer'),
      /^openapi\.yaml:6 .*\.operationId: getAnswer is the name of one of the server's own documents: choose another/,
    ],
    [
      'a payment that is required',
      thin().replace(
        'parameters: [',
        'parameters: [{ name: x-payment, in: header, required: true, schema: {} }, ',
      ),
      /^openapi\.yaml:8 .*: X-PAYMENT must not be required, because a call without a payment/,
    ],
    [
      'an error with another body',
      thin(
        `responses:
        '200': { content: { application/json: { schema: { type: object } } } }
        '502': { description: Bad., content: { application/json: { schema: { type: object, required: [detail] } } } }`,
      ),
      /^openapi\.yaml:11 .*\.responses\.502: the server itself answers 502, with a body that this schema refuses: detail is missing\. Leave 502 out/,
    ],
  ];
  for (const [name, text, sentence] of conflicts)
    it(`names a conflict in one sentence with its line: ${name}`, async () => {
      const faults = await faultsOf(text);
      expect(faults).to.have.length(1);
      expect(faults[0]?.trim()).to.match(sentence);
    });
});
