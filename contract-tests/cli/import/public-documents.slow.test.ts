import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contractYaml } from '../../../src/cli/import/contract-yaml.js';
import { compileContract } from '../../../src/contract/compile-contract.js';
import { parseContract } from '../../../src/contract/parse-contract.js';
import { describeInCi, rows } from '../../support/extent.js';
import {
  described,
  IMPORT_DEADLINE_MS,
  importedFrom,
  nameOf,
  PUBLIC_DOCUMENTS,
  soldOf,
  type PublicDocument,
} from '../../support/public-documents.js';
import { reported } from '../../tools/imports.js';
import { errorsIn, noLinters } from '../../tools/lint.js';

/**
 * One document of each kind, all of them read quickly: from FastAPI, Springfox and Swagger 2.0, and one with webhooks,
 * callbacks and cookies.
 */
const FEW = ['svix.json', 'openapi-generator.json', 'petstore-2.0.json', 'galaxy.yaml', 'open-payments.yaml'];
const few = PUBLIC_DOCUMENTS.filter(({ file }) => FEW.includes(file));
const others = PUBLIC_DOCUMENTS.filter(({ file }) => !FEW.includes(file));

/** Imports a document and builds the result. @returns the complete contract */
async function built(document: PublicDocument): Promise<object> {
  const imported = await importedFrom(document);
  expect(soldOf(imported), 'the report of make imports').to.be.at.least(reported().get(nameOf(document))!);
  const calls = imported.table.filter(({ method }) => method !== 'WEBHOOK');
  expect(calls).to.have.length(described(document).operations);
  for (const { leftOut, path } of imported.table) expect(leftOut, path).not.to.equal('');
  // No import has to leave out any of the 153 regular expressions in these documents.
  expect(imported.notes.filter(note => note.startsWith('the pattern'))).to.deep.equal([]);
  const text = contractYaml(imported.contract, document.what);
  await compileContract(text);
  const contract = parseContract(text);
  const sold = calls.filter(({ leftOut }) => leftOut === undefined);
  expect(contract.paid.map(({ id }) => id)).to.have.members(sold.map(({ id }) => id));
  return contract.document;
}

describeInCi('Third-party documents, imported', function () {
  this.timeout(IMPORT_DEADLINE_MS);
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-documents-'));
  const files: string[] = [];
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const document of [...few, ...rows(others)])
    it(`sell at least what the report says, and the build accepts them: ${document.what}`, async () => {
      const file = join(folder, `${document.file.replace(/\.\w+$/, '')}.json`);
      writeFileSync(file, JSON.stringify(await built(document), undefined, 2));
      files.push(file);
    });

  for (const linter of ['Redocly', 'Spectral'] as const)
    it(`have no error for ${linter}${noLinters ? ` (skipped: ${noLinters})` : ''}`, function () {
      if (noLinters) return this.skip();
      expect(errorsIn(linter, files)).to.deep.equal([]);
    });
});
