import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { parseContract } from '../../../src/contract/parse-contract.js';
import { rows } from '../../support/extent.js';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const MAIN = fileURLToPath(new URL('../../../src/cli/operation/main.js', import.meta.url));

const INDEX = `import type { operations } from '../generated/openapi.js';
import type { HandlersOf } from 'coinslot';
import { askPeople, peopleReady } from './askPeople.js';

export const handlers = {
  askPeople: ({ log }) => ({
    call: askPeople(log),
    ready: peopleReady(log),
  }),
} satisfies HandlersOf<operations>;
`;

type Run = { status: number | null; stdout: string; stderr: string };

describe('coinslot operation', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-operation-'));
    copyFileSync(join(ROOT, 'openapi.yaml'), join(folder, 'openapi.yaml'));
    mkdirSync(join(folder, 'handlers'));
    writeFileSync(join(folder, 'handlers', 'index.ts'), INDEX);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function run(...args: string[]): Run {
    return spawnSync(process.execPath, [MAIN, ...args], { cwd: folder, encoding: 'utf8', timeout: 20_000 });
  }

  function ran(...args: string[]): string {
    const { status, stdout, stderr } = run(...args);
    expect(status, stderr).to.equal(0);
    return stdout;
  }

  const contract = (): string => readFileSync(join(folder, 'openapi.yaml'), 'utf8');
  const tree = (): Record<string, string> =>
    Object.fromEntries(
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name))
        .map(file => [file, readFileSync(file, 'utf8')]),
    );

  const kinds: [string, string[]][] = [
    ['by a handler', []],
    ['by a handler, paid up front', ['--flow', 'upfront']],
    ['with a price by the unit', ['--price-by', 'length of /body/text, 0.001 per 1000, at most 0.02']],
    ['with a price of its handler', ['--price-by', 'handler, at most 0.02']],
    ['by an upstream', ['--upstream', 'https://api.example.com/v1/stats']],
    [
      'by GET, with parameters in path and query',
      [
        ...['--method', 'GET', '--route', '/v1/quotes/{symbol}', '--request', '{"symbol":"SOL","days":7}'],
        ...[
          '--upstream',
          'https://api.example.com/{symbol}',
          '--answer',
          '{"price":1.5,"at":["x"],"no":null}',
        ],
      ],
    ],
    [
      'with texts that YAML could misread',
      ['--answer', '{"yes":"no","text":"a: b # c","long":"' + 'x y '.repeat(50) + 'z"}'],
    ],
  ];
  for (const [kind, options] of rows(kinds)) {
    it(`adds one ${kind}, which the server accepts; after its removal, the folder is unchanged`, () => {
      const before = tree();
      ran('add', 'textStats', '--price', '0.02', ...options);
      const added = parseContract(contract()).paid.find(({ id }) => String(id) === 'textStats');
      expect(added?.price.atomic).to.equal(20_000n);
      expect(added?.flow).to.equal(options.includes('upfront') ? 'upfront' : 'authorization');
      expect(existsSync(join(folder, 'handlers', 'textStats.ts'))).to.equal(!options.includes('--upstream'));
      ran('remove', 'textStats');
      expect(tree()).to.deep.equal(before);
    });
  }

  it('keeps every other line of the contract, in order', () => {
    const before = `# first\n${contract().replace('  /v1/tts:', '  # above a path\n\n  /v1/tts: # beside it')}# last\n`;
    writeFileSync(join(folder, 'openapi.yaml'), before);
    ran('add', 'textStats', '--price', '0.02');
    const after = contract().split('\n');
    let at = 0;
    for (const line of before.split('\n')) {
      at = after.indexOf(line, at) + 1;
      expect(at, line).to.be.above(0);
    }
    ran('remove', 'textStats');
    expect(contract()).to.equal(before);
  });

  it('infers schemas from one example, and limits what a caller may send', () => {
    ran(
      ...[
        'add',
        'textStats',
        '--price',
        '0.02',
        '--request',
        '{"text":"a","n":1}',
        '--answer',
        '{"at":[{"x":1.5}]}',
      ],
    );
    const document = parse(contract()) as Record<string, any>; // eslint-disable-line @typescript-eslint/no-explicit-any -- asserted on
    const { schema, example } = document.paths['/v1/text-stats'].post.requestBody.content['application/json'];
    expect(example).to.deep.equal({ text: 'a', n: 1 });
    expect(schema).to.deep.equal({
      type: 'object',
      required: ['text', 'n'],
      properties: { text: { type: 'string', minLength: 1, maxLength: 10_000 }, n: { type: 'integer' } },
    });
    expect(document.components.schemas.TextStats.properties.at.items).to.deep.equal({
      type: 'object',
      additionalProperties: true,
      required: ['x'],
      properties: { x: { type: 'number' } },
    });
  });

  it('removes what only that operation needed, and adds it again for the next one', () => {
    const { paid } = parseContract(contract());
    for (const { id } of paid) ran('remove', id);
    expect(parseContract(contract()).paid).to.deep.equal([]);
    for (const gone of ['Summary', 'PaymentChallenge', 'PAYMENT-SIGNATURE', 'name: Audio', '/tts/health'])
      expect(contract()).not.to.contain(gone);
    ran('add', 'textStats', '--price', '0.02', '--flow', 'upfront');
    expect(parseContract(contract()).paid.map(({ id }) => String(id))).to.deep.equal(['textStats']);
    for (const back of ['    PaymentChallenge:', '    PAYMENT-SIGNATURE:', '    Prefer:'])
      expect(contract()).to.contain(back);
  });

  it('removes a handler whose entry has several lines', () => {
    ran('add', 'askPeople', '--price', '0.02', '--upstream', 'https://api.example.com/');
    ran('remove', 'askPeople');
    const index = readFileSync(join(folder, 'handlers', 'index.ts'), 'utf8');
    expect(index).not.to.contain('eople');
    expect(index).to.contain('export const handlers = {} satisfies');
  });

  it('removes a handler in a folder, with its test, and keeps other files of the folder', () => {
    ran('add', 'textStats', '--price', '0.02');
    const place = (...names: string[]): string => join(folder, ...names);
    for (const top of ['handlers', 'test']) mkdirSync(place(top, 'text-stats'));
    renameSync(place('handlers', 'textStats.ts'), place('handlers', 'text-stats', 'text-stats.ts'));
    renameSync(place('test', 'textStats.test.ts'), place('test', 'text-stats', 'text-stats.test.ts'));
    writeFileSync(place('handlers', 'text-stats', 'words.ts'), '');
    const index = readFileSync(place('handlers', 'index.ts'), 'utf8');
    writeFileSync(
      place('handlers', 'index.ts'),
      index.replace('./textStats.js', './text-stats/text-stats.js'),
    );
    ran('remove', 'textStats');
    expect(readFileSync(place('handlers', 'index.ts'), 'utf8')).to.equal(INDEX);
    expect(readdirSync(place('handlers', 'text-stats'))).to.deep.equal(['words.ts']);
    expect(existsSync(place('test', 'text-stats'))).to.equal(false);
  });

  const refused: [string, string[], string][] = [
    [
      'an operation that exists',
      ['add', 'summarize', '--price', '1'],
      'openapi.yaml already has an operation summarize',
    ],
    ['a path that exists', ['add', 'a', '--price', '1', '--path', '/v1/tts'], 'has post /v1/tts already'],
    ['an invalid price', ['add', 'a', '--price', 'free'], "amount 'free' is not a decimal string"],
    ['no price', ['add', 'a'], '--price is missing'],
    ['a name that is not an identifier', ['add', 'text-stats', '--price', '1'], "not 'text-stats'"],
    ['a name that TypeScript reserves', ['add', 'delete', '--price', '1'], "not 'delete'"],
    [
      'an example that is not JSON',
      ['add', 'a', '--price', '1', '--request', '{text}'],
      '--request must be a JSON',
    ],
    ['a parameter without an example', ['add', 'a', '--price', '1', '--route', '/{b}'], 'example of b'],
    ['an invalid price rule', ['add', 'a', '--price', '1', '--price-by', 'words'], '--price-by must be like'],
    ['an unknown flow', ['add', 'a', '--price', '1', '--flow', 'later'], '--flow must be'],
    ['the removal of an unknown operation', ['remove', 'nothing'], 'has no operation nothing'],
    ['an unknown option', ['add', 'a', '--cost', '1'], "Unknown option '--cost'"],
  ];
  for (const [name, args, says] of rows(refused)) {
    it(`refuses ${name}, and changes nothing`, () => {
      const before = tree();
      const { status, stderr } = run(...args);
      expect(status).to.equal(1);
      expect(stderr)
        .to.contain(says)
        .and.not.to.match(/^\s+at /m);
      expect(tree()).to.deep.equal(before);
    });
  }
});
