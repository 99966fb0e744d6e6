import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MAIN = join(ROOT, 'dist/src/cli/main.js');
/** Words that follow "make" in ordinary sentences. */
const PROSE = /^(up|of|the|them|it|real|only|a|an|its|sure|do|another|no|any|new|more|money|this|that)$/;
/** Words that follow "coinslot" in ordinary sentences, and in names that the sandbox generates. */
const NOT_COMMANDS = /^(sample|server)$/;

const filesIn = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => ending.test(name))
    .map(name => join(ROOT, folder, name));

/** The strings of a program: literals and templates, with … for each placeholder. */
function textsOf(file: string): string {
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) texts.push(node.text);
    if (ts.isTemplateExpression(node))
      texts.push([node.head.text, ...node.templateSpans.map(({ literal }) => `…${literal.text}`)].join(''));
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ES2022, true));
  return texts.join('\n');
}

const MESSAGES = [
  ...filesIn('src', /\.ts$/).map(textsOf),
  ...filesIn('src/cli', /\.cjs$/).map(file => readFileSync(file, 'utf8')),
].join('\n');
const PAGES = [
  ...filesIn('docs', /\.md$/),
  ...filesIn('examples', /\.md$/),
  ...['README.md', 'CONTRIBUTING.md'].map(name => join(ROOT, name)),
]
  .map(file => readFileSync(file, 'utf8'))
  .join('\n');
const ALL = `${MESSAGES}\n${PAGES}`;

const named = (pattern: RegExp): string[] =>
  [...new Set([...ALL.matchAll(pattern)].map(([, name = '']) => name))].sort();

/** Runs a `coinslot` command with an empty state folder. */
function run(words: string[]): Promise<{ status: number; said: string }> {
  const stateDir = mkdtempSync(join(tmpdir(), 'coinslot-'));
  const env = { PATH: process.env['PATH'], STATE_DIR: stateDir };
  return new Promise(resolve => {
    execFile(
      process.execPath,
      [MAIN, ...words],
      { cwd: ROOT, env, timeout: 30_000 },
      (error, stdout, stderr) => {
        rmSync(stateDir, { recursive: true, force: true });
        resolve({
          status: typeof error?.code === 'number' ? error.code : error ? 1 : 0,
          said: stdout + stderr,
        });
      },
    );
  });
}

describe('Every command that a message or a page names', function () {
  this.timeout(60_000);
  const targets = new Set(
    [...readFileSync(join(ROOT, 'Makefile'), 'utf8').matchAll(/^([a-z][a-z-]*)(?: [a-z -]+)?:/gm)].map(
      ([, name = '']) => name,
    ),
  );
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };

  it('make …: is a target of the Makefile', () => {
    const unknown = named(/\bmake ([a-z][a-z-]*)/g).filter(name => !targets.has(name) && !PROSE.test(name));
    expect(unknown).to.deep.equal([]);
  });

  it('npm run …: is a script of package.json', () => {
    const names = named(/\bnpm run (?:--silent )?([a-z][\w-]*)/g);
    expect(names).to.include.members(['buy', 'ledger', 'check']);
    expect(names.filter(name => !(name in scripts))).to.deep.equal([]);
  });

  it('commandLine(…): is a script here, and a command of coinslot in the folder of a shop', async () => {
    const sources = filesIn('src', /\.ts$/).map(file => readFileSync(file, 'utf8'));
    const names = new Set(
      sources.flatMap(text => [...text.matchAll(/commandLine\('(\w+)'/g)].map(([, name]) => name)),
    );
    expect(names.size).to.be.greaterThan(2);
    const { said } = await run(['help']);
    for (const name of names) {
      expect(scripts, name).to.have.property(name ?? '');
      expect(said).to.match(new RegExp(`^  ${name} `, 'm'));
    }
  });

  for (const name of named(/(?<![\w/])coinslot ([a-z]+(?:-[a-z]+)*)\b/g).filter(
    each => !NOT_COMMANDS.test(each),
  )) {
    it(`coinslot ${name}: runs`, async () => {
      const { status, said } = await run([name, '--help']);
      expect(status, said).to.equal(0);
    });
  }

  for (const name of named(/\bledger -- ([a-z]+)/g)) {
    it(`ledger ${name}: runs, and looks for the ledger`, async () => {
      const options =
        name === 'move' ? ['--to', 'file:/tmp/none.db'] : name === 'refund' ? ['abcdef12', '--tx', 'x'] : [];
      const payment = ['show', 'retry'].includes(name) ? ['abcdef12'] : [];
      const { said } = await run(['ledger', name, ...payment, ...options]);
      expect(said).to.contain('There is no ledger at');
    });
  }
});
