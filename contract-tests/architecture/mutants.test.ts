import { expect } from 'chai';
import { faultOf, mutants } from '../mutate/mutants.js';

describe('the mutants of `make mutate`', () => {
  it('each replace a string that occurs exactly once in the built code, and have unique names', () => {
    const stale = mutants.flatMap(mutant => {
      const fault = faultOf(mutant);
      return fault === undefined ? [] : [`${mutant.name}: ${fault}`];
    });
    expect(stale).to.deep.equal([]);
    const names = mutants.map(({ file, name }) => `${file}: ${name}`);
    expect(names.filter((name, at) => names.indexOf(name) < at)).to.deep.equal([]);
  });
});
