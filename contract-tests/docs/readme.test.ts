import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { load } from '../support/load-readme.js';
import { RELEASED, SOLD } from '../support/sold.js';
import { withPrices } from '../tools/readme.js';

const ROOT = new URL('../../../', import.meta.url);

/** For each kind of command in the README: the file that runs it, and the part of that file that does so. */
const RUN_BY: [command: RegExp, file: string, part: string][] = [
  [
    /^(curl|npm run --silent (buy|ledger)) /,
    'contract-tests/docs/readme-commands.slow.test.ts',
    'for (const { command, shown }',
  ],
  [/^npm start$/, 'contract-tests/docs/readme-commands.slow.test.ts', "spawn('npm', ['start']"],
  [
    /^(make (run|operation) ?|node \.\.\/src\/cli\/coinslot\.js import )/,
    'contract-tests/docs/sell-your-own.slow.test.ts',
    'sell-your-own.md',
  ],
  [/^make dev$/, 'contract-tests/cli/dev/dev.slow.test.ts', "'dev'"],
  [/^make operation-remove /, 'contract-tests/cli/operation/operation.slow.test.ts', "'remove'"],
  [/^make (test|build)$/, '.ci/run', 'make test'],
  [
    /^export NETWORK=mainnet PAY_TO=.* PUBLIC_URL=/,
    'contract-tests/main/mainnet.test.ts',
    "NETWORK: 'mainnet'",
  ],
  [/^npm run check$/, 'contract-tests/cli/check/check.slow.test.ts', 'check/main.js'],
];

const textOf = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');

describe('The README', () => {
  const text = readFileSync(new URL('README.md', ROOT), 'utf8');

  it('has the calls and prices of the contract: make build writes them', () => {
    expect(withPrices(text, SOLD.paid)).to.equal(text);
    for (const { id, method, path, price } of SOLD.paid) {
      const row = text.split('\n').find(line => line.startsWith(`| \`${id}\``)) ?? '';
      expect(row, id).to.include(`${method} ${path}\``);
      expect(row, id).to.include(`| ${price.amount} |`);
    }
  });

  it('follows the contract when a price changes or an operation is added or removed', () => {
    const [first, ...others] = RELEASED.paid;
    const dearer = { ...first!, price: { ...first!.price, amount: '7.77' } };
    const more = {
      ...first!,
      id: 'another',
      path: '/another/{id}',
      method: 'GET' as const,
      summary: 'Another one',
    };
    const table = withPrices(text, [dearer, more, ...others.slice(1)]);
    expect(table).to.include(
      '| `summarize` | `POST /v1/summarize` `{text}` | 7.77 | one to three sentences |',
    );
    expect(table).to.include('| `another` | `GET /another/{id}` `{text}` | 0.01 | Another one |');
    expect(table).not.to.include('| `solTokenBrief` |');
  });

  it('has at most 900 words', () => {
    expect(text.split(/\s+/).filter(Boolean).length).to.be.at.most(900);
  });

  it('has only commands that a test runs', () => {
    const indented = [...text.matchAll(/^ {4}((?:make|npm|export|coinslot|node) [^#\n]*)/gm)].map(
      ([, line = '']) => line.trim(),
    );
    const shown = load(text).map(({ command }) => command);
    expect(indented.length).to.be.above(5);
    const untested = [...indented, ...shown].filter(
      command =>
        !RUN_BY.some(([pattern, file, part]) => pattern.test(command) && textOf(file).includes(part)),
    );
    expect(untested).to.deep.equal([]);
  });
});
