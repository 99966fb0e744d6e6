import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rows } from '../support/extent.js';

const MAKEFILE = fileURLToPath(new URL('../../../Makefile', import.meta.url));
/** The compiled programs that `make build` runs. */
const PROGRAMS = [
  ...['src/contract/compile', 'src/cli/build/bruno-collection'],
  ...['readme', 'collection', 'check-shop'].map(name => `contract-tests/tools/${name}`),
];
/** A stand-in for tsc that logs each run, and fails while a file named `fault` exists. */
const COMPILER = '#!/bin/sh\necho ran >> compiler.log\ntest ! -f fault\n';

describe('make build', () => {
  let folder: string;
  const file = (...names: string[]): string => join(folder, ...names);
  const write = (name: string, text: string, mode = 0o644): void => {
    mkdirSync(dirname(file(name)), { recursive: true });
    writeFileSync(file(name), text, { mode });
  };
  /** @returns whether it succeeded */
  const build = (): boolean => spawnSync('make', ['-s', 'build'], { cwd: folder }).status === 0;
  const compiled = (): number => readFileSync(file('compiler.log'), 'utf8').split('ran').length - 1;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-make-'));
    copyFileSync(MAKEFILE, file('Makefile'));
    for (const name of ['package-lock.json', 'openapi.yaml', 'tsconfig.json', 'generated/openapi.d.ts'])
      write(name, '');
    mkdirSync(file('handlers'));
    for (const program of [...PROGRAMS, 'src/sold']) {
      write(`${program}.ts`, '');
      write(`dist/${program}.js`, '');
    }
    write('node_modules/.bin/tsc', COMPILER, 0o755);
    write('node_modules/.bin/openapi-typescript', '#!/bin/sh\n', 0o755);
    write('node_modules/.installed', '');
    expect([build(), compiled()]).to.deep.equal([true, 1]);
  });
  after(() => rmSync(folder, { recursive: true }));

  it('compiles nothing if nothing has changed', () => {
    const times = compiled();
    expect([build(), compiled()]).to.deep.equal([true, times]);
  });

  for (const changed of rows([
    'src/sold.ts',
    'generated/openapi.d.ts',
    'tsconfig.json',
    'node_modules/.installed',
  ]))
    it(`compiles after a change to ${changed}`, () => {
      const times = compiled();
      utimesSync(file(changed), new Date(), new Date());
      expect([build(), compiled()]).to.deep.equal([true, times + 1]);
    });

  it('fails every time while a source file has an error', () => {
    const times = compiled();
    write('fault', '');
    write('src/sold.ts', 'fault');
    expect([build(), build(), compiled()]).to.deep.equal([false, false, times + 2]);
    rmSync(file('fault'));
    expect([build(), compiled()]).to.deep.equal([true, times + 3]);
  });

  it('removes the output of a deleted source file, and compiles again', () => {
    const times = compiled();
    rmSync(file('src', 'sold.ts'));
    expect([build(), compiled()]).to.deep.equal([true, times + 1]);
    expect(existsSync(file('dist', 'src', 'sold.js'))).to.equal(false);
  });
});
