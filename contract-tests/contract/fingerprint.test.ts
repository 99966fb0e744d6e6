import { expect } from 'chai';
import fc from 'fast-check';
import {
  canonicalJson,
  fingerprint as fingerprintOf,
  readRequestText,
  requestText,
  TooDeep,
} from '../../src/contract/fingerprint.js';

const fingerprint = (id: string, body: unknown): string => fingerprintOf(id, { params: {}, query: {}, body });

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, shuffled(member)]),
  );
}

function nested(levels: number, core: unknown): object {
  let value = core;
  for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { value };
  return value as object;
}

describe('fingerprint: whether two calls are the same', () => {
  it('does not depend on the order of keys, at any depth', () => {
    const one = { a: 1, b: { c: [{ d: 1, e: 2 }], f: 3 } };
    const other = { b: { f: 3, c: [{ e: 2, d: 1 }] }, a: 1 };
    expect(fingerprint('summarize', one)).to.equal(fingerprint('summarize', other));
  });

  it('depends on the order of a list, the type of a value, and the operation', () => {
    const bodies = [
      { a: [1, 2] },
      { a: [2, 1] },
      { a: '1' },
      { a: 1 },
      { a: true },
      { a: null },
      { a: [] },
      { a: {} },
      {},
    ];
    const prints = bodies.map(body => fingerprint('summarize', body));
    expect(new Set(prints).size).to.equal(bodies.length);
    expect(fingerprint('solMintInfo', { a: 1 })).to.not.equal(fingerprint('summarize', { a: 1 }));
  });

  it("can't be forged by an operation or a key that looks like JSON", () => {
    expect(canonicalJson({ 'a":1,"b': 2 })).to.not.equal(canonicalJson({ a: 1, b: 2 }));
    expect(canonicalJson({ __proto__x: 1 })).to.equal('{"__proto__x":1}');
    const poisoned = JSON.parse('{"__proto__":{"text":"x"},"text":"y"}') as object;
    expect(fingerprint('summarize', poisoned)).to.not.equal(fingerprint('summarize', { text: 'y' }));
  });

  it('reads numbers as JSON does: 1, 1.0 and 1e0 are one number', () => {
    const prints = ['1', '1.0', '1e0', '10E-1'].map(text =>
      fingerprint('summarize', JSON.parse(`{"n":${text}}`) as object),
    );
    expect(new Set(prints).size).to.equal(1);
    expect(fingerprint('summarize', { n: 1.5 })).to.not.equal(fingerprint('summarize', { n: 1 }));
  });

  it('compares strings by code unit, without normalization, and distinguishes lone surrogates', () => {
    const texts = ['é', 'e\u0301', 'é ', '\ud800', '\ud801', '\ufffd', '😀', '', ' '];
    const prints = texts.map(text => fingerprint('summarize', { text }));
    expect(new Set(prints).size).to.equal(texts.length);
    expect(fingerprint('summarize', JSON.parse('{"text":"\\u00e9"}') as object)).to.equal(
      fingerprint('summarize', { text: 'é' }),
    );
  });

  it('does not depend on the order of keys, whatever their alphabet', () => {
    const keys = ['z', 'a', 'é', '😀', '\uffff', '10', '9', 'A'];
    const one = Object.fromEntries(keys.map(key => [key, 1]));
    const other = Object.fromEntries([...keys].reverse().map(key => [key, 1]));
    expect(canonicalJson(one)).to.equal(canonicalJson(other));
  });

  it('writes the examples of RFC 8785 (3.2.2 and 3.2.3) as given there', () => {
    const input = String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
      "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`;
    expect(canonicalJson(JSON.parse(input))).to.equal(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
    const names = ['\u20ac', '\r', '\ufb33', '1', '\u{1f600}', '\u0080', '\u00f6'];
    const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\u{1f600}', '\ufb33'];
    const text = canonicalJson(Object.fromEntries(names.map(name => [name, 0])));
    expect(text).to.equal(`{${sorted.map(name => `${JSON.stringify(name)}:0`).join(',')}}`);
  });

  it('accepts 64 levels and refuses more, without exhausting the stack', () => {
    expect(fingerprint('summarize', nested(64, 1))).to.match(/^[0-9a-f]{64}$/);
    expect(() => fingerprint('summarize', nested(66, 1))).to.throw(TooDeep, /nested too deeply/);
    expect(() => fingerprint('summarize', nested(50_000, 1))).to.throw(TooDeep);
  });

  it('is equal for equal JSON, and parses back to that JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), value => {
        const text = canonicalJson(value);
        expect(canonicalJson(shuffled(value))).to.equal(text);
        expect(JSON.parse(text)).to.deep.equal(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 200 },
    );
  });

  it('is unchanged since version 1.0 for a call without parameters, so that old payments can be redeemed', () => {
    expect(fingerprint('summarize', { text: 'a', n: 5 })).to.equal(
      '55b83d3fb7132aa5f109cb7375fff2f941811e6cd2d88f49c7fae3e1960e2581',
    );
  });

  it('is unchanged since version 1.0 for a call with path, query and JSON body', () => {
    const [params, query, body] = [{ id: 'a/b' }, { days: 7, tag: ['x', 'y'] }, { text: 'a', n: 5 }];
    expect(
      [
        { params, query: {}, body: undefined },
        { params: {}, query, body: undefined },
        { params: {}, query: {}, body: undefined },
        { params, query, body },
        { params: {}, query: {}, body: {} },
        { params: {}, query: {}, body, headers: {} },
      ].map(asked => fingerprintOf('quote', asked)),
    ).to.deep.equal([
      'f08c36b70c4749be55e8250d71ba3020c741cc5300fb5b4d16bd7528a7261de8',
      '62c1a1721f3a0856ed79d03ea7a3ea644e84374436b3deb837ee80ba171d3ec5',
      '547d9b1e3d528293e1c91094b3e658d161a82d17fc8d6491288be3290335760b',
      'a827e3709a17ee872f03290920b09c90c103844759c4b73e8ef59202619c1476',
      '29c60b497e2899a3e59698ada1ab99fc72b360516fb4d66582be8a25f0ec3f92',
      'd7381162405ed8d48c22b5fd3ba6c534e8c83cffbdb4af2efa08f1a133f6b7ff',
    ]);
  });

  it('is unchanged for bodies of any type, and the stored text of a call gives back exactly that call', () => {
    const none = { params: {}, query: {} };
    const photo = 'data:image/png;name=a.png;base64,AAAA';
    const calls = [
      { ...none, body: [{}, {}] },
      { ...none, body: 'a' },
      { ...none, body: 1.5 },
      { ...none, body: { text: 'a', n: 5 }, type: 'multipart/form-data' },
      { ...none, body: 'a', type: 'text/csv', accept: 'text/csv' },
      { ...none, body: { photo } },
    ];
    expect(calls.map(asked => fingerprintOf('quote', asked))).to.deep.equal([
      '6c6812f1c26f923260206fc9de3aa705f58737d97387b3b7c43ba8f8039e3f50',
      '3d984e3614d399657d23e1e9c6e2b290e3bb37eefe955a1457eb5dc995432769',
      'c70456c51bdcb604b4650fe3bbaee524a281c673e4704afce329e7fe456d4d04',
      '8697a2ec9d1c85b49ab673b30ac94cb48e163d0389802a5be68411e728c3320a',
      '6710bb6bed431c8ad9c59c121f78a89013e5fa5761df6d416488b3ba0c7230b2',
      '13be10be9a5d76d833cf7c0a0f716922a778bea56f01fdf02092c3fb27d70152',
    ]);
    for (const asked of calls) expect(readRequestText(requestText(asked))).to.deep.equal(asked);
  });

  it('includes the requested answer type if there are several and it is not the first', () => {
    const asked = { params: {}, query: {}, body: { text: 'a', n: 5 } };
    const csv = { ...asked, accept: 'text/csv' };
    expect(fingerprintOf('summarize', { ...asked })).to.equal(
      '55b83d3fb7132aa5f109cb7375fff2f941811e6cd2d88f49c7fae3e1960e2581',
    );
    expect(requestText(csv)).to.equal('[{},{},{"n":5,"text":"a"},{"accept":"text/csv"}]');
    expect(readRequestText(requestText(csv))).to.deep.equal(csv);
    expect(fingerprintOf('summarize', csv)).not.to.equal(fingerprintOf('summarize', asked));
  });

  it('distinguishes calls by path, query, declared headers, and whether there is a body', () => {
    const asked = [
      { params: {}, query: {}, body: { id: 'a' } },
      { params: { id: 'a' }, query: {}, body: {} },
      { params: { id: 'b' }, query: {}, body: {} },
      { params: {}, query: { id: 'a' }, body: {} },
      { params: {}, query: { id: 1 }, body: {} },
      { params: {}, query: { id: '1' }, body: {} },
      { params: {}, query: {}, body: {} },
      { params: {}, query: {}, body: undefined },
      { params: { id: 'a' }, query: {}, body: undefined },
      { params: {}, query: {}, body: undefined, headers: { id: 'a' } },
      { params: {}, query: {}, body: undefined, headers: { id: 'b' } },
      { params: {}, query: {}, body: { id: 'a' }, headers: { id: 'a' } },
      { params: {}, query: {}, body: { headers: { id: 'a' } } },
      { params: {}, query: { headers: { id: 'a' } }, body: undefined },
    ];
    expect(new Set(asked.map(each => fingerprintOf('quote', each))).size).to.equal(asked.length);
    for (const each of asked) expect(readRequestText(requestText(each))).to.deep.equal(each);
  });
});
