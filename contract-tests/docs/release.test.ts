import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { datedChangelog, manifestsOf, newestRelease, PACKED, withVersion } from '../tools/release.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const read = (file: string): string => readFileSync(`${ROOT}${file}`, 'utf8');
const newest = newestRelease(read('CHANGELOG.md'));

describe('The newest release of CHANGELOG.md', () => {
  it('is the version in all our manifests', () => {
    const versions = manifestsOf(ROOT).map(file => [
      file,
      (JSON.parse(read(file)) as { version?: string }).version,
    ]);
    expect(versions.filter(([, version]) => version !== undefined && version !== newest)).to.deep.equal([]);
    const { peerDependencies } = JSON.parse(read('packages/sandbox/package.json')) as {
      peerDependencies: Record<string, string>;
    };
    expect(peerDependencies).to.deep.equal({ coinslot: newest });
  });

  it('is in the names of packed files in the documentation', () => {
    const named = [...read('docs/tutorial/sell-your-own.md').matchAll(PACKED)].map(
      ([, , version]) => version,
    );
    expect(new Set(named)).to.deep.equal(new Set([newest]));
  });

  it('is the version that the pages, the served description and the command show', () => {
    const { info } = parse(read('openapi.yaml')) as { info: { version: string } };
    const said = execFileSync(process.execPath, [`${ROOT}dist/src/cli/main.js`, '--version'], {
      encoding: 'utf8',
    });
    expect([info.version, said]).to.deep.equal([newest, `${newest}\n`]);
  });
});

describe('make release', () => {
  const CHANGELOG = '# Changelog\n\n## Unreleased\n\n- New.\n\n## 1.2.0 (2026-01-01)\n\n- Old.\n';

  it('dates the unreleased section, and begins a new one', () => {
    expect(datedChangelog(CHANGELOG, '1.3.0', '2026-11-24')).to.equal(
      CHANGELOG.replace('## Unreleased\n', '## Unreleased\n\n## 1.3.0 (2026-11-24)\n'),
    );
  });

  const refused: [string, string, string, RegExp][] = [
    ['a version that is not newer', CHANGELOG, '1.2.0', /1\.2\.0 is not newer than 1\.2\.0/],
    ['an older version', CHANGELOG, '1.1.9', /1\.1\.9 is not newer than 1\.2\.0/],
    ['no version', CHANGELOG, '', /VERSION=/],
    ['a release without changes', CHANGELOG.replace('- New.\n\n', ''), '1.3.0', /nothing under Unreleased/],
  ];
  for (const [what, changelog, version, why] of refused)
    it(`refuses ${what}`, () => {
      expect(() => datedChangelog(changelog, version, '2026-11-24')).to.throw(why);
    });

  it('changes our version in a lock file, and no other', () => {
    const other = { version: '1.2.0' };
    const lock = {
      version: '1.2.0',
      packages: {
        '': { version: '1.2.0' },
        mine: { version: '1.2.0', peerDependencies: { coinslot: '1.2.0' } },
        'node_modules/x': other,
      },
    };
    const { version, packages } = JSON.parse(
      withVersion(JSON.stringify(lock), '1.2.0', '1.3.0'),
    ) as typeof lock;
    expect([version, packages]).to.deep.equal([
      '1.3.0',
      {
        '': { version: '1.3.0' },
        mine: { version: '1.3.0', peerDependencies: { coinslot: '1.3.0' } },
        'node_modules/x': other,
      },
    ]);
  });
});
