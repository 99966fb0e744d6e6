import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** An exact version, or one of another package (`npm:name@1.2.3`). */
const EXACT = /^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/;
const KINDS = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies', 'overrides'];

const listed = (...patterns: string[]): string[] =>
  execFileSync('git', ['ls-files', '-co', '--exclude-standard', ...patterns], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter(file => file !== '' && existsSync(join(ROOT, file)));
const linesOf = (file: string): string[] => readFileSync(join(ROOT, file), 'utf8').split('\n');

/** Whether a package.json has a lock file: in its own folder or, for a workspace, at the root. */
function isLocked(manifest: string, workspaces: string[]): boolean {
  const folder = dirname(manifest);
  return workspaces.includes(folder) || existsSync(join(ROOT, folder, 'package-lock.json'));
}

describe('Everything that is installed has an exact version', () => {
  const manifests = listed('*package.json').map(file => {
    return [file, JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as Record<string, unknown>] as const;
  });

  it('in every package.json, each with a lock file', () => {
    const workspaces = manifests.find(([file]) => file === 'package.json')?.[1]['workspaces'] as string[];
    const ranges = manifests.flatMap(([file, manifest]) =>
      KINDS.flatMap(kind =>
        Object.entries((manifest[kind] ?? {}) as Record<string, string>)
          .filter(([, version]) => !EXACT.test(version))
          .map(([name, version]) => `${file}: ${name} ${version}`),
      ),
    );
    expect(ranges).to.deep.equal([]);
    expect(manifests.filter(([file]) => !isLocked(file, workspaces)).map(([file]) => file)).to.deep.equal([]);
    expect(manifests.length).to.be.greaterThan(5);
  });

  it('in every list of Python packages', () => {
    const files = listed('*requirements*.txt');
    const loose = files.flatMap(file =>
      linesOf(file)
        .filter(
          line =>
            line !== '' && !line.startsWith('#') && !/^[\w.-]+(\[[\w,]+\])?==\d[\w.]*( *;.*)?$/.test(line),
        )
        .map(line => `${file}: ${line}`),
    );
    expect(loose).to.deep.equal([]);
    expect(files.length).to.be.greaterThan(3);
  });

  it('in every image: three numbers, or a digest', () => {
    const images = listed('*Dockerfile', '*compose.yaml').flatMap(file =>
      linesOf(file).flatMap(line => {
        const [, image = ''] = /^(?:FROM (?:--\S+ )?| +image: )['"]?([^'"\s]+)/.exec(line) ?? [];
        return /[:/]/.test(image) ? [image] : [];
      }),
    );
    expect(images.filter(image => !/:v?\d+\.\d+(\.\d+)?[\w.-]*$|@sha256:/.test(image))).to.deep.equal([]);
  });
});
