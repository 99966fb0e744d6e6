import { execFile, execFileSync } from 'node:child_process';
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
import { promisify } from 'node:util';
import { unlinkAbsent } from './packed-pages.js';
import { billOf, licensesOf } from './third-party.js';

/**
 * Writes the packages ready for publication. Run by `make package`: what npm packs, without files for
 * development only, with pages whose links stay inside the package, a bill of materials (CycloneDX) and the
 * licences of everything that is installed with them.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDERS = ['', 'packages/sandbox'];
const OF_DEVELOPMENT = ['private', 'scripts', 'workspaces', 'mocha'];

type Packed = { filename: string };
type Manifest = Record<string, unknown> & { name: string };

/** @returns the file that `npm pack` writes into a folder */
async function npmPack(cwd: string, target: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    'npm',
    ['pack', ...args, '--json', '--loglevel=error', '--pack-destination', target],
    { cwd, maxBuffer: 64 << 20 },
  );
  return (JSON.parse(stdout) as Packed[])[0]?.filename ?? '';
}

/** @returns the files that npm packs from one folder, in a folder of their own */
async function unpacked(folder: string, work: string): Promise<string> {
  // .npmrc forbids scripts, but these packages are compiled by their own scripts.
  const filename = await npmPack(ROOT, work, folder, '--ignore-scripts=false');
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
export async function packAll(target: string): Promise<string[]> {
  const work = mkdtempSync(join(tmpdir(), 'coinslot-packing-'));
  try {
    const packing = FOLDERS.map(async folder => {
      const tree = await unpacked(`./${folder}`, work);
      const manifest = withoutDevelopment(join(tree, 'package.json'));
      copyFileSync(join(ROOT, 'LICENSE'), join(tree, 'LICENSE'));
      unlinkAbsent(tree);
      const bill = billOf(ROOT, manifest.name, folder);
      writeFileSync(join(tree, 'sbom.cdx.json'), `${JSON.stringify(bill, undefined, 1)}\n`);
      writeFileSync(join(tree, 'THIRD-PARTY-LICENSES.md'), licensesOf(ROOT, manifest.name, bill));
      return join(resolve(target), await npmPack(tree, resolve(target), '.', '--ignore-scripts'));
    });
    return await Promise.all(packing);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  for (const file of await packAll(process.argv[2] ?? ROOT)) process.stdout.write(`${file}\n`);
