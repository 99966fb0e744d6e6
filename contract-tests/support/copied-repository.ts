import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const INSTALLED = ['node_modules', 'contract-tests/tools/node_modules', 'contract-tests/fuzz/.venv'];

/**
 * A temporary folder with a copy of this repository: every file that is not ignored, the build output, and links to the
 * installed packages. Modification times are kept, so that make rebuilds and installs only what the caller changes.
 */
export function copyRepository(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of listed.split('\0').filter(Boolean)) {
    // git lists a deleted file until the deletion is committed.
    if (!existsSync(join(ROOT, file))) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(ROOT, file), join(folder, file), { preserveTimestamps: true });
  }
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true, preserveTimestamps: true });
  for (const each of INSTALLED)
    if (existsSync(join(ROOT, each))) symlinkSync(join(ROOT, each), join(folder, each));
  return folder;
}
