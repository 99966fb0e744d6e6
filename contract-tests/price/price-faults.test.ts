import { expect } from 'chai';
import { contractOf } from '../support/upstream-shop.js';

const BODY = {
  type: 'object',
  required: ['text', 'n'],
  properties: {
    text: { type: 'string' },
    n: { type: 'integer' },
    maybe: { type: 'string' },
    kept: { type: 'string', default: 'a' },
    list: { type: 'array', items: {} },
    either: { anyOf: [{ type: 'string' }, { type: 'array' }] },
  },
};
const STEPS = [{ upTo: 10, amount: '0.01' }, { amount: '0.02' }];
const PER = { per: { amount: '0.01', units: 10 }, min: '0.01', max: '1' };

function faultOf(price: object, upstream: object | undefined = { url: 'https://api.example.com/' }): string {
  try {
    contractOf([
      {
        ...{ id: 'one', path: '/one', method: 'post', body: BODY },
        price: { mode: 'tiered', currency: 'USD', ...price },
        ...(upstream ? { upstream } : {}),
      },
    ]);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

/** Prices with an error, and the message about it. */
const FAULTS: [object, RegExp][] = [
  [{ measure: 'length', steps: STEPS }, /by must be a JSON pointer to a value of the call: \/body, /],
  [{ by: '#/text', measure: 'length', steps: STEPS }, /by must be a JSON pointer/],
  [{ by: '/body/te~xt', measure: 'length', steps: STEPS }, /by must be a JSON pointer/],
  [
    { by: '/body/tex', measure: 'length', steps: STEPS },
    /by points to a value that no call has: \/body\/tex/,
  ],
  [{ by: '/query/text', measure: 'length', steps: STEPS }, /by points to a value that no call has/],
  [{ by: '/body/toString', measure: 'length', steps: STEPS }, /by points to a value that no call has/],
  [{ by: '/body/text', measure: 'size', steps: STEPS }, /measure must be one of value, length, items, bytes/],
  [
    { by: '/body/n', measure: 'length', steps: STEPS },
    /measure length needs a value of type string, but by points to a value of type integer/,
  ],
  [
    { by: '/body/either', measure: 'length', steps: STEPS },
    /by points to a value whose type the contract does not state/,
  ],
  [
    { by: '/body/maybe', measure: 'length', steps: STEPS },
    /a value that a call may leave out: make it required, or give it a default/,
  ],
  [{ by: '/body/list', measure: 'items', steps: STEPS }, /a call may leave out/],
  [{ by: '/body/text', measure: 'length' }, /exactly one of steps and per must be set/],
  [{ by: '/body/text', measure: 'length', steps: STEPS, ...PER }, /exactly one of steps and per must be set/],
  [{ by: '/body/text', measure: 'length', steps: STEPS, min: '0.01' }, /min and max belong to per/],
  [{ by: '/body/text', measure: 'length', steps: [] }, /steps must be a list of 1 to 100/],
  [
    { by: '/body/text', measure: 'length', steps: [{ upTo: 5, amount: '0.01' }] },
    /steps\.0\.upTo must be absent: the last step has no end/,
  ],
  [
    { by: '/body/text', measure: 'length', steps: [{ amount: '0.01' }, { amount: '0.02' }] },
    /steps\.0\.upTo must be a number/,
  ],
  [
    {
      by: '/body/text',
      measure: 'length',
      steps: [
        { upTo: 5, amount: '0.01' },
        ...STEPS.map(each => ({ ...each, ...(each.upTo ? { upTo: 5 } : {}) })),
      ],
    },
    /steps\.1\.upTo must be greater than upTo of the step before it/,
  ],
  [
    { by: '/body/text', measure: 'length', steps: [{ amount: 0.01 }] },
    /steps\.0\.amount must be a decimal string in quotes/,
  ],
  [
    { by: '/body/text', measure: 'length', steps: [{ amount: '0.01', upto: 3 }] },
    /steps\.0 has an unknown key 'upto'/,
  ],
  [
    { by: '/body/text', measure: 'length', ...PER, per: { amount: '0.01', units: 0 } },
    /per\.units must be a whole number of at least 1/,
  ],
  [{ by: '/body/text', measure: 'length', ...PER, min: undefined }, /min must be a decimal string/],
  [
    { by: '/body/text', measure: 'length', ...PER, max: '0.001' },
    /max 0\.001 must not be less than min 0\.01/,
  ],
  [
    { by: '/body/text', measure: 'length', steps: STEPS, amount: '0.01' },
    /unknown key 'amount': a price has only mode, currency, flow, by, measure, steps, per, min, max/,
  ],
  [
    { mode: 'handler', min: '0.01', max: '0.02' },
    /mode: handler needs a handler, but this operation has an x-upstream/,
  ],
  [{ mode: 'handler', min: '0.01' }, /max must be a decimal string/],
];

describe('Errors in a price that depends on the call', () => {
  for (const [price, words] of FAULTS)
    it(`are explained: ${JSON.stringify(price)}`, () => {
      expect(faultOf(price)).to.match(words);
    });

  it('are not reported if every call has the value that the price depends on', () => {
    for (const by of ['/body/text', '/body/kept'])
      expect(faultOf({ by, measure: 'length', steps: STEPS })).to.equal('');
    expect(faultOf({ by: '/body', measure: 'bytes', ...PER })).to.equal('');
    expect(faultOf({ by: '/body/n', measure: 'value', ...PER })).to.equal('');
  });
});
