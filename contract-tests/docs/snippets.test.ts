import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { parse } from 'yaml';
import { SETTING_TEXTS } from '../../src/config/setting-texts.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { heldBy, PAGES, ROWS, snippetsOf, type Snippet } from '../support/snippets.js';

const ROOT = new URL('../../../', import.meta.url);
const SNIPPETS = PAGES.flatMap(snippetsOf);
const nameOf = ({ page, text }: Snippet): string => `${page}: ${text.split('\n', 1)[0]?.slice(0, 60)}`;

/** Every name in use is imported or defined, as far as can be checked without running the code. */
const UNDEFINED_NAMES = `
import ast, builtins, sys
tree = ast.parse(sys.stdin.read())
known = set(dir(builtins))
for node in ast.walk(tree):
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        known |= {(each.asname or each.name).split(".")[0] for each in node.names}
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        known.add(node.name)
    elif isinstance(node, ast.arg):
        known.add(node.arg)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        known.add(node.id)
used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
print(*sorted(used - known))
`;
const hasPython = spawnSync('python3', ['--version']).status === 0;

/** The commands of a block, without their output, and with words in place of placeholders. */
function commandsOf({ language, text }: Snippet): string {
  const lines = text.split('\n');
  const entered =
    language === 'console' ? lines.filter(line => line.startsWith('$ ')).map(line => line.slice(2)) : lines;
  return entered.join('\n').replaceAll(/<[\w ]+>|…/g, 'filled');
}

const isShell = (snippet: Snippet): boolean =>
  /^(sh|bash|console)$/.test(snippet.language) ||
  (snippet.language === 'indented' &&
    /^(npx|npm|make|cp|curl|docker|mkdir|solana-keygen|useradd|export|echo|node|claude) /.test(snippet.text));

describe(`The ${SNIPPETS.length} snippets of README and docs`, () => {
  it('are each run by a test, read as data or shown as output, or say why nothing runs them', () => {
    expect(SNIPPETS.length).to.be.above(100);
    expect(SNIPPETS.filter(snippet => heldBy(snippet) === undefined).map(nameOf)).to.deep.equal([]);
    const whys = SNIPPETS.map(heldBy).filter(held => typeof held === 'object' && 'why' in held);
    expect(whys.length).to.be.at.most(23);
  });

  it('are run by tests that exist and name what they run; no row refers to a snippet that is gone', () => {
    for (const [page, text, held] of ROWS) {
      const fits = SNIPPETS.some(snippet => page.test(snippet.page) && text.test(snippet.text));
      expect(fits, `${page} ${text}`).to.equal(true);
      if (typeof held === 'object' && 'by' in held)
        expect(readFileSync(new URL(held.by, ROOT), 'utf8'), held.by).to.contain(held.part);
    }
  });

  for (const snippet of SNIPPETS.filter(isShell))
    it(`are commands that a shell can parse: ${nameOf(snippet)}`, () => {
      const { status, stderr } = spawnSync('bash', ['-n'], { input: commandsOf(snippet), encoding: 'utf8' });
      expect(status, stderr).to.equal(0);
    });

  for (const snippet of SNIPPETS.filter(({ language }) => language === 'json'))
    it(`are JSON: ${nameOf(snippet)}`, () => expect(JSON.parse(snippet.text)).to.be.an('object'));

  for (const snippet of SNIPPETS.filter(({ language }) => language === 'yaml'))
    it(`are YAML: ${nameOf(snippet)}`, () => expect(parse(snippet.text)).to.be.an('object'));

  for (const snippet of SNIPPETS.filter(({ language }) => /^[tj]s$/.test(language)))
    it(`are code that a compiler can parse, and import what they use: ${nameOf(snippet)}`, () => {
      const text = snippet.text.replaceAll(/, …(?= })|(?<=await )…/g, '');
      const source = ts.createSourceFile(
        'snippet.ts',
        text.replaceAll('await ;', ''),
        ts.ScriptTarget.ES2022,
      ) as ts.SourceFile & {
        parseDiagnostics: ts.Diagnostic[];
      };
      expect(source.parseDiagnostics.map(({ messageText }) => messageText)).to.deep.equal([]);
    });

  for (const snippet of SNIPPETS.filter(({ language }) => language === 'python'))
    (hasPython ? it : it.skip)(`are Python that imports or defines every name: ${nameOf(snippet)}`, () => {
      const { status, stdout, stderr } = spawnSync('python3', ['-c', UNDEFINED_NAMES], {
        input: snippet.text,
        encoding: 'utf8',
      });
      expect(status, stderr).to.equal(0);
      expect(stdout.trim()).to.equal('');
    });

  for (const snippet of SNIPPETS.filter(each => heldBy(each) === 'read' && /^[A-Z_]+=/.test(each.text)))
    it(`are settings that the server reads: ${nameOf(snippet)}`, () => {
      const names = [...snippet.text.matchAll(/^([A-Z_]+)=/gm)].map(([, name = '']) => name);
      expect(names.filter(name => !(name in SETTING_TEXTS))).to.deep.equal([]);
    });

  const ofContract = SNIPPETS.filter(
    each => heldBy(each) === 'read' && /^(x-|info:| {2}\/v1)/.test(each.text),
  );
  for (const snippet of ofContract)
    it(`are parts of a contract: ${nameOf(snippet)}`, () => {
      const { info, paths } = contractWith(snippet.text);
      const contract = parseContract(
        JSON.stringify({ openapi: '3.1.0', info, paths, components: COMPONENTS }),
      );
      expect(contract.document.info).to.deep.include(info);
    });
});

type Part = { info?: object; [key: string]: unknown };
const COMPONENTS = { schemas: { Quote: { type: 'object' } } };
const ANSWER = { description: 'An answer.', content: { 'application/json': { schema: { type: 'object' } } } };
const OPERATION = {
  operationId: 'sold',
  summary: 'Sold',
  'x-price': { mode: 'fixed', currency: 'USD', amount: '0.01', flow: 'authorization' },
  parameters: [
    { name: 'days', in: 'query', required: true, schema: { type: 'integer', minimum: 1, maximum: 100 } },
  ],
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
      },
    },
  },
  responses: { '200': ANSWER },
};

/** A complete contract around a part of one: its info, a path, or an operation's price. */
function contractWith(text: string): { info: object; paths: object } {
  const part = parse(text) as Part;
  const info = { title: 'Any shop', version: '1.0.0', ...part.info };
  if (part.info) return { info, paths: {} };
  const isPath = Object.keys(part).some(key => key.startsWith('/'));
  return { info, paths: isPath ? part : { '/sold': { post: { ...OPERATION, ...part } } } };
}
