import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseContract } from '../../src/contract/parse-contract.js';
import { LINTERS, noLinters } from './lint.js';

const PETSTORE = new URL('../../../examples/petstore/openapi.yaml', import.meta.url);

/** The smallest contract that a seller can write. */
const LEAST = `openapi: 3.1.0
info: { title: A thin shop }
paths:
  /words:
    post:
      operationId: countWords
      x-price: { mode: fixed, currency: USD, amount: '0.01', flow: upfront }
      requestBody:
        required: true
        content: { application/json: { schema: { type: object, required: [text], properties: { text: { type: string } } } } }
      responses: { '200': { content: { application/json: { schema: { type: object, additionalProperties: true } } } } }
`;

describe(`A contract as the build completes it${noLinters ? ` (skipped: ${noLinters})` : ''}`, function () {
  this.timeout(180_000);
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-expanded-'));
  before(function () {
    if (noLinters) this.skip();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const [name, text] of [
    ['least', LEAST],
    ['petstore', readFileSync(PETSTORE, 'utf8')],
  ] as const)
    it(`has no findings from Redocly: ${name}`, () => {
      const file = join(folder, `${name}.json`);
      writeFileSync(file, JSON.stringify(parseContract(text).document, undefined, 2));
      expect(LINTERS.find(linter => linter.note === 'redocly')?.run([file])).to.deep.equal([]);
    });
});
