import { expect } from 'chai';
import { pageFaults } from '../../src/shop/page-paths.js';

type Pages = Parameters<typeof pageFaults>[1][number];

describe('The paths of pages of operations', () => {
  const faultsOf = (pages: Partial<Pages>, taken = '/sold/{id}'): string[] => {
    const contract = { paid: [], free: [{ path: taken }] } as unknown as Parameters<typeof pageFaults>[0];
    return pageFaults(contract, [{ id: 'tea', path: '/tea', routes: [{ path: '/' }], ...pages }]);
  };

  it('may be any segment that nothing else uses', () => {
    expect(faultsOf({})).to.deep.equal([]);
  });

  for (const [what, pages, taken, said] of [
    ['an operation is there', {}, '/tea', '/tea is, too'],
    ['an operation is below', {}, '/tea/{cup}', '/tea/{cup} is, too'],
    ['an operation takes any first segment', {}, '/{kind}/{id}', '/{kind}/{id} is, too'],
    ['the operator page keeps its link by that name', { path: '/operator-page' }, undefined, 'another path'],
    ['it has two segments', { path: '/tea/cups' }, undefined, 'not one segment'],
    ['a route would leave them', { routes: [{ path: 'pot' }] }, undefined, "'pot' does not begin with /"],
  ] as const)
    it(`are refused when ${what}`, () => {
      const faults = faultsOf(pages, taken);
      expect(faults).to.have.lengthOf(1);
      expect(faults[0]).to.include(said);
    });
});
