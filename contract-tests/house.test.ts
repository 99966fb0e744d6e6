import { expect } from 'chai';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Lines that say something: neither blank nor a comment alone. */
const MAX_LINES = 450;
const FOLDERS = ['src', 'handlers', 'contract-tests', 'bench'];
const TEXTS = ['docs', 'README.md', 'CONTRIBUTING.md'];

/** The only readers of the environment: the server, the sandbox process and the buyer have one each. */
const ENVIRONMENT_READERS = [
  'src/config.ts',
  'src/sandbox/main.ts',
  'src/buyer/main.ts',
  'src/bookkeeper/main.ts',
];

/** Modules and folders that a part must not import. A folder ends with a slash, relative to the root. */
const FORBIDDEN: { part: string; imports: RegExp; why: string; except?: string[]; typesToo?: false }[] = [
  {
    part: 'src/payments/',
    imports: /^(koa|koa-.*|@koa\/.*|openapi-backend|src\/upstreams\/.*)$/,
    why: 'payments know neither HTTP framework nor backends',
  },
  {
    part: 'src/ledger/',
    imports: /^(koa|koa-.*|@koa\/.*|openapi-backend|(src\/(?!ledger\/)|handlers\/|generated\/).*)$/,
    why: 'the ledger imports nothing from other folders',
  },
  {
    part: 'handlers/',
    imports: /^(koa|koa-.*|@koa\/.*|src\/config\.ts|src\/payments\/.*)$/,
    why: 'handlers know types and ports alone',
  },
  {
    part: '',
    imports: /^src\/ledger\/(sql|queries\/.*)\.ts$/,
    why: 'the SQL of the ledger is its own: others ask the ledger',
    except: ['src/ledger/', 'contract-tests/'],
    typesToo: false,
  },
  {
    part: 'src/',
    imports: /^handlers\//,
    why: 'only compose.ts imports handlers',
    except: ['src/compose.ts'],
  },
  {
    part: 'src/',
    imports: /^src\/sandbox\//,
    why: 'production code never imports the sandbox',
    except: ['src/endpoints.ts', 'src/sandbox/'],
  },
  {
    part: 'src/payments/',
    imports: /^@solana\//,
    why: 'a payment is read and checked without them, at a fraction of their cost',
  },
  { part: '', imports: /^contract-tests\//, why: 'nothing imports the tests', except: ['contract-tests/'] },
];

// Split, so that this file does not break its own rules.
const UNFINISHED = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME'].join('|')})\\b`);
const FOREIGN: [RegExp, string][] = [
  [new RegExp(`\\b${'iss' + 'ue'} #\\d*`, 'i'), 'the number of an issue'],
  [new RegExp(`(?<![\\w.-])/${'wo' + 'rk'}/`), 'a path of somebody’s machine'],
  [new RegExp(`\\b(earlier|previous|last|parallel) ${'sess' + 'ion'}s?\\b`, 'i'), 'who wrote it when'],
];
/** One named rule may be off for one line; never the compiler, nor the linter as a whole. */
const SILENCERS = /@ts-(ignore|nocheck|expect-error)|eslint-disable(?!(-next)?-line @?[\w/-]+)/;

function* filesIn(root: string, folder: string): Generator<string> {
  const path = join(root, folder);
  if (!existsSync(path)) return;
  if (statSync(path).isFile()) return yield folder;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    // Installed, built or fetched, not ours: packages, virtual environments, build output.
    if (/^(node_modules|dist(-.*)?|build|target|generated|\..*)$/.test(entry.name)) continue;
    const name = posix.join(folder.split(sep).join('/'), entry.name);
    if (entry.isDirectory()) yield* filesIn(root, name);
    else yield name;
  }
}

type Found = {
  imports: { target: string; type: boolean }[];
  readsEnvironment: boolean;
  hasAny: boolean;
};

function examine(file: string, text: string): Found {
  const found: Found = { imports: [], readsEnvironment: false, hasAny: false };
  const visit = (node: ts.Node): void => {
    const target = importedBy(node);
    const name = target?.startsWith('.') ? resolveImport(file, target) : target;
    if (name) found.imports.push({ target: name, type: isErased(node) });
    if (node.kind === ts.SyntaxKind.AnyKeyword) found.hasAny = true;
    if (ts.isPropertyAccessExpression(node) && node.getText() === 'process.env')
      found.readsEnvironment = true;
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true));
  return found;
}

function importedBy(node: ts.Node): string | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
    return node.moduleSpecifier && ts.isStringLiteral(node.moduleSpecifier)
      ? node.moduleSpecifier.text
      : undefined;
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
    return node.argument.literal.getText().slice(1, -1);
  if (ts.isCallExpression(node) && /^(import|require)$/.test(node.expression.getText())) {
    const [target] = node.arguments;
    return target && ts.isStringLiteralLike(target) ? target.text : undefined;
  }
  return undefined;
}

/** Nothing is loaded for it. Braces full of types alone are loaded all the same. */
function isErased(node: ts.Node): boolean {
  return (
    ts.isTypeNode(node) ||
    (ts.isImportDeclaration(node) && node.importClause?.isTypeOnly === true) ||
    (ts.isExportDeclaration(node) && node.isTypeOnly)
  );
}

function resolveImport(file: string, target: string): string {
  return posix.normalize(posix.join(posix.dirname(file), target)).replace(/\.js$/, '.ts');
}

const within = (file: string, parts: string[] = []): boolean =>
  parts.some(part => (part.endsWith('/') ? file.startsWith(part) : file === part));

function codeFaults(file: string, text: string): string[] {
  const { imports, readsEnvironment, hasAny } = examine(file, text);
  const faults = [...importFaults(file, imports), ...shapeFaults(file, text)];
  const tested = file.startsWith('contract-tests/') || file.startsWith('bench/');
  if (readsEnvironment && !tested && !ENVIRONMENT_READERS.includes(file))
    faults.push(`${file} reads process.env`);
  // In tests the linter asks for a named exception.
  if (hasAny && !tested) faults.push(`${file} has an any`);
  if (SILENCERS.test(text) && !file.endsWith('house.test.ts'))
    faults.push(`${file} silences the compiler or the linter`);
  return faults;
}

function importFaults(file: string, imports: Found['imports']): string[] {
  return FORBIDDEN.filter(({ part, except }) => file.startsWith(part) && !within(file, except)).flatMap(
    ({ imports: forbidden, why, typesToo = true }) =>
      imports
        .filter(({ target, type }) => forbidden.test(target) && (typesToo || !type))
        .map(({ target }) => `${file} imports ${target}: ${why}`),
  );
}

function shapeFaults(file: string, text: string): string[] {
  const faults: string[] = [];
  const name = posix.basename(file);
  if (/^(utils?|common|helpers?)\.ts$/.test(name)) faults.push(`${file} is named after nothing`);
  if (name === 'index.ts' && file !== 'handlers/index.ts') faults.push(`${file} is a barrel`);
  const lines = text.split('\n').filter(line => !/^\s*($|\/\/|\/?\*)/.test(line)).length;
  if (file.startsWith('src/') && lines > MAX_LINES)
    faults.push(`${file} has ${lines} lines of code, at most ${MAX_LINES}`);
  return faults;
}

function textFaults(file: string, text: string): string[] {
  const faults = FOREIGN.filter(([pattern]) => pattern.test(text)).map(
    ([, what]) => `${file} mentions ${what}`,
  );
  if (UNFINISHED.test(text)) faults.push(`${file} is unfinished`);
  return faults;
}

function packageFaults(root: string): string[] {
  const faults: string[] = [];
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
    string,
    Record<string, string>
  >;
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
      faults.push(`package.json: ${name} ${version} is not an exact version`);
  }
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { resolved?: string }>;
  };
  for (const [name, { resolved }] of Object.entries(lock.packages)) {
    if (resolved !== undefined) faults.push(`package-lock.json: ${name} names its host`);
  }
  return faults;
}

/** Everything in the tree that breaks a rule of the house. */
function faultsOf(root: string): string[] {
  const faults = packageFaults(root);
  for (const file of [...FOLDERS, ...TEXTS].flatMap(folder => [...filesIn(root, folder)])) {
    if (!/\.(ts|js|mjs|cjs|md|ya?ml|json|py|sh|sql|html|css|txt)$/.test(file)) continue;
    const text = readFileSync(join(root, file), 'utf8');
    faults.push(...textFaults(file, text));
    if (file.endsWith('.ts')) faults.push(...codeFaults(file, text));
  }
  return faults;
}

describe('The house', () => {
  it('keeps its rules', function () {
    this.timeout(60_000);
    expect([...filesIn(ROOT, 'src')]).to.have.length.above(30);
    expect(faultsOf(ROOT).join('\n')).to.equal('');
  });
});

describe('The check of the house', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'house-'));
    write('package.json', '{"dependencies":{"koa":"3.3.0"},"devDependencies":{"chai":"6.3.0-rc.1"}}');
    write('package-lock.json', '{"packages":{"":{},"node_modules/koa":{"version":"3.3.0"}}}');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  function write(file: string, text: string): void {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }

  it('finds nothing in a tidy tree', () => {
    write('src/compose.ts', "import Koa from 'koa';\nimport { a } from '../handlers/index.js';\n");
    write('src/endpoints.ts', "const a = () => import('./sandbox/child.js');\n");
    write('src/config.ts', 'export const read = (env = process.env) => env;\n');
    write(
      'src/ledger/store.ts',
      "import { a } from './sql.js';\nimport pg from 'pg';\n// anything goes\nexport const any = a;\n",
    );
    write('src/ledger/books.ts', "import { find } from './queries/claims.js';\n");
    write('src/payments/desk.ts', "import type { A } from '../contract.js';\n");
    write('handlers/index.ts', "import type { A } from '../src/operation.js';\n");
    write(
      'contract-tests/a.test.ts',
      "import { a } from '../src/payments/desk.js';\nimport './b.js';\nprocess.env.A;\n",
    );
    write('src/long.ts', '// a comment\n\n'.repeat(1000));
    write('src/text.ts', '// eslint-disable-next-line no-control-regex -- these are the ones to go\n');
    write('README.md', 'A payment has no issue; a session ends after an hour.');
    expect(faultsOf(root)).to.deep.equal([]);
  });

  const broken: [string, string, string][] = [
    ['src/payments/a.ts', "import type { PublicKey } from '@solana/web3.js';", 'imports @solana/web3.js'],
    ['src/payments/a.ts', "import Koa from 'koa';", 'imports koa'],
    ['src/payments/a.ts', "import type { Context } from 'koa';", 'imports koa'],
    ['src/payments/a.ts', "export * from '@koa/router';", 'imports @koa/router'],
    ['src/payments/a.ts', "const a = await import('openapi-backend');", 'imports openapi-backend'],
    [
      'src/payments/deep/a.ts',
      "import { a } from '../../upstreams/fair-queue.js';",
      'imports src/upstreams/fair-queue.ts',
    ],
    [
      'src/payments/a.ts',
      "type A = import('../upstreams/fair-queue.js').A;",
      'imports src/upstreams/fair-queue.ts',
    ],
    ['src/ledger/a.ts', "import type { A } from '../contract.js';", 'imports src/contract.ts'],
    ['src/ledger/a.ts', "import '../payments/price.js';", 'imports src/payments/price.ts'],
    [
      'src/ledger/a.ts',
      "import type { A } from '../../generated/openapi.js';",
      'imports generated/openapi.ts',
    ],
    [
      'src/payments/a.ts',
      "import { find } from '../ledger/queries/claims.js';",
      'imports src/ledger/queries/claims.ts',
    ],
    ['src/app.ts', "const a = await import('./ledger/sql.js');", 'imports src/ledger/sql.ts'],
    ['handlers/a.ts', "import { a } from '../src/config.js';", 'imports src/config.ts'],
    ['handlers/a.ts', "import { a } from '../src/payments/desk.js';", 'imports src/payments/desk.ts'],
    ['src/app.ts', "import { a } from '../handlers/summarize.js';", 'imports handlers/summarize.ts'],
    ['src/app.ts', "import { a } from './sandbox/child.js';", 'imports src/sandbox/child.ts'],
    ['src/buyer/main.ts', "import { a } from '../sandbox/info.js';", 'imports src/sandbox/info.ts'],
    [
      'src/app.ts',
      "import { a } from '../contract-tests/support/a.js';",
      'imports contract-tests/support/a.ts',
    ],
    ['src/app.ts', 'const port = process.env.PORT;', 'reads process.env'],
    ['handlers/a.ts', "const port = process.env['PORT'];", 'reads process.env'],
    ['src/a.ts', 'const a: any = 1;', 'has an any'],
    ['handlers/a.ts', 'const a = 1 as any;', 'has an any'],
    ['src/a.ts', '// @ts-ignore\n', 'silences'],
    ['src/a.ts', '/* eslint-disable */', 'silences'],
    ['src/a.ts', '// eslint-disable-next-line\n', 'silences'],
    ['src/payments/charge.ts', 'a();\n'.repeat(701), 'has 701 lines of code'],
    ['src/utils.ts', '', 'named after nothing'],
    ['src/payments/common.ts', '', 'named after nothing'],
    ['src/payments/index.ts', '', 'is a barrel'],
    ['src/a.ts', 'a();\n'.repeat(451), 'has 451 lines of code'],
    ['src/a.ts', `// ${'TO' + 'DO'} later`, 'is unfinished'],
    ['docs/a.md', `${'FIX' + 'ME'}: words`, 'is unfinished'],
    ['README.md', `see ${'iss' + 'ue'} #12`, 'mentions the number'],
    ['docs/a.md', `run it in /${'wo' + 'rk'}/main`, 'mentions a path'],
    ['src/a.ts', `// written in an earlier ${'sess' + 'ion'}`, 'mentions who'],
    ['package.json', '{"dependencies":{"koa":"^3.3.0"}}', 'not an exact version'],
    ['package.json', '{"devDependencies":{"koa":"latest"}}', 'not an exact version'],
    [
      'package-lock.json',
      '{"packages":{"node_modules/koa":{"resolved":"https://mirror.example/koa.tgz"}}}',
      'names its host',
    ],
  ];
  for (const [file, text, fault] of broken) {
    it(`finds ${file}: ${text.slice(0, 60).trim() || 'its name'}`, () => {
      write(file, text);
      const faults = faultsOf(root);
      expect(faults).to.have.length(1);
      expect(faults[0]).to.contain(file).and.to.contain(fault);
    });
  }
});
