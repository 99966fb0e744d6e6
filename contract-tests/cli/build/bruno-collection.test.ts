import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brunoCollection, COLLECTION } from '../../../src/cli/build/bruno-collection.js';
import { parseContract } from '../../../src/contract/parse-contract.js';
import { ANY_SHOP } from '../../support/any-shop.js';
import { SOLD } from '../../support/sold.js';

const FOLDER = join(fileURLToPath(new URL('../../../../', import.meta.url)), COLLECTION);

describe('The Bruno collection', () => {
  it('in generated/bruno matches the contract: make generate writes it', () => {
    const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true }).filter(each => each.isFile());
    const texts = files.map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      return [file.slice(FOLDER.length + 1), readFileSync(file, 'utf8')];
    });
    expect(Object.fromEntries(texts)).to.deep.equal(brunoCollection(SOLD));
  });

  for (const [name, contract] of [
    ['of this repository', SOLD],
    ['of any shop', parseContract(ANY_SHOP)],
  ] as const)
    it(`${name} asks for the price, pays, and prefers every declared status`, () => {
      const files = brunoCollection(contract);
      for (const { id, method } of contract.paid) {
        expect(files[join(id, 'unpaid.bru')]).to.contain('res.status: eq 402').and.not.contain('PAYMENT');
        expect(files[join(id, 'paid.bru')])
          .to.contain('res.status: eq 200')
          .and.contain('PAYMENT-SIGNATURE: {{payment}}')
          .and.contain(`${method.toLowerCase()} {`);
        for (const status of [200, 400, 402, 502, 503])
          expect(files[join(id, `status-${status}.bru`)])
            .to.contain(`Prefer: code=${status}`)
            .and.contain(`res.status: eq ${status}`);
      }
      for (const { id } of contract.free)
        expect(files[join(id, 'free.bru')])
          .to.contain('res.status: eq 200')
          .and.not.match(/url: .*[^{]\{[^{]/);
    });
});
