import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const INSTALLED = ['node_modules', 'contract-tests/tools/node_modules', 'contract-tests/fuzz/.venv'];

/**
 * A temporary folder with every file of this repository that is not ignored, with what was built, and with links to the packages that
 * are installed here. Times are kept, so that make builds and installs only what the caller changes.
 */
export function copyRepository(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of listed.split('\0').filter(Boolean)) {
    // A file that was removed is listed until that is committed.
    if (!existsSync(join(ROOT, file))) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(ROOT, file), join(folder, file), { preserveTimestamps: true });
  }
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true, preserveTimestamps: true });
  for (const each of INSTALLED)
    if (existsSync(join(ROOT, each))) symlinkSync(join(ROOT, each), join(folder, each));
  return folder;
}
