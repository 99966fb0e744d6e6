import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import addFormatsModule from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { readFileSync } from 'node:fs';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { loadContract } from '../../src/contract/parse-contract.js';
import { closedAnswers } from '../support/oracle.js';

const FILE = new URL('../../../openapi.yaml', import.meta.url);
const TEXT = readFileSync(FILE, 'utf8');
const { document } = loadContract(FILE);

const at = (value: unknown, ...path: string[]): Json =>
  path.reduce<unknown>((node, key) => (node as Json)[key], value) as Json;
/** Follows one `$ref`. */
const follow = (node: Json): Json =>
  typeof node.$ref === 'string' ? at(document, ...node.$ref.slice(2).split('/')) : node;

describe('The contract is a document that other tools can use', () => {
  const ajv = new Ajv2020({ strict: false });
  (addFormatsModule as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addFormat('binary', true);
  ajv.addSchema(document, 'contract');

  /** All `{schema, example}` pairs in the document, with JSON pointers to the schemas. */
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
    expect(found).to.have.length.above(5);
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

  it('requires no credentials, and no name of a schema ends in Request or Response', () => {
    expect(document.security).to.deep.equal([]);
    expect(document.components).not.to.have.property('securitySchemes');
    expect(document.components).not.to.have.property('requestBodies');
    const names = Object.keys(at(document, 'components', 'schemas'));
    expect(names.filter(name => /(Request|Response)$/.test(name))).to.deep.equal([]);
  });

  it('allows additional fields in every object of an answer, because generated Go clients would otherwise reject unknown fields', () => {
    expect(closedAnswers(document)).to.deep.equal([]);
  });

  it('has no schema with a name that code generators use themselves', () => {
    const names = Object.keys(at(document, 'components', 'schemas'));
    expect(names.filter(name => /^(Error|Response|Request|Client|Object)$/.test(name))).to.deep.equal([]);
  });

  it('declares x402Version without a list of values, because the server accepts any value', () => {
    expect(at(document, 'components', 'parameters', 'x402Version', 'schema')).not.to.have.property('enum');
  });

  it('is the source of the generated types', async function () {
    this.timeout(60_000);
    const fresh = COMMENT_HEADER + astToString(await openapiTS(FILE));
    const committed = readFileSync(new URL('../../../generated/openapi.d.ts', import.meta.url), 'utf8');
    expect(committed === fresh, 'generated/openapi.d.ts is stale: run `make generate`').to.equal(true);
  });
});
