import { expect } from 'chai';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programVersion } from '../../../src/contract/program-version.js';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const COMMAND = join(ROOT, 'src', 'cli', 'coinslot.js');

type Run = { status: number | null; stdout: string; stderr: string };
type Document = { paths: Record<string, { post: { responses: Record<string, unknown> } }> };

describe('coinslot upgrade', function () {
  this.timeout(120_000);
  let folder: string;

  const run = (...args: string[]): Run =>
    spawnSync(process.execPath, [COMMAND, ...args], { cwd: folder, encoding: 'utf8', timeout: 60_000 });
  const file = (...names: string[]): string => join(folder, ...names);
  const edit = (path: string, change: (text: string) => string): void =>
    writeFileSync(path, change(readFileSync(path, 'utf8')));

  /** Makes a shop with the same Coinslot types as the published package. */
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-upgrade-test-'));
    expect(run('init').status).to.equal(0);
    mkdirSync(file('node_modules'));
    for (const each of readdirSync(join(ROOT, 'node_modules')))
      if (!each.startsWith('coinslot'))
        symlinkSync(join(ROOT, 'node_modules', each), file('node_modules', each));
    const own = file('node_modules', 'coinslot');
    mkdirSync(own);
    const types = './types/src/shop/for-handlers.d.ts';
    writeFileSync(
      join(own, 'package.json'),
      JSON.stringify({
        name: 'coinslot',
        version: programVersion(),
        type: 'module',
        exports: { '.': { types } },
      }),
    );
    const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
    execFileSync(process.execPath, [compiler, '-p', 'src/shop', '--outDir', join(own, 'types')], {
      cwd: ROOT,
    });
    mkdirSync(file('dist', 'handlers'), { recursive: true });
  });
  after(() => rmSync(folder, { recursive: true }));

  it('reports changes of the contract since the last build and that the handlers compile, and changes nothing', () => {
    run('build');
    expect(JSON.parse(readFileSync(file('dist', 'openapi.json'), 'utf8'))).to.have.property(
      'by',
      programVersion(),
    );
    // This contract of an earlier version has an answer that the current one lacks, and lacks one that the current one has.
    edit(file('generated', 'openapi.json'), text => {
      const document = JSON.parse(text) as Document;
      const [operation] = Object.values(document.paths);
      delete operation?.post.responses['402'];
      if (operation) operation.post.responses['499'] = { description: 'Gone now' };
      return JSON.stringify(document);
    });
    edit(file('dist', 'openapi.json'), text => text.replace(/"by":"[^"]*"/, '"by":"1.0.0"'));
    const before = [file('generated', 'openapi.json'), file('generated', 'openapi.d.ts')].map(
      each => statSync(each).mtimeMs,
    );
    const { status, stdout, stderr } = run('upgrade');
    expect(status, stdout + stderr).to.equal(0);
    expect(stdout)
      .to.include(`Built with 1.0.0; this is ${programVersion()}`)
      .and.include('Prices by the call: `x-price` with `mode: tiered`')
      .and.match(/POST \/v1\/\S+: may now answer 402/)
      .and.match(/POST \/v1\/\S+ 499: is gone/)
      .and.match(/removed: paths\.\S+\.499/)
      .and.include('The shop builds with this version');
    expect(
      [file('generated', 'openapi.json'), file('generated', 'openapi.d.ts')].map(
        each => statSync(each).mtimeMs,
      ),
    ).to.deep.equal(before);
  });

  it('lists only what is newer than the given version', () => {
    const { stdout } = run('upgrade', '--from', programVersion());
    expect(stdout).to.include(`Built with ${programVersion()}`).and.not.include('`mode: tiered`');
  });

  it('names the lines of a handler that no longer compile', () => {
    edit(file('handlers', 'textStats.ts'), text => text.replace('UpstreamFailure, type', 'Retired, type'));
    const { status, stdout } = run('upgrade');
    expect(status).to.equal(1);
    expect(stdout)
      .to.include('The handlers do not compile with this version')
      .and.match(/handlers\/textStats\.ts\(1,\d+\): error TS\d+: .*'Retired'/);
  });

  it('says that the contract is invalid, and where', () => {
    edit(file('openapi.yaml'), text => text.replace(/amount: '[^']*'/, 'amount: 0.01'));
    const { status, stderr } = run('upgrade');
    expect(status).to.equal(1);
    expect(stderr).to.match(/openapi\.yaml:\d+.*amount/);
  });

  it('refuses a folder that is not a shop, and an unknown option', () => {
    const nowhere = mkdtempSync(join(tmpdir(), 'coinslot-no-shop-'));
    const at = (args: string[]): Run =>
      spawnSync(process.execPath, [COMMAND, 'upgrade', ...args], { cwd: nowhere, encoding: 'utf8' });
    expect(at([])).to.include({ status: 1, stdout: '' });
    expect(at([]).stderr).to.match(/^There is no openapi\.yaml in/);
    expect(at(['--to', '2']).status).to.equal(2);
    rmSync(nowhere, { recursive: true });
  });
});
