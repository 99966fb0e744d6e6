import { expect } from 'chai';
import { existsSync, readdirSync } from 'node:fs';
import { contractYaml } from '../../../src/cli/import/contract-yaml.js';
import { compileContract } from '../../../src/contract/compile-contract.js';
import { importContract } from '../../../src/contract/import/import-contract.js';
import { parseContract } from '../../../src/contract/parse-contract.js';
import { described, importedFrom, nameOf, PUBLIC_DOCUMENTS, soldOf } from '../../support/public-documents.js';
import { reported } from '../../tools/imports.js';

const FOLDER = new URL('../../../../contract-tests/fixtures/openapi/', import.meta.url);
const PETSTORE = PUBLIC_DOCUMENTS.find(({ file }) => file === 'petstore-3.0.json')!;

describe('Third-party documents', () => {
  it('number at least twenty, each with the package, version and licences that it came with', () => {
    expect(PUBLIC_DOCUMENTS.length).to.be.at.least(20);
    for (const { file, from, licence } of PUBLIC_DOCUMENTS) {
      expect(existsSync(new URL(`${file}.gz`, FOLDER)), file).to.equal(true);
      expect(from, file).to.match(/^(npm|PyPI) \S+ \d+\.\d+\.\d+, \S+$/);
      expect(licence, file).to.match(/^(MIT|ISC|Apache-2\.0)(, Apache-2\.0)?$/);
    }
    expect(readdirSync(FOLDER).filter(name => name.endsWith('.gz'))).to.have.length(PUBLIC_DOCUMENTS.length);
  });

  it('have a row each in docs/reports/imports.md', () => {
    expect([...reported().keys()]).to.deep.equal(
      PUBLIC_DOCUMENTS.map(({ what, file }) => nameOf({ what, file })),
    );
  });

  it('sell at least what their row says, and the build accepts the result: the petstore of OpenAPI 3.0', async () => {
    const imported = await importedFrom(PETSTORE);
    expect(soldOf(imported), 'the report of make imports').to.be.at.least(reported().get(nameOf(PETSTORE))!);
    expect(imported.table).to.have.length(described(PETSTORE).operations);
    const text = contractYaml(imported.contract, PETSTORE.what);
    await compileContract(text);
    const sold = imported.table.filter(({ leftOut }) => leftOut === undefined);
    expect(parseContract(text).paid.map(({ id }) => id)).to.have.members(sold.map(({ id }) => id));
  });
});

describe('What tools would reject is left out of an imported document', () => {
  const documentOf = (schema: object, example?: object): string =>
    JSON.stringify({
      openapi: '3.0.3',
      info: { title: 'Odd', version: '1' },
      paths: {
        '/a': {
          get: {
            responses: { 200: { description: 'a', content: { 'application/json': { schema, example } } } },
          },
        },
      },
    });
  const soldMedia = async (schema: object, example?: object): Promise<unknown> => {
    const { contract } = await importContract(documentOf(schema, example), {
      prices: ['*=1'],
      upstream: 'https://api.example.com',
    });
    const paths = contract.paths as Record<
      string,
      Record<string, { responses: { 200: { content: Record<string, unknown> } } }>
    >;
    return paths['/a']?.['get']?.responses[200].content['application/json'];
  };

  it("such as an example that contains references, because examples can't have any", async () => {
    const example = { rules: [{ $ref: '#/components/examples/rule' }] };
    expect(await soldMedia({ type: 'object' }, example)).to.deep.equal({ schema: { type: 'object' } });
  });

  it('such as examples and defaults whose type differs from that of their schema', async () => {
    const properties = {
      number: { type: 'integer', example: '7', default: 7 },
      text: { type: 'string', nullable: true, example: null },
    };
    expect(await soldMedia({ type: 'object', example: 'soon', properties })).to.deep.equal({
      schema: {
        type: 'object',
        properties: {
          number: { type: 'integer', default: 7 },
          text: { type: ['string', 'null'], example: null },
        },
      },
    });
  });

  it('and an array schema without items is given items that accept anything', async () => {
    expect(await soldMedia({ type: 'array' })).to.deep.equal({ schema: { type: 'array', items: {} } });
  });
});
