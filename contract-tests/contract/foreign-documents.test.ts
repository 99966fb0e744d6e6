import { expect } from 'chai';
import { compileContract } from '../../src/contract/compile-contract.js';
import { ContractFault } from '../../src/contract/contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { Routes } from '../../src/contract/routes.js';

/** Constructs that occur in third-party documents. */
const sold = (schema: string, parameters = ''): string =>
  `{ ${parameters}x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }, responses: { '200': { content: { application/json: { schema: ${schema} } } } }`;

const shop = (paths: string, components = '{}'): string =>
  `openapi: 3.1.0\ninfo: { title: A shop of others }\npaths:\n${paths}components:\n  schemas: ${components}\n`;

async function faultOf(text: string): Promise<string> {
  try {
    await compileContract(text);
  } catch (error) {
    expect(error, String((error as Error).stack)).to.be.instanceOf(ContractFault);
    return (error as Error).message;
  }
  throw new Error('the contract was accepted');
}

describe('A third-party document', () => {
  it("may refer to an element of a list, such as another operation's parameter; both operations then have an example", async () => {
    const own = 'parameters: [{ name: id, in: path, required: true, schema: { type: string } }], ';
    const same = "parameters: [{ $ref: '#/paths/~1pets~1%7Bid%7D/get/parameters/0' }], ";
    const text = shop(
      `  /pets/{id}:\n    get: ${sold('{ type: object }', own)}, operationId: pet }\n  /owners/{id}:\n    get: ${sold('{ type: object }', same)}, operationId: owner }\n`,
    );
    await compileContract(text);
    const { paid } = parseContract(text);
    expect(paid.map(({ parameters }) => parameters.map(({ name }) => name))).to.deep.equal([['id'], ['id']]);
    expect(paid.map(({ examplePath }) => examplePath.includes('undefined'))).to.deep.equal([false, false]);
  });

  for (const [name, reference] of [
    ['to a missing element', '#/paths/~1pets/get/parameters/7'],
    ['to the length of a list', '#/paths/~1pets/get/parameters/length'],
    ['with a % that begins no escape', '#/components/schemas/100%'],
  ] as const)
    it(`with a reference ${name} is reported as an error, without a crash`, async () => {
      const text = shop(
        `  /pets:\n    get: ${sold(`{ $ref: '${reference}' }`)}, operationId: pets, parameters: [] }\n`,
      );
      expect(await faultOf(text)).to.contain(`the reference ${reference} leads nowhere`);
    });

  it('may give its schemas an $id, even the same one twice, and even in an example', async () => {
    const named =
      "{ $id: 'https://api.example.com/pet', type: object, required: [name], properties: { name: { type: string }, self: { $ref: '#/components/schemas/Pet' } }, example: { name: a, $id: 'https://api.example.com/pet' } }";
    const text = shop(
      `  /pets:\n    get: ${sold(named)}, operationId: pets }\n  /pet:\n    get: ${sold("{ $ref: '#/components/schemas/Pet' }")}, operationId: pet }\n`,
      `{ Pet: ${named} }`,
    );
    await compileContract(text);
    const routes = await Routes.create(parseContract(text));
    await routes.warm();
    for (const id of ['pets', 'pet']) {
      const route = routes.routeOf(id)!;
      expect(routes.checkReply(route, { status: 200, body: { name: 'a', self: { name: 'b' } } })).to.equal(
        undefined,
      );
      expect(routes.checkReply(route, { status: 200, body: { name: 'a', self: {} } })).to.equal(
        'self.name is missing',
      );
    }
  });
});
