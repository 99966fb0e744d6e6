import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../src/cli/ledger/main.js', import.meta.url));
/** Every command is a new process, and slow machines start processes slowly. */
export const SLOW_MS = 90_000;

export type Outcome = { status: number; stdout: string; stderr: string };

/** Without this setting, a command would find the sandbox that was last started in this folder. */
const NO_STATE = '/no-such-folder';

/** Runs the command as the operator does: in a process of its own, with only this environment. */
export function ledgerCommand(env: Record<string, string>, ...args: string[]): Promise<Outcome> {
  const environment = { PATH: process.env['PATH'] ?? '', INIT_CWD: '/', STATE_DIR: NO_STATE, ...env };
  return new Promise(resolve => {
    const options = { env: environment, timeout: 300_000, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

export async function jsonOf<T>(env: Record<string, string>, ...args: string[]): Promise<T> {
  const { status, stdout, stderr } = await ledgerCommand(env, ...args, '--json');
  if (status !== 0) throw new Error(`status ${status}: ${stderr}`);
  return JSON.parse(stdout) as T;
}
