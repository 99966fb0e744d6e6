import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

type Manifest = {
  version: string;
  files?: string[];
  dependencies: Record<string, string>;
  devDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
};

const read = (file: string): string => readFileSync(`${ROOT}${file}`, 'utf8');
const manifestOf = (folder: string): Manifest => JSON.parse(read(`${folder}package.json`)) as Manifest;

const ENGINE = manifestOf('');
const SANDBOX = manifestOf('packages/sandbox/');
const HANDLERS = manifestOf('handlers/');

/** The modules that a compiled file loads or resolves. Compiling has removed the type imports. */
function importsOf(file: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const named =
      ts.isImportDeclaration(node) || ts.isExportDeclaration(node) ? node.moduleSpecifier : askedBy(node);
    if (named && ts.isStringLiteralLike(named)) found.push(named.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2022, true));
  return found;
}

function askedBy(node: ts.Node): ts.Node | undefined {
  const asks = ts.isCallExpression(node) && /^import(\.meta\.resolve)?$/.test(node.expression.getText());
  return asks ? node.arguments[0] : undefined;
}

/** The packages that files import, by name. */
function packagesOf(files: Iterable<string>): string[] {
  const names = [...files]
    .flatMap(importsOf)
    .filter(target => !target.startsWith('.') && !isBuiltin(target))
    .map(target => target.split('/', target.startsWith('@') ? 2 : 1).join('/'));
  return [...new Set(names)].sort();
}

const compiledIn = (folder: string): string[] =>
  readdirSync(`${ROOT}dist/${folder}`, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.js'))
    .map(file => `dist/${folder}/${file}`);

/** The files of dist/src/ in the engine's package. */
function engineFiles(): string[] {
  const left = (ENGINE.files ?? [])
    .filter(each => each.startsWith('!dist/src/'))
    .map(each => `${each.slice(1)}/`);
  return compiledIn('src').filter(file => !left.some(folder => file.startsWith(folder)));
}

/** The files that are compiled for the sandbox's package: those that its tsconfig.json names, and everything that they import. */
function sandboxFiles(): string[] {
  const { files } = JSON.parse(read('packages/sandbox/tsconfig.json')) as { files: string[] };
  const found = new Set<string>();
  const add = (file: string): void => {
    if (found.has(file)) return;
    found.add(file);
    for (const target of importsOf(file))
      if (target.startsWith('.')) add(posix.join(posix.dirname(file), target));
  };
  for (const file of files) add(posix.join('dist', file.replace('../../', '').replace(/\.ts$/, '.js')));
  return [...found];
}

/** The peer dependencies of a dependency. */
function peersOf({ dependencies }: Manifest): string[] {
  return Object.keys(dependencies).flatMap(name =>
    Object.keys(manifestOf(`node_modules/${name}/`).peerDependencies ?? {}),
  );
}

describe('the packages of this repository', () => {
  it('the engine depends on what it imports, and on nothing else', () => {
    // `onDemand` is loaded only if FACILITATOR_URL is embedded. It is not an optional peer, because npm would then install it wherever
    // a development package includes it.
    const onDemand = '@x402/svm';
    expect(ENGINE.peerDependencies).to.equal(undefined);
    expect(packagesOf(engineFiles())).to.deep.equal([...Object.keys(ENGINE.dependencies), onDemand].sort());
  });

  it("the engine has no file that imports a module of the sandbox's package", () => {
    const files = new Set(engineFiles());
    const missing = [...files].flatMap(file =>
      importsOf(file)
        .filter(target => target.startsWith('.') && !files.has(posix.join(posix.dirname(file), target)))
        .map(target => `${file} imports ${target}`),
    );
    expect(missing).to.deep.equal([]);
  });

  it('the sandbox depends on what it imports, and on nothing else; the engine is its peer', () => {
    const { coinslot, ...others } = SANDBOX.peerDependencies ?? {};
    expect([coinslot, others]).to.deep.equal([ENGINE.version, {}]);
    expect(packagesOf(sandboxFiles())).to.deep.equal(
      [...Object.keys(SANDBOX.dependencies), 'coinslot'].sort(),
    );
  });

  it('the sandbox has every module that the engine loads from it', () => {
    const files = new Set(sandboxFiles());
    const asked = engineFiles().flatMap(file =>
      [
        ...read(file).matchAll(
          /'((?:sandbox|wallet|testing|cli\/(?:buy|conformance|mcp|testing))\/[\w-]+\.js)'/g,
        ),
      ].map(([, module]) => `dist/src/${module}`),
    );
    expect(asked).to.include.members(['dist/src/sandbox/child.js', 'dist/src/cli/buy/main.js']);
    expect(asked.filter(file => !files.has(file))).to.deep.equal([]);
  });

  it('the handlers depend on what they import, on its peer dependencies, and on nothing else', () => {
    const imported = packagesOf(compiledIn('handlers')).filter(name => name !== 'coinslot');
    const declared = Object.keys(HANDLERS.dependencies);
    expect(declared).to.include.members(imported);
    expect([...imported, ...peersOf(HANDLERS)]).to.include.members(declared);
  });

  it('all have the same version, and agree on the versions of shared dependencies', () => {
    expect([SANDBOX.version, HANDLERS.version]).to.deep.equal([ENGINE.version, ENGINE.version]);
    const versions = new Map<string, string>();
    for (const { dependencies, devDependencies, peerDependencies } of [ENGINE, SANDBOX, HANDLERS])
      for (const [name, version] of Object.entries({
        ...peerDependencies,
        ...devDependencies,
        ...dependencies,
      })) {
        expect(versions.get(name) ?? version, name).to.equal(version);
        versions.set(name, version);
      }
  });

  it('package.json names what the embedded facilitator loads', () => {
    const version = ENGINE.devDependencies?.['@x402/svm'];
    expect(read('src/facilitators/reference-verdict.ts')).to.contain(`'@x402/svm@${version}'`);
  });
});
