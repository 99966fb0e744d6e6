import { expect } from 'chai';
import { RE2JS } from 're2js';
import { compileContract } from '../../src/contract/compile-contract.js';
import { textMatching } from '../../src/contract/expand/pattern-sample.js';
import { importContract } from '../../src/contract/import/import-contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { matcherOf, parsedPattern, patternFault } from '../../src/contract/pattern.js';
import { hasFewSteps } from '../../src/contract/pattern-steps.js';
import { patternText } from '../../src/contract/pattern-text.js';
import { Routes } from '../../src/contract/routes.js';
import { sentTo } from '../support/sent-to.js';

/** Patterns, each with the part of a long text on which JavaScript's own engine would run for hours (the later ones: minutes). */
const SLOW: [string, string][] = [
  ['^(a+)+$', 'a'],
  ['^(a|a)*$', 'a'],
  ['^(a|aa)+$', 'a'],
  ['^([a-z]+)*$', 'a'],
  ['^(\\w+\\s?)*$', 'word '],
  ['^(([a-z])+.)+[A-Z]([a-z])+$', 'a'],
  ['^(.*a){25}$', 'a'],
  ['^((ab)*)*$', 'ab'],
  ['(x+x+)+y', 'x'],
  ['^\\d*\\d*\\d*$', '1'],
  ['[a-z]+_token_[0-9]+', 'a'],
  ['\\s+$', ' '],
  ['^a*a*a*a*$', 'a'],
  ['.*.*=.*', 'x'],
];

/** Patterns that are recognized as safe without analysis, which would take extra time. */
const QUICK = [
  '^[a-z0-9-]{1,63}$',
  '^AC[0-9a-fA-F]{32}$',
  '^[1-9A-HJ-NP-Za-km-z]{32,44}$',
  '^(?=.*\\d)(?=.*[a-z]).{8,}$',
  '^(?!admin)[a-z]+$',
  '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?Z)?$',
];

const REFUSED: [string, RegExp][] = [
  ['^(a)\\1*$', /refers back to what it matched, by \\1/],
  [
    '(?:\\p{Script_Extensions=Greek}+)+x',
    /uses the extensions of a script \(\\p\{Script_Extensions=Greek\}\)/,
  ],
  ['(?=.*\\d).*x', /looks ahead, by \(\?=\.\*\\d\)/],
  ['(?<!a)b*', /looks behind/],
  ['^((a{1,100}){1,100}){1,100}$', /repeats too much/],
  ['[', /is not a regular expression with the flag u: Unterminated character class/],
  ['a'.repeat(20_000), /longer than 10000 characters/],
  ['('.repeat(4_000), /is not a regular expression|nests too deeply/],
];

describe('A pattern of a schema', () => {
  for (const [pattern, part] of SLOW)
    it(`is matched in time linear in the text: ${pattern}`, () => {
      expect(hasFewSteps(parsedPattern(pattern))).to.equal(false);
      const matcher = matcherOf(pattern);
      matcher.test(`${part.repeat(100_000 / part.length)}!`);
      const short = part.repeat(3);
      for (const text of [short, `${short}!`, '', 'A', `${short}y`, `${short}=1`])
        expect(matcher.test(text), text).to.equal(new RegExp(pattern, 'u').test(text));
    });

  for (const pattern of QUICK)
    it(`is given to the faster engine if it is sure to match in few steps: ${pattern}`, () =>
      expect(matcherOf(pattern)).to.be.instanceOf(RegExp));

  for (const [pattern, words] of REFUSED)
    it(`is refused with a reason if neither engine is safe: ${pattern.slice(0, 40)}`, () =>
      expect(patternFault(pattern)).to.match(words));

  it('means the same in both engines', () => {
    const patterns = [
      ...[
        '.',
        '\\s',
        '\\S',
        '\\w',
        '\\W',
        '\\d',
        '\\D',
        '[^\\s]',
        '[\\W_]',
        '[^\\S\\n]',
        '[^]',
        '[]',
        '[a-c-]',
      ],
      ...[
        '^$',
        '^',
        '$',
        '\\bk\\b',
        '\\B',
        'é',
        '[À-ÿ]',
        '\\u{1f600}',
        '\\u00e9',
        '\\p{L}',
        '[\\p{Lu}\\d]',
        '\\P{L}',
      ],
      ...[
        '^a|b$',
        '(?<name>a)b?',
        '(?:ab){2,3}',
        'a{2}',
        'a{2,}?',
        '\\.',
        '\\/',
        '\\$',
        '[\\]\\-^]',
        '\\t',
        '\\x41',
        '\\cJ',
      ],
      ...['^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$', '\\p{Sc}'],
    ];
    const texts = [
      ...[
        '',
        'a',
        'b',
        'ab',
        'abab',
        'aab',
        'k',
        'ak',
        'a k b',
        'A',
        '_',
        '-',
        ']',
        '^',
        '$',
        '.',
        '/',
        '0',
        '9',
      ],
      ...[
        'é',
        'Ö',
        '😀',
        '中',
        '\n',
        '\r',
        '\t',
        ' ',
        '\u00a0',
        '\u2028',
        '\ufeff',
        '\u0085',
        'a\nb',
        'AAAA',
        'AAAAQQ==',
        '€',
      ],
    ];
    for (const pattern of patterns) {
      const linear = RE2JS.compile(patternText(parsedPattern(pattern)));
      const own = new RegExp(pattern, 'u');
      for (const text of texts)
        expect(linear.test(text), `${pattern} and ${JSON.stringify(text)}`).to.equal(own.test(text));
    }
  });

  it('has a sample that it matches, of a permitted length', () => {
    for (const [pattern, minLength, maxLength] of [
      ['^se(-[a-z0-9]+)+$', 0, 25],
      ['^[A-Z]{2}[0-9]{10}$', 0, 12],
      ['^(?:GB|DE)\\d+$', 12, 12],
      ['.{6,128}$', 6, 128],
      ['^[^\\s@]+@[^\\s@]+\\.[a-z]{2,}$', 20, 64],
      ['^(\\+|-)?\\d*$', 1, 5],
    ] as const) {
      const text = textMatching(pattern, { minLength, maxLength }) ?? '';
      expect(text, pattern).to.match(new RegExp(pattern, 'u'));
      expect(text.length, pattern).to.be.within(minLength, maxLength);
    }
    expect(textMatching('^[a-z]{4}$', { maxLength: 3 })).to.equal(undefined);
    expect(textMatching('^(a{999}){999}$', {})).to.equal(undefined);
  });
});

const PRICE = "x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }";
const UPSTREAM = "x-upstream: { url: 'https://api.example.com/' }";

describe('A contract with a pattern that a text could make slow', () => {
  const contract = (pattern: string): string => `openapi: 3.1.0
paths:
  /a:
    post:
      operationId: a
      ${PRICE}
      ${UPSTREAM}
      requestBody: { content: { application/json: { schema: { $ref: '#/components/schemas/A' } } } }
      responses: { '200': { content: { application/json: { schema: { $ref: '#/components/schemas/A' } } } } }
components:
  schemas:
    A:
      type: object
      required: [name]
      properties:
        name: { type: string, pattern: '${pattern}' }
`;

  it('rejects a call with that text', async () => {
    const text = contract('^(a+)+$');
    await compileContract(text);
    const routes = await Routes.create(parseContract(text));
    const route = routes.match('POST', '/a');
    if (route.kind !== 'operation') throw new Error(route.kind);
    const asked = (name: string) => routes.checkAsked(route, '', sentTo(route, { name }));
    expect(asked('aaa').ok).to.equal(true);
    expect(asked(`${'a'.repeat(100_000)}!`)).to.deep.include({
      ok: false,
      error: 'name must match the pattern ^(a+)+$',
    });
  });

  it('is refused with one message that names the place, along with its other errors, if no engine is safe for the pattern', async () => {
    const broken = contract('^(a)\\1*$').replace(
      "'200':",
      "'200': { content: { text/plain: { schema: { type: 7 } } } }, '201':",
    );
    const said = await compileContract(broken).then(
      () => '',
      (error: unknown) => (error as Error).message,
    );
    const lines = said.split('\n').slice(1);
    expect(lines[0]).to.equal(
      "  openapi.yaml:16 components.schemas.A.properties.name.pattern: the pattern ^(a)\\1*$ can't be matched in linear time, because it refers back to what it matched, by \\1: a text from a buyer could block the server. Rewrite the pattern without that, or leave it out",
    );
    expect(lines.filter(line => line.includes('pattern'))).to.have.length(1);
    expect(lines.join('\n')).to.contain('text/plain');
  });
});

it('An import leaves out the patterns that no engine can match, and names them', async () => {
  const patterns = ['^(a+)+$', '^(a)\\1*$', '^\\d+(?:\\:\\d+)?$', '['];
  const properties = Object.fromEntries(
    patterns.map((pattern, index) => [`p${index}`, { type: 'string', pattern }]),
  );
  const schema = {
    type: 'object',
    required: Object.keys(properties),
    properties,
    patternProperties: { '^(b+)+$': {}, '(?=b)b*': {} },
  };
  const answer = { description: 'a', content: { 'application/json': { schema } } };
  const { contract, notes } = await importContract(
    JSON.stringify({
      openapi: '3.1.0',
      info: { title: 'Slow', version: '1' },
      paths: { '/a': { get: { operationId: 'a', responses: { 200: answer } } } },
    }),
    { prices: ['*=1'], upstream: 'https://api.example.com' },
  );
  const text = JSON.stringify(contract);
  expect(text).to.contain('^(a+)+$').and.contain('^\\\\d+(?::\\\\d+)?$').and.contain('^(b+)+$');
  expect(notes).to.deep.equal([
    "the pattern ^(a)\\1*$ can't be matched in linear time, because it refers back to what it matched, by \\1, so any text is accepted there",
    'the pattern [ is not a regular expression with the flag u: Unterminated character class, so any text is accepted there',
    "the pattern (?=b)b* can't be matched in linear time, because it looks ahead, by (?=b), so any text is accepted there",
  ]);
  const { example } = parseContract(text).paid[0]?.answers[0] ?? {};
  expect(example).to.include({ p0: 'a', p2: '1' });
});
