import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { readText } from '../../src/contract/parse-contract.js';
import { rows } from '../support/extent.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const COMMAND = join(ROOT, 'src', 'cli', 'coinslot.js');

type Parts = {
  paths: Record<string, { get?: { responses: Record<string, { content?: unknown }> } }>;
  components: Record<string, Record<string, unknown>>;
};
type Run = { status: number | null; stdout: string; stderr: string };

/** Removes the examples, because they depend on the operations of the shop. */
function withoutOwnExamples(part: unknown): unknown {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
  const kept = Object.entries(part).filter(([key]) => key !== 'example' && key !== 'examples');
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutOwnExamples(value)]));
}

describe('The command coinslot', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-command-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function run(args: string[], program = COMMAND, node: string[] = []): Run {
    const env = { PATH: process.env['PATH'] ?? '', STATE_DIR: join(folder, 'state') };
    return spawnSync(process.execPath, [...node, program, ...args], {
      cwd: folder,
      env,
      encoding: 'utf8',
      timeout: 60_000,
    });
  }

  /** A folder with the packages that a shop would have installed. */
  function initialised(): void {
    expect(run(['init']).status).to.equal(0);
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  }

  it('lists its commands, and each command describes itself', () => {
    const { stdout, status } = run([]);
    expect(status).to.equal(0);
    const names = [...stdout.matchAll(/^ {2}(\w+) /gm)].map(([, name]) => name ?? '');
    expect(names).to.include.members(['run', 'build', 'init', 'operation', 'buy', 'ledger', 'conformance']);
    // docs/named-commands.slow.test.ts runs each of these commands with --help, too.
    for (const name of rows(names)) {
      const help = run([name, '--help']);
      expect(help.status, `${name}: ${help.stderr}`).to.equal(0);
      expect(help.stdout, name).to.contain(name);
    }
    expect(run(['--version']).stdout).to.match(/^\d+\.\d+\.\d+\n$/);
  });

  const refused: [string, string[], string][] = [
    ['an unknown command', ['sell'], 'There is no command sell. Commands: run, dev, build,'],
    ['to run a folder that is no shop', ['run'], 'There is no openapi.yaml in'],
    ['to build a folder that is no shop', ['build'], 'There is no openapi.yaml in'],
    [
      'to add an operation to a folder that is no shop',
      ['operation', 'add', 'a', '--price', '1'],
      'coinslot init',
    ],
  ];
  for (const [what, args, says] of refused) {
    it(`refuses ${what} in one sentence`, () => {
      const { status, stderr } = run(args);
      expect(status).to.equal(1);
      expect(stderr)
        .to.contain(says)
        .and.not.match(/^\s+at /m);
    });
  }

  it('says that Node is too old, or that nothing is compiled, before anything else runs', () => {
    const script = join(folder, 'old.mjs');
    writeFileSync(
      script,
      "Object.defineProperty(process.versions, 'node', { value: '20.18.3' });\n" +
        `await import(${JSON.stringify(COMMAND)});\n`,
    );
    expect(run([], script).stderr).to.match(/^Node 20\.19 or newer is needed, but this is v/);
    mkdirSync(join(folder, 'src', 'cli'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    for (const file of ['coinslot.js', 'launch.cjs', 'import-program.cjs'])
      copyFileSync(join(dirname(COMMAND), file), join(folder, 'src', 'cli', file));
    expect(run(['run'], join(folder, 'src', 'cli', 'coinslot.js')).stderr).to.match(
      /^Coinslot is not compiled: run make build/,
    );
  });

  it('init writes a shop, keeps existing files, and refuses a folder that already is a shop', () => {
    writeFileSync(join(folder, 'package.json'), '{"name":"mine","dependencies":{"left":"1.0.0"}}');
    writeFileSync(join(folder, 'README.md'), 'mine');
    expect(run(['init']).status).to.equal(0);
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).to.equal('mine');
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<
      string,
      unknown
    >;
    expect(manifest).to.include({ name: 'mine', type: 'module' });
    expect(manifest['dependencies']).to.include({ left: '1.0.0' }).and.to.have.property('coinslot');
    const again = run(['init']);
    expect(again.status).to.equal(1);
    expect(again.stderr).to.contain('it is a shop. Nothing was changed.');
  });

  it('build says in one sentence which compiler is missing', () => {
    expect(run(['init']).status).to.equal(0);
    const { status, stderr } = run(['build']);
    expect(status).to.equal(1);
    expect(stderr).to.equal(
      "The package openapi-typescript is not installed, and handlers/ can't be compiled without it: npm install --save-dev openapi-typescript\n",
    );
  });

  it('run says that handlers are not compiled, or that one is missing', () => {
    initialised();
    expect(run(['run']).stderr).to.match(
      /handlers\/index\.ts is not compiled: build the shop \(npm run build\)/,
    );
    mkdirSync(join(folder, 'dist', 'handlers'), { recursive: true });
    const compiled = join(folder, 'dist', 'handlers', 'index.js');
    for (const [text, says] of [
      [
        'export const handlers = {};',
        'openapi.yaml sells textStats (POST /v1/text-stats), but nothing serves it',
      ],
      ['export const handlers = { textStats: 1 };', 'textStats must be a function'],
      ['export const handler = {};', 'must export handlers'],
      ["import 'nowhere';", "can't be loaded: Cannot find package 'nowhere'"],
      [
        'export const handlers = { textStats: () => ({}), other: () => ({}) };',
        'has other, but openapi.yaml has no such operation',
      ],
    ] as const) {
      writeFileSync(compiled, text);
      const { status, stderr } = run(['run']);
      expect(status, text).to.equal(1);
      expect(stderr, text)
        .to.contain(says)
        .and.not.match(/^\s+at /m);
    }
  });

  it('a shop without handlers builds without a compiler, and reads settings from .env', () => {
    expect(run(['init']).status).to.equal(0);
    expect(run(['operation', 'remove', 'textStats']).status).to.equal(0);
    rmSync(join(folder, 'handlers'), { recursive: true });
    const url = 'https://api.example.com/';
    expect(run(['operation', 'add', 'sellIt', '--price', '0.01', '--upstream', url]).status).to.equal(0);
    const built = run(['build']);
    expect(built.stdout).to.equal('Built: sellIt (0.01 USDC)\n');
    expect(built.stderr).to.match(/^openapi\.yaml: the shop is still called 'My shop', .*info\.title\n$/);
    expect(existsSync(join(folder, 'dist', 'openapi.json'))).to.equal(true);
    writeFileSync(join(folder, '.env'), 'PORT=a-lot\n');
    expect(run(['run']).stderr).to.contain("PORT: 'a-lot' is not a whole number");
  });

  it("the parts that the build adds to every contract equal those of this repository's contract", () => {
    const read = (file: string): Parts => parse(readFileSync(join(ROOT, file), 'utf8')) as Parts;
    const [own, shared] = [read('openapi.yaml'), read('src/contract/expand/shared.yaml')];
    const fetched = own.paths['/answers/{key}']?.get?.responses['200'];
    // The types of the answers that can be fetched depend on the operations, too.
    delete fetched?.content;
    for (const [path, item] of Object.entries(shared.paths))
      expect(withoutOwnExamples(item), path).to.deep.equal(withoutOwnExamples(own.paths[path]));
    for (const [kind, components] of Object.entries(shared.components))
      for (const [name, component] of Object.entries(components))
        expect(withoutOwnExamples(component), `${kind}/${name}`).to.deep.equal(
          withoutOwnExamples(own.components[kind]?.[name]),
        );
  });

  it('init writes a contract of at most 20 lines; `contract` prints the complete one, with the source of each part', () => {
    expect(run(['init']).status).to.equal(0);
    const written = readFileSync(join(folder, 'openapi.yaml'), 'utf8');
    expect(written.trimEnd().split('\n')).to.have.length.at.most(20);
    const { status, stdout, stderr } = run(['contract']);
    expect(status, stderr).to.equal(0);
    expect(parse(stdout)).to.deep.equal(readText(written).contract.document);
    for (const why of [
      "# added: the server's own document",
      '# added: every paid call may be answered this way',
      '# added: every paid operation takes its payment in these parameters',
    ])
      expect(stdout).to.contain(why);
    writeFileSync(
      join(folder, 'openapi.yaml'),
      written.replace('required: true', 'required: true\n        required: no'),
    );
    expect(run(['contract'])).to.deep.include({ status: 1, stdout: '' });
  });
});
