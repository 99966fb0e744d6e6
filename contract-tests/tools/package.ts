import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unlinkAbsent } from './packed-pages.js';
import { billOf, licensesOf } from './third-party.js';

/**
 * Writes the packages as they could be published, run by `make package`: what npm packs, without what serves their development only,
 * with pages whose links stay inside, a bill of materials (CycloneDX) and the licences of all that is installed with them.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDERS = ['', 'packages/sandbox'];
const OF_DEVELOPMENT = ['private', 'scripts', 'workspaces', 'mocha'];

type Packed = { filename: string };
type Manifest = Record<string, unknown> & { name: string };

const npm = (cwd: string, ...args: string[]): string =>
  execFileSync('npm', [...args, '--loglevel=error'], {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
    maxBuffer: 64 << 20,
  });

/** @returns the files that npm packs of one folder, in a folder of their own */
function unpacked(folder: string, work: string): string {
  // .npmrc forbids scripts, and those of these packages compile.
  const said = npm(ROOT, 'pack', folder, '--ignore-scripts=false', '--json', '--pack-destination', work);
  const [{ filename } = { filename: '' }] = JSON.parse(said) as Packed[];
  const tree = join(work, `${filename}.d`);
  mkdirSync(tree);
  execFileSync('tar', ['-xzf', join(work, filename), '-C', tree, '--strip-components=1']);
  return tree;
}

function withoutDevelopment(file: string): Manifest {
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
  for (const key of OF_DEVELOPMENT) delete manifest[key];
  writeFileSync(file, `${JSON.stringify(manifest, undefined, 2)}\n`);
  return manifest;
}

/** @returns the packed files */
export function packAll(target: string): string[] {
  const work = mkdtempSync(join(tmpdir(), 'coinslot-packing-'));
  try {
    return FOLDERS.map(folder => {
      const tree = unpacked(`./${folder}`, work);
      const manifest = withoutDevelopment(join(tree, 'package.json'));
      copyFileSync(join(ROOT, 'LICENSE'), join(tree, 'LICENSE'));
      unlinkAbsent(tree);
      const bill = billOf(ROOT, manifest.name, folder);
      writeFileSync(join(tree, 'sbom.cdx.json'), `${JSON.stringify(bill, undefined, 1)}\n`);
      writeFileSync(join(tree, 'THIRD-PARTY-LICENSES.md'), licensesOf(ROOT, manifest.name, bill));
      const said = npm(
        tree,
        'pack',
        '.',
        '--ignore-scripts',
        '--json',
        '--pack-destination',
        resolve(target),
      );
      return join(resolve(target), (JSON.parse(said) as Packed[])[0]?.filename ?? '');
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  for (const file of packAll(process.argv[2] ?? ROOT)) process.stdout.write(`${file}\n`);
