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
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDERS = ['src', 'handlers', 'contract-tests', 'bench'];
const TEXTS = ['docs', 'README.md', 'CONTRIBUTING.md'];
/** The maximum number of lines in a file of src/, including comments and blank lines. */
const MAX_LINES = 400;

/** The only place where commands write to a terminal: it removes control characters from text that strangers wrote. */
const TERMINAL = 'src/cli/terminal.ts';
const PRINTS = /\b(stdout|stderr)\s*(\.write\b|[\w,\s]*\}\s*=\s*process\b)|\bconsole\.\w+\(|writeSync\([12],/;

/** The only files at the root of src/. */
const ROOT_FILES = ['src/main.ts', 'src/compose.ts', 'src/config.ts'];
/** The folders of src/, and handlers/. Each imports only from those further down; folders on one line don't import each other. */
const ORDER = [
  ['main'],
  ['compose', 'cli'],
  ['site', 'testing'],
  ['mcp', 'admin'],
  ['http'],
  ['books'],
  ['sale', 'documents', 'checks', 'operator', 'webhooks'],
  ['offers', 'wallet', 'facilitators'],
  ['methods'],
  ['handlers'],
  ['shop'],
  ['endpoints'],
  ['upstreams', 'sandbox', 'pages'],
  ['config'],
  ['rails'],
  ['admission'],
  ['observe', 'receipts', 'sign-in'],
  ['ledger'],
  ['contract'],
  ['price'],
  ['net'],
];

/** The only files that read the environment: one each for the server, the sandbox process and the commands. */
const ENVIRONMENT_READERS = [
  'src/config.ts',
  'src/sandbox/main.ts',
  'src/cli/buy/main.ts',
  'src/cli/conformance/main.ts',
  'src/cli/dev/main.ts',
  'src/cli/ledger/main.ts',
  'src/cli/list/main.ts',
  'src/cli/mcp/main.ts',
  'src/cli/verify-receipt/main.ts',
];

/** The folders between a payment and its answer: they know neither the HTTP front nor the backends. */
const SELLING = [
  'sale',
  'admission',
  'offers',
  'methods',
  'facilitators',
  'rails',
  'documents',
  'checks',
].map(folder => `src/${folder}/`);

/** The folders of the package `coinslot-sandbox`: a shop that sells on mainnet is installed without it. */
const SANDBOX_PACKAGE = [
  'sandbox',
  'wallet',
  'testing',
  'cli/buy',
  'cli/canary',
  'cli/conformance',
  'cli/list',
  'cli/mcp',
  'cli/testing',
].map(folder => `src/${folder}/`);

/** What parts of the code must not import: modules, and folders (with a slash at the end, relative to the root). */
const FORBIDDEN: { part: string; imports: RegExp; why: string; except?: string[]; typesToo?: false }[] = [
  ...SELLING.map(part => ({
    part,
    imports: /^(koa|koa-.*|@koa\/.*|openapi-backend|src\/upstreams\/.*)$/,
    why: 'payments know neither HTTP framework nor backends',
  })),
  {
    part: 'src/sale/',
    imports: /^src\/((rails|methods)\/[^/]+|facilitators|offers)\//,
    why: "'sale/ uses the interfaces of methods and rails, and none of their implementations'",
  },
  {
    part: 'src/ledger/',
    imports: /^(koa|koa-.*|@koa\/.*|openapi-backend|(src\/(?!ledger\/)|handlers\/|generated\/).*)$/,
    why: 'the ledger imports nothing from other folders',
  },
  {
    part: 'handlers/',
    imports: /^(koa|koa-.*|@koa\/.*|src\/.*)$/,
    why: '"handlers import everything of the server from \'coinslot\'"',
  },
  {
    part: 'src/',
    imports: /^coinslot$/,
    why: 'the server does not import the module that it gives to handlers',
  },
  {
    part: '',
    imports: /^src\/ledger\/(sql|queries\/.*)\.ts$/,
    why: 'other folders call the ledger and write no SQL, except that operations write SQL for their own tables',
    except: ['src/ledger/', 'src/shop/for-handlers.ts', 'contract-tests/'],
    typesToo: false,
  },
  {
    part: 'src/',
    imports: /^handlers\//,
    why: 'handlers belong to a shop: src/shop/ loads them from its folder',
  },
  {
    part: 'src/',
    imports: /^src\/(sandbox|wallet|testing|cli\/(buy|conformance|list|mcp|testing))\//,
    why: 'the sandbox is a package of its own, which the engine loads by src/endpoints/sandbox-package.ts',
    except: SANDBOX_PACKAGE,
    typesToo: false,
  },
  ...SELLING.map(part => ({
    part,
    imports: /^@solana\//,
    why: 'a payment is decoded and checked without these packages, which would cost many times as much',
  })),
  {
    part: 'src/',
    imports: /^src\/cli\//,
    why: 'code that a command shares with the server belongs to the folder of its subject',
    except: ['src/cli/'],
  },
  { part: '', imports: /^contract-tests\//, why: 'nothing imports the tests', except: ['contract-tests/'] },
];

/** Internal modules of packages. Those listed here are entry points that the package documents. */
const PACKAGE_INSIDES = /^(@[^/]+\/)?[^@./][^/]*\/(lib|dist|src|build)\//;
const DOCUMENTED = ['ajv/dist/2020.js', 'litesvm/dist/internal.js'];
/** Private fields of Node's objects, and imports that no tool can resolve. */
const PRIVATE = /\b(createRequire|_header|_httpMessage|_headerSent)\b/;

/** Retired names, which said nothing to a reader who knows x402, HTTP, OpenAPI and Solana. */
const RETIRED_NAMES = new Set(
  `Desk desk Lobby lobby openShop Front Door Books Archive Shelf ReplyBook replyBookOf openBooks booksOf archiveOf Examiner
  Examined examine forsaken makeGood noted Told Addressee Ended Over Asker Redemption Judgement glance houseReply HeldCallers trustIn
  KeptTrust whenClosed HandlingParts copyLedger movesOf upkeepOf Upkeep Stage Dice dice MemoryBook Founders foundTokens`.split(
    /\s+/,
  ),
);
const RETIRED_FILES =
  /^(desk|lobby|shop|books|replybook|reply-book|examine|proof|trust|house|closed|quiet|handling|watch|exchange|pool|told|redemption|judge|callers-held|held-callers|cell|stage|dice|upkeep|moves)(\.slow)?(\.test)?\.ts$/;
const RETIRED_FOLDERS = /(^|\/)(bookkeeper|buyer)\//;
/** Chains and payment methods are behind interfaces, so no identifier or string in these folders may name one. */
const NEUTRAL = /^src\/(sale|ledger)\//;
const RAILS_AND_METHODS = /usdc|solana|blockhash|lamport|x402/i;
/** Released migrations are not edited, so they may name a chain or a payment method. */
const HISTORY = 'src/ledger/migrations.ts';
/** The column that servers of earlier versions write instead of `method`, and the values that they put there. */
const OLD_COLUMN = /\bx402_version\b|^x402-v1?$/g;
/** Folders that know operations only through the contract. */
const NAMELESS =
  /^src\/(http|sale|admission|offers|methods|facilitators|rails|documents|checks|contract|ledger)\//;
/** Field names that x402, HTTP, Solana or programs in general also use for something else. */
const COMMON_NAMES = new Set(
  `text name network mint supply decimals tokenProgram summary method responses sources value type
  bytes size since key unknown address state number older newer group program authority uri fields changed maximum epoch
  extensions sentence frozen initialized source used slot
  accounts amount at code findings kind owner required signature signers`.split(/\s+/),
);

/**
 * Words about a single operation of a shop, which the engine must use neither as identifiers nor in strings. Migrations
 * know what earlier ledgers held. `respondents-absent` is a situation that a seller's tests can choose.
 */
const OF_ONE_OPERATION: { part: RegExp; words: RegExp; except: RegExp }[] = [
  {
    part: /^src\/(ledger|sale)\//,
    words: /sentiment|respondent|repl(y|ies)/i,
    except: /^src\/ledger\/migrations\.ts$/,
  },
  {
    part: /^src\//,
    words: /sentiment|respondent/i,
    except: /^src\/(ledger\/migrations\.ts|(cli\/)?testing\/.*)$/,
  },
];

/** Checked in strings, where any word may occur: only words that have no other meaning here. */
const RETIRED_WORDS = /\b(bookkeeper|house (respondents?|repl(y|ies))|replybook|the (desk|lobby))\b/i;
/**
 * Files that may share a name with another file: every main.ts, and the files of the ledger's queries, which are named after what
 * their statements do.
 */
const SAME_NAME_ALLOWED = /^(src\/ledger\/queries\/|src\/([\w-]+\/)*main\.ts$)/;

const ITSELF = 'contract-tests/architecture/architecture.test.ts';

// Split, so that this file does not violate its own rule.
const UNFINISHED = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME'].join('|')})\\b`);
const FOREIGN: [RegExp, string][] = [
  [new RegExp(`\\b${'iss' + 'ue'} #\\d*`, 'i'), 'an issue number'],
  [new RegExp(`(?<![\\w.-])/${'wo' + 'rk'}/`), "the path of a developer's machine"],
  [
    new RegExp(`\\b(earlier|previous|last|parallel) ${'sess' + 'ion'}s?\\b`, 'i'),
    'a note of who wrote it and when',
  ],
];
/** A comment may switch off one named rule for one line, never the compiler or the whole linter. */
const SILENCERS = /@ts-(ignore|nocheck|expect-error)|eslint-disable(?!(-next)?-line @?[\w/-]+)/;

function* filesIn(root: string, folder: string): Generator<string> {
  const path = join(root, folder);
  if (!existsSync(path)) return;
  if (statSync(path).isFile()) return yield folder;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    // Files that are not ours: packages, virtual environments, build output.
    if (/^(node_modules|dist(-.*)?|build|target|generated|\..*)$/.test(entry.name)) continue;
    const name = posix.join(folder.split(sep).join('/'), entry.name);
    if (entry.isDirectory()) yield* filesIn(root, name);
    else yield name;
  }
}

type Found = {
  identifiers: Set<string>;
  /** The string literals. */
  texts: Set<string>;
  imports: { target: string; type: boolean }[];
  readsEnvironment: boolean;
  hasAny: boolean;
};

function read(file: string, text: string): Found {
  const found: Found = {
    identifiers: new Set(),
    texts: new Set(),
    imports: [],
    readsEnvironment: false,
    hasAny: false,
  };
  const visit = (node: ts.Node): void => {
    const target = importedBy(node);
    const name = target?.startsWith('.') ? resolveImport(file, target) : target;
    if (name) found.imports.push({ target: name, type: isErased(node) });
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node))
      found.identifiers.add(node.text.replace(/^#/, ''));
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      found.texts.add(node.text);
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

/** An import that loads nothing. An import with braces loads the module even if they hold only types. */
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

function codeFaults(file: string, text: string, found: Found): string[] {
  const { imports, readsEnvironment, hasAny } = found;
  const faults = [...importFaults(file, imports), ...shapeFaults(file, text), ...wordFaults(file, found)];
  const tested = file.startsWith('contract-tests/') || file.startsWith('bench/');
  if (readsEnvironment && !tested && !ENVIRONMENT_READERS.includes(file))
    faults.push(`${file} reads process.env`);
  // In tests, the linter requires named exceptions.
  if (hasAny && !tested) faults.push(`${file} has an any`);
  if (file.startsWith('src/cli/') && file !== TERMINAL && PRINTS.test(text))
    faults.push(`${file} prints past ${TERMINAL}`);
  if (SILENCERS.test(text) && file !== ITSELF) faults.push(`${file} silences the compiler or the linter`);
  return faults;
}

/** The folder of a file of src/ or handlers/. */
function folderOf(file: string): string | undefined {
  const [top, folder = '', ...below] = file.split('/');
  if (top === 'handlers') return top;
  if (top !== 'src') return undefined;
  return below.length > 0 ? folder : folder.replace(/\.ts$/, '');
}

function orderFaults(file: string, imports: Found['imports']): string[] {
  const folder = folderOf(file);
  if (folder === undefined) return [];
  const levelOf = (name: string): number => ORDER.findIndex(folders => folders.includes(name));
  if (file.startsWith('src/') && !file.includes('/', 4) && !ROOT_FILES.includes(file))
    return [`${file} belongs in a folder`];
  if (levelOf(folder) < 0) return [`${file} is in a folder that has no place in the order`];
  return imports.flatMap(({ target }) => {
    const other = folderOf(target);
    if (other === undefined || other === folder || levelOf(other) > levelOf(folder)) return [];
    return [`${file} imports ${target}: ${folder} stands below or beside ${other}`];
  });
}

/** Import cycles among the files, including those of types. */
function circleFaults(graph: ReadonlyMap<string, string[]>): string[] {
  const done = new Set<string>();
  const faults: string[] = [];
  const visit = (file: string, path: string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) faults.push(`${path.slice(at).join(' -> ')} -> ${file} is a circle`);
    if (at >= 0 || done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return faults;
}

/** No two files of src/ have the same name. */
function sameNameFaults(files: Iterable<string>): string[] {
  const seen = new Map<string, string>();
  const faults: string[] = [];
  for (const file of files) {
    if (!file.startsWith('src/') || SAME_NAME_ALLOWED.test(file)) continue;
    const name = posix.basename(file);
    const other = seen.get(name);
    if (other) faults.push(`${file} has the name of ${other}`);
    seen.set(name, file);
  }
  return faults;
}

/** The ids of the paid operations of the contract, and the names of all fields of their calls and answers. */
function namesOfOperations(root: string): Set<string> {
  const file = join(root, 'openapi.yaml');
  const names = new Set<string>();
  if (!existsSync(file)) return names;
  const document = parse(readFileSync(file, 'utf8')) as { paths: Record<string, Record<string, Paid>> };
  const seen = new Set<unknown>();
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null || seen.has(node)) return;
    seen.add(node);
    const { $ref: reference, properties } = node as { $ref?: string; properties?: object };
    for (const name of Object.keys(properties ?? {})) names.add(name);
    for (const value of Object.values(node)) visit(value);
    const keys = typeof reference === 'string' ? reference.slice(2).split('/') : [];
    if (keys.length > 0)
      visit(keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document));
  };
  for (const { operationId, requestBody, responses } of Object.values(document.paths).flatMap(
    Object.values,
  )) {
    if (!(402 in responses)) continue;
    names.add(operationId);
    visit([requestBody, responses[200]]);
  }
  return new Set([...names].filter(name => !COMMON_NAMES.has(name)));
}

type Paid = { operationId: string; requestBody?: object; responses: Record<number, object> };

/** The code between socket and handler names no operation and none of its fields, neither as an identifier nor in a string. */
function operationFaults(file: string, { identifiers, texts }: Found, names: ReadonlySet<string>): string[] {
  if (!NAMELESS.test(file)) return [];
  return [...new Set([...identifiers, ...texts])]
    .filter(name => names.has(name))
    .map(name => `${file} knows ${name}, which belongs to an operation: derive it from the contract`);
}

function neutralFaults(file: string, { identifiers, texts, imports }: Found): string[] {
  if (!NEUTRAL.test(file) || file === HISTORY) return [];
  const packages = new Set(imports.map(({ target }) => target));
  return [...new Set([...identifiers, ...texts])]
    .filter(name => !name.startsWith('.') && !packages.has(name))
    .map(name => RAILS_AND_METHODS.exec(file.startsWith('src/ledger/') ? name.replace(OLD_COLUMN, '') : name))
    .flatMap(found => (found ? [`${file} knows ${found[0]}: that is behind a method or a rail`] : []));
}

function shopFaults(file: string, { identifiers, texts }: Found): string[] {
  const rules = OF_ONE_OPERATION.filter(({ part, except }) => part.test(file) && !except.test(file));
  const found = [...identifiers, ...texts].filter(text => rules.some(({ words }) => words.test(text)));
  return found.map(
    text => `${file} says ${text.slice(0, 60).trim()}, which is the business of one operation`,
  );
}

function wordFaults(file: string, { identifiers }: Found): string[] {
  if (file === ITSELF || file.startsWith('bench/')) return [];
  const faults = [...identifiers]
    .filter(name => RETIRED_NAMES.has(name))
    .map(name => `${file} uses the retired name ${name}`);
  if (RETIRED_FILES.test(posix.basename(file)) || RETIRED_FOLDERS.test(file))
    faults.push(`${file} has a retired name`);
  return faults;
}

function importFaults(file: string, imports: Found['imports']): string[] {
  const inside = imports
    .filter(({ target }) => PACKAGE_INSIDES.test(target) && !DOCUMENTED.includes(target))
    .filter(({ target }) => !/^(src|handlers|generated|contract-tests|dist)\//.test(target))
    .filter(() => file.startsWith('src/') || file.startsWith('handlers/'))
    .map(({ target }) => `${file} imports ${target}, the inside of a package`);
  const forbidden = FORBIDDEN.filter(
    ({ part, except }) => file.startsWith(part) && !within(file, except),
  ).flatMap(({ imports: pattern, why, typesToo = true }) =>
    imports
      .filter(({ target, type }) => pattern.test(target) && (typesToo || !type))
      .map(({ target }) => `${file} imports ${target}: ${why}`),
  );
  return [...inside, ...forbidden, ...orderFaults(file, imports)];
}

function shapeFaults(file: string, text: string): string[] {
  const faults: string[] = [];
  const name = posix.basename(file);
  if (/^(utils?|common|helpers?)\.ts$/.test(name)) faults.push(`${file} has a name that says nothing`);
  if (name === 'index.ts' && file !== 'handlers/index.ts') faults.push(`${file} is a barrel`);
  const lines = text.trimEnd().split('\n').length;
  if (file.startsWith('src/') && lines > MAX_LINES)
    faults.push(`${file} has ${lines} lines, at most ${MAX_LINES}`);
  return faults;
}

function textFaults(file: string, text: string): string[] {
  const faults = FOREIGN.filter(([pattern]) => pattern.test(text)).map(
    ([, what]) => `${file} mentions ${what}`,
  );
  if (/^(src|handlers)\//.test(file) && PRIVATE.test(text))
    faults.push(`${file} uses what is internal to Node or a package`);
  if (RETIRED_WORDS.test(text) && file !== ITSELF) faults.push(`${file} uses a retired word`);
  if (UNFINISHED.test(text)) faults.push(`${file} is unfinished`);
  return faults;
}

/** The engine's package and the other packages, which are workspaces. */
const MANIFESTS = ['package.json', 'packages/sandbox/package.json', 'handlers/package.json'];

function packageFaults(root: string): string[] {
  const faults: string[] = [];
  for (const file of MANIFESTS.filter(each => existsSync(join(root, each)))) {
    const manifest = JSON.parse(readFileSync(join(root, file), 'utf8')) as Record<
      string,
      Record<string, string>
    >;
    const named = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.peerDependencies };
    for (const [name, version] of Object.entries(named))
      if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
        faults.push(`${file}: ${name} ${version} is not an exact version`);
  }
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { resolved?: string; link?: boolean }>;
  };
  for (const [name, { resolved, link }] of Object.entries(lock.packages)) {
    if (resolved !== undefined && !link) faults.push(`package-lock.json: ${name} names its host`);
  }
  return faults;
}

/** Every violation in the tree. */
function faultsOf(root: string): string[] {
  const faults = packageFaults(root);
  const graph = new Map<string, string[]>();
  const names = namesOfOperations(root);
  for (const file of [...FOLDERS, ...TEXTS].flatMap(folder => [...filesIn(root, folder)])) {
    if (!/\.(ts|js|mjs|cjs|md|ya?ml|json|py|sh|sql|html|css|txt)$/.test(file)) continue;
    const text = readFileSync(join(root, file), 'utf8');
    faults.push(...textFaults(file, text));
    if (!file.endsWith('.ts')) continue;
    const found = read(file, text);
    faults.push(
      ...codeFaults(file, text, found),
      ...operationFaults(file, found, names),
      ...neutralFaults(file, found),
      ...shopFaults(file, found),
    );
    if (folderOf(file))
      graph.set(
        file,
        found.imports.map(({ target }) => target),
      );
  }
  return [...faults, ...circleFaults(graph), ...sameNameFaults(graph.keys())];
}

describe('The architecture', () => {
  it('follows its rules', function () {
    this.timeout(60_000);
    expect([...filesIn(ROOT, 'src')]).to.have.length.above(30);
    expect(faultsOf(ROOT).join('\n')).to.equal('');
  });
});

describe('The architecture check', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'architecture-'));
    write('package.json', '{"dependencies":{"koa":"3.3.0"},"devDependencies":{"chai":"6.3.0-rc.1"}}');
    write(
      'package-lock.json',
      '{"packages":{"":{},"node_modules/koa":{"version":"3.3.0"},"node_modules/own":{"resolved":"own","link":true}}}',
    );
  });
  afterEach(() => rmSync(root, { recursive: true }));

  function write(file: string, text: string): void {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }

  it('finds nothing in a valid tree', () => {
    write('src/main.ts', "import './compose.js';\n");
    write('src/compose.ts', "import Koa from 'koa';\nimport { b } from './endpoints/endpoints.js';\n");
    write('src/endpoints/endpoints.ts', "type A = typeof import('../sandbox/child.js');\n");
    write('src/testing/buyer.ts', "import { a } from '../wallet/signer.js';\n");
    write('src/config.ts', 'export const read = (env = process.env) => env;\n');
    write(
      'src/ledger/store.ts',
      "import { a } from './sql.js';\nimport pg from 'pg';\n// anything goes\nexport const any = a;\n",
    );
    write('src/ledger/reader.ts', "import { find } from './queries/claims.js';\n");
    write('src/sale/offers.ts', "import type { A } from '../contract/contract.js';\n");
    write('src/http/app.ts', "import { Ajv2020 } from 'ajv/dist/2020.js';\n");
    write('handlers/index.ts', "import type { A } from 'coinslot';\nimport { b } from './b/b.js';\n");
    write('handlers/b/b.ts', "import type { operations } from '../../generated/openapi.js';\n");
    write(
      'contract-tests/sale/a.test.ts',
      "import { a } from '../../src/sale/offers.js';\nimport './b.js';\nprocess.env.A;\n",
    );
    write('src/net/long.ts', '// a comment\n\n'.repeat(200));
    write('src/net/text.ts', '// eslint-disable-next-line no-control-regex -- these are the ones to go\n');
    write('README.md', 'A payment has no issue; a session ends after an hour.');
    expect(faultsOf(root)).to.deep.equal([]);
  });

  it('finds import cycles, including those of types', () => {
    write('src/net/a.ts', "import type { B } from './b.js';");
    write('src/net/b.ts', "import type { C } from './c.js';");
    write('src/net/c.ts', "import { a } from './a.js';");
    expect(faultsOf(root)).to.deep.equal([
      'src/net/a.ts -> src/net/b.ts -> src/net/c.ts -> src/net/a.ts is a circle',
    ]);
  });

  it("finds a command that prints without the terminal's writer", () => {
    write('src/cli/terminal.ts', 'process.stdout.write(readable(text));\n');
    write('src/cli/buy/main.ts', 'if (process.stderr.isTTY) process.stderr.write(text);\n');
    write('src/cli/check/main.ts', 'const { stderr } = process;\n');
    write('src/cli/init/main.ts', 'console.log(text);\n');
    const named = (folder: string): string => `src/cli/${folder}/main.ts prints past src/cli/terminal.ts`;
    expect(faultsOf(root)).to.include.members(['buy', 'check', 'init'].map(named));
    expect(faultsOf(root).filter(fault => fault.startsWith('src/cli/terminal.ts'))).to.deep.equal([]);
  });

  it('finds two files with the same name', () => {
    write('src/net/cache.ts', '');
    write('src/http/cache.ts', '');
    expect(faultsOf(root).join()).to.match(/cache\.ts has the name of src\/.*cache\.ts/);
  });

  it('finds an operation or its field in code that must work for any contract', () => {
    write(
      'openapi.yaml',
      `paths:
  /a:
    post:
      operationId: sellTea
      requestBody: { content: { application/json: { schema: { properties: { leaves: {}, text: {} } } } } }
      responses:
        '200': { content: { application/json: { schema: { $ref: '#/components/schemas/Tea' } } } }
        '402': { content: { application/json: { schema: { $ref: '#/components/schemas/PaymentOption' } } } }
    get: { operationId: isFree, responses: {} }
components: { schemas: { Tea: { properties: { cups: {} } }, PaymentOption: { properties: { scheme: {} } } } }
`,
    );
    write('src/http/a.ts', "const { leaves, text, scheme } = a; b('sellTea'); isFree();");
    write('src/ledger/b.ts', 'order.cups += 1;');
    write('src/upstreams/c.ts', 'sellTea(leaves, cups);');
    expect(faultsOf(root)).to.deep.equal(
      ['src/http/a.ts knows leaves', 'src/http/a.ts knows sellTea', 'src/ledger/b.ts knows cups'].map(
        start => `${start}, which belongs to an operation: derive it from the contract`,
      ),
    );
  });

  const broken: [string, string, string][] = [
    ['src/sale/a.ts', "import type { PublicKey } from '@solana/web3.js';", 'imports @solana/web3.js'],
    ['src/sale/a.ts', "import { a } from '../rails/solana/rpc.js';", 'imports src/rails/solana/rpc.ts'],
    ['src/sale/a.ts', "import { a } from '../methods/x402/wire.js';", 'imports src/methods/x402/wire.ts'],
    ['src/sale/a.ts', 'const { recentBlockhash } = a;', 'knows Blockhash'],
    ['src/sale/a.ts', 'say(`pays ${a} USDC`);', 'knows USDC'],
    ['src/sale/a.ts', "if (method === 'x402-v1') a();", 'knows x402'],
    ['src/ledger/a.ts', 'const lamports = 1;', 'knows lamport'],
    ['src/ledger/a.ts', "if (method.startsWith('x402')) a();", 'knows x402'],
    ['src/sale/a.ts', "import Koa from 'koa';", 'imports koa'],
    ['src/sale/a.ts', "import type { Context } from 'koa';", 'imports koa'],
    ['src/sale/a.ts', "export * from '@koa/router';", 'imports @koa/router'],
    ['src/sale/a.ts', "const a = await import('openapi-backend');", 'imports openapi-backend'],
    [
      'src/sale/deep/a.ts',
      "import { a } from '../../upstreams/fair-queue.js';",
      'imports src/upstreams/fair-queue.ts',
    ],
    [
      'src/sale/a.ts',
      "type A = import('../upstreams/fair-queue.js').A;",
      'imports src/upstreams/fair-queue.ts',
    ],
    ['src/net/a.ts', "import type { A } from '../rails/solana/rpc.js';", 'net stands below or beside rails'],
    ['src/http/a.ts', "import { a } from '../admin/a.js';", 'http stands below or beside admin'],
    ['src/upstreams/a.ts', "const a = import('../http/health.js');", 'imports src/http/health.ts'],
    ['src/shiny/a.ts', '', 'has no place in the order'],
    ['src/a.ts', '', 'belongs in a folder'],
    [
      'src/ledger/a.ts',
      "import type { A } from '../contract/contract.js';",
      'imports src/contract/contract.ts',
    ],
    [
      'src/ledger/a.ts',
      "import type { A } from '../../generated/openapi.js';",
      'imports generated/openapi.ts',
    ],
    [
      'src/sale/a.ts',
      "import { find } from '../ledger/queries/claims.js';",
      'imports src/ledger/queries/claims.ts',
    ],
    ['src/http/app.ts', "const a = await import('../ledger/sql.js');", 'imports src/ledger/sql.ts'],
    [
      'handlers/a.ts',
      "import type { A } from '../src/contract/operation.js';",
      'imports src/contract/operation.ts',
    ],
    ['handlers/a/a.ts', "import { a } from '../../src/net/failure.js';", 'imports src/net/failure.ts'],
    ['src/http/app.ts', "import { a } from 'coinslot';", 'imports coinslot'],
    ['src/http/app.ts', "import { a } from '../../handlers/summarize.js';", 'imports handlers/summarize.ts'],
    ['src/http/app.ts', "import { a } from '../sandbox/child.js';", 'imports src/sandbox/child.ts'],
    ['src/cli/check/main.ts', "const a = import('../../wallet/offer.js');", 'imports src/wallet/offer.ts'],
    [
      'src/http/app.ts',
      "import { a } from '../../contract-tests/support/a.js';",
      'imports contract-tests/support/a.ts',
    ],
    ['src/net/a.ts', "import Pool from 'undici/lib/dispatcher/pool.js';", 'the inside of a package'],
    ['src/net/a.ts', "const a = createRequire(import.meta.url)('undici');", 'internal to Node or a package'],
    ['src/http/a.ts', 'response._header;', 'internal to Node or a package'],
    ['src/http/app.ts', 'const port = process.env.PORT;', 'reads process.env'],
    ['handlers/a.ts', "const port = process.env['PORT'];", 'reads process.env'],
    ['src/net/a.ts', 'const a: any = 1;', 'has an any'],
    ['handlers/a.ts', 'const a = 1 as any;', 'has an any'],
    ['src/ledger/a.ts', 'const replies = order.parts;', 'the business of one operation'],
    ['src/sale/a.ts', 'const text = `${done} of ${wanted} replies`;', 'the business of one operation'],
    ['src/pages/a.ts', "const key = 'respondent-seen';", 'the business of one operation'],
    ['src/net/a.ts', '// @ts-ignore\n', 'silences'],
    ['src/net/a.ts', '/* eslint-disable */', 'silences'],
    ['src/net/a.ts', '// eslint-disable-next-line\n', 'silences'],
    ['src/sale/charge.ts', 'a();\n'.repeat(401), 'has 401 lines'],
    ['src/sale/offers.ts', '// a comment\n'.repeat(401), 'has 401 lines'],
    ['src/net/utils.ts', '', 'a name that says nothing'],
    ['src/sale/common.ts', '', 'a name that says nothing'],
    ['src/sale/index.ts', '', 'is a barrel'],
    ['src/sale/a.ts', `class ${'De' + 'sk'} {}`, 'uses the retired name'],
    ['contract-tests/sale/a.ts', `const { ${'exam' + 'ine'} } = a;`, 'uses the retired name'],
    ['src/sale/proof.ts', '', 'has a retired name'],
    ['docs/a.md', `the ${'book' + 'keeper'} prints it`, 'uses a retired word'],
    ['src/net/a.ts', `// ${'TO' + 'DO'} later`, 'is unfinished'],
    ['docs/a.md', `${'FIX' + 'ME'}: words`, 'is unfinished'],
    ['README.md', `see ${'iss' + 'ue'} #12`, 'mentions an issue number'],
    ['docs/a.md', `run it in /${'wo' + 'rk'}/main`, 'mentions the path'],
    ['src/net/a.ts', `// written in an earlier ${'sess' + 'ion'}`, 'mentions a note'],
    ['package.json', '{"dependencies":{"koa":"^3.3.0"}}', 'not an exact version'],
    ['package.json', '{"devDependencies":{"koa":"latest"}}', 'not an exact version'],
    ['packages/sandbox/package.json', '{"peerDependencies":{"coinslot":"1"}}', 'not an exact version'],
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
