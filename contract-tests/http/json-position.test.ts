import { expect } from 'chai';
import fc from 'fast-check';
import { BodyFault, parseJsonObject } from '../../src/http/json-body.js';
import { positionOfFault } from '../../src/http/json-position.js';

describe('A body that is not JSON is refused with the line and column of the error', () => {
  const broken: [string, number, number][] = [
    ['{"text": "a",}', 1, 14],
    ['{"text": "a"\n "n": 1}', 2, 2],
    ['{"text": \'a\'}', 1, 10],
    ['{text: "a"}', 1, 2],
    ['{"text": "a"', 1, 13],
    ['{"text": "a\nb"}', 1, 12],
    ['{"a": "\\x"}', 1, 8],
    ['{"a": 01}', 1, 7],
    ['{"a": [1, 2,]}', 1, 13],
    ['{"a": [1}', 1, 9],
    ['{"a": undefined}', 1, 7],
    ['{"a": NaN}', 1, 7],
    ['{"a": 1} // why', 1, 10],
    ['{"a": 1}{"b": 2}', 1, 9],
    ['{\r\n  "ä😀": tru\r\n}', 2, 9],
    ['text=a', 1, 1],
    [']', 1, 1],
  ];
  for (const [text, line, column] of broken)
    it(`${JSON.stringify(text)} at line ${line}, column ${column}`, () => {
      expect(() => JSON.parse(text)).to.throw();
      expect(positionOfFault(text)).to.deep.equal({ line, column });
    });

  it('in the error that the caller gets', () => {
    expect(() => parseJsonObject(Buffer.from('{"text": "a",}'))).to.throw(
      BodyFault,
      'the body is not JSON: see line 1, column 14',
    );
  });

  it('finds no error before the end of a text that JSON.parse accepts, or that is only cut off', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (json, cut) => {
        const text = json.slice(0, cut % (json.length + 1));
        const { line, column } = positionOfFault(json);
        expect([line, column]).to.deep.equal([1, [...json].length + 1]);
        // A number, literal or escape that is cut off may be reported where it begins.
        if (!/[\d.eE+-]$|[a-z]$|\\u?[\da-f]*$/.test(text))
          expect(positionOfFault(text)).to.deep.equal({ line: 1, column: [...text].length + 1 });
      }),
      { numRuns: 500 },
    );
  });

  it('in time proportional to the length of the body', () => {
    for (const text of [
      '['.repeat(500_000),
      `{"a":"${'\\n'.repeat(500_000)}`,
      `{"a":${' '.repeat(1_000_000)}x`,
    ])
      expect(positionOfFault(text).line).to.equal(1);
  });
});
