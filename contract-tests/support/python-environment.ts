import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function succeeds(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 600_000 }).status === 0;
}

/**
 * A virtual environment in `venv` with exactly the packages that `requirements` lists; it is reinstalled when that file
 * changes. What was installed is reported on standard output. `stopped` says why there is no environment.
 */
export function pythonEnvironment(
  venv: string,
  requirements: string,
  what: string,
): { bin: string } | { stopped: string } {
  // Written last, so that an interrupted installation, or one of other versions, is repeated.
  const stamp = join(venv, 'installed-from.txt');
  const wanted = readFileSync(requirements, 'utf8');
  const bin = join(venv, 'bin');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return { bin };
  const python = ['python3', 'python'].find(name =>
    succeeds(name, ['-c', 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))']),
  );
  if (!python) return { stopped: 'no Python 3.10 or newer with venv and pip' };
  process.stdout.write(`Installing ${what} into ${venv}\n`);
  const pip = ['-m', 'pip', 'install', '-q', '-r', requirements];
  if (!succeeds(python, ['-m', 'venv', '--clear', venv]) || !succeeds(join(bin, 'python'), pip))
    return { stopped: `pip could not install ${requirements}` };
  writeFileSync(stamp, wanted);
  return { bin };
}
