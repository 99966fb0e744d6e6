import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pythonEnvironment } from '../support/python-environment.js';

/** Lints the Dockerfiles with hadolint, which PyPI carries, and prints `N passed, N failed, N skipped`. */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = join(ROOT, 'contract-tests/image');
const FILES = ['Dockerfile', 'ops/compose/piper.Dockerfile'];

const made = pythonEnvironment(join(FOLDER, '.venv'), join(FOLDER, 'requirements.txt'), 'hadolint');
if ('stopped' in made) {
  process.stdout.write(`skipped: ${made.stopped}\n0 passed, 0 failed, ${FILES.length} skipped\n`);
} else {
  const failed = FILES.filter(
    file => spawnSync(join(made.bin, 'hadolint'), [file], { cwd: ROOT, stdio: 'inherit' }).status !== 0,
  );
  process.stdout.write(`${FILES.length - failed.length} passed, ${failed.length} failed, 0 skipped\n`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}
