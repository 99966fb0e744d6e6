import { expect } from 'chai';
import { createAjv } from '../../src/contract/ajv.js';
import { valueFault } from '../../src/contract/fault-words.js';

describe('uniqueItems of a schema', () => {
  const faultOf = (items: unknown[], demanded = true): string | undefined => {
    const check = createAjv({}, {}).compile({ type: 'array', uniqueItems: demanded, items: {} });
    return check(items) ? undefined : valueFault(check.errors);
  };

  it('finds equal items, whatever the order of their members, and nothing else', () => {
    const equal: unknown[][] = [
      [1, 2, 1],
      ['a', 'a'],
      [null, null],
      [0, -0],
      [{ a: 1, b: [2, { c: 3 }] }, 5, { b: [2, { c: 3 }], a: 1 }],
      [[1], [1]],
    ];
    for (const items of equal) expect(faultOf(items), JSON.stringify(items)).to.match(/duplicate items/);
    const unequal: unknown[][] = [
      [],
      [
        1,
        '1',
        true,
        'true',
        null,
        'null',
        [],
        {},
        '[]',
        '{}',
        [1],
        ['1'],
        { a: 1 },
        { a: '1' },
        { 'a":1,"b': 1 },
      ],
      [
        { a: 1, b: 2 },
        { a: 2, b: 1 },
      ],
    ];
    for (const items of unequal) expect(faultOf(items), JSON.stringify(items)).to.equal(undefined);
    expect(faultOf([1, 1], false)).to.equal(undefined);
  });

  it('reads each item once rather than comparing every pair', () => {
    let reads = 0;
    const items = Array.from({ length: 2_000 }, (_, index) => ({
      get number() {
        reads += 1;
        return index;
      },
    }));
    expect(faultOf(items)).to.equal(undefined);
    expect(reads).to.equal(items.length);
  });
});
