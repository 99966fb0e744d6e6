import { expect } from 'chai';
import { faultOf, mutants } from '../mutate/mutants.js';

describe('changes that `make mutate` makes', () => {
  it('name a text that stands once in the built code, and have names of their own', () => {
    const stale = mutants.flatMap(mutant => {
      const fault = faultOf(mutant);
      return fault === undefined ? [] : [`${mutant.name}: ${fault}`];
    });
    expect(stale).to.deep.equal([]);
    const names = mutants.map(({ file, name }) => `${file}: ${name}`);
    expect(names.filter((name, at) => names.indexOf(name) < at)).to.deep.equal([]);
  });
});
