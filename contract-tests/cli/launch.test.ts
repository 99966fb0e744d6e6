import { expect } from 'chai';
import { Linter } from 'eslint';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const LAUNCHER = fileURLToPath(new URL('../../../src/cli/launch.cjs', import.meta.url));
const MANIFEST = fileURLToPath(new URL('../../../package.json', import.meta.url));

describe("A program that can't run says why immediately, in one sentence", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'launch-'));
    mkdirSync(join(folder, 'src', 'cli'), { recursive: true });
    for (const name of ['launch.cjs', 'import-program.cjs'])
      copyFileSync(join(dirname(LAUNCHER), name), join(folder, 'src', 'cli', name));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const run = (options: string[], launcher = join(folder, 'src', 'cli', 'launch.cjs')) => {
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      [...options, launcher, 'cli/buy/main', '--help'],
      {
        encoding: 'utf8',
        env: { PATH: process.env.PATH },
      },
    );
    return { status, stderr, stdout };
  };

  it('if Node is too old', () => {
    const old = join(folder, 'old.cjs');
    writeFileSync(
      old,
      "Object.defineProperty(process.versions, 'node', { value: '18.20.4' }); Object.defineProperty(process, 'version', { value: 'v18.20.4' });",
    );
    expect(run(['-r', old], LAUNCHER)).to.deep.equal({
      status: 1,
      stdout: '',
      stderr:
        'Node 20.19 or newer is needed, but this is v18.20.4: install a newer version from https://nodejs.org.\n',
    });
  });

  it('in a file that any Node version can parse, because it has no syntax newer than 2009', () => {
    const languageOptions = { ecmaVersion: 5, sourceType: 'script' } as const;
    const faults = (text: string) =>
      new Linter().verify(text, { languageOptions }).map(({ message }) => message);
    expect(faults(readFileSync(LAUNCHER, 'utf8'))).to.deep.equal([]);
    expect(faults('const a = () => import(b);')).not.to.deep.equal([]);
  });

  it('with the Node version that package.json requires', () => {
    const { engines } = JSON.parse(readFileSync(MANIFEST, 'utf8')) as { engines: { node: string } };
    expect(readFileSync(LAUNCHER, 'utf8')).to.contain(
      `NEEDED = [${engines.node.replace('>=', '').replace('.', ', ')}]`,
    );
  });

  it('if nothing is compiled', () => {
    const { status, stderr } = run([]);
    expect([status, stderr]).to.deep.equal([
      1,
      'Coinslot is not compiled: run make build, or npm ci && npm run build.\n',
    ]);
  });

  it('if nothing is installed', () => {
    const program = join(folder, 'dist', 'src', 'cli', 'buy', 'main.js');
    mkdirSync(dirname(program), { recursive: true });
    writeFileSync(program, "import 'pino';");
    const { status, stderr } = run([]);
    expect([status, stderr]).to.deep.equal([
      1,
      'The packages of Coinslot are not installed: run make build, or npm ci.\n',
    ]);
  });

  it('and otherwise runs with its arguments', () => {
    const { status, stdout } = run([], LAUNCHER);
    expect(status).to.equal(0);
    expect(stdout).to.match(/^Usage: (npm run --silent buy --|npx coinslot buy) /);
  });
});
