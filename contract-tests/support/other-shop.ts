import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';

const READY_MS = 60_000;
const COMMAND_MS = 400_000;

type Environment = Record<string, string>;

/** Settings of a server with ports and a sandbox of its own, without the tests' environment. */
export function ownPlace(stateDir: string, more: Environment = {}): Environment {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    STATE_DIR: stateDir,
    PORT: '0',
    SANDBOX_RPC_PORT: '0',
    SANDBOX_FACILITATOR_PORT: '0',
    LOG_LEVEL: 'info',
    ...more,
  };
}

/** Runs a command and throws if it fails. @returns its stdout */
export async function succeed(
  cwd: string,
  env: Environment,
  file: string,
  ...args: string[]
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(file, args, {
      cwd,
      env,
      timeout: COMMAND_MS,
      maxBuffer: 16 << 20,
    });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${file} ${args.join(' ')}: ${stdout ?? ''}${stderr ?? String(error)}`, { cause: error });
  }
}

/** A shop in a process of its own. `kill` ends it. */
export type Running = { url: string; kill(): Promise<void> };

/** Starts a server and waits until it accepts payments. */
export async function startShop(
  cwd: string,
  env: Environment,
  file: string,
  ...args: string[]
): Promise<Running> {
  const child: ChildProcess = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  let said = '';
  const ready = new Promise<string>((resolve, reject) => {
    const hear = (chunk: Buffer): void => {
      said += String(chunk);
      const url = /ready to be paid at (http[^"]+)/.exec(said)?.[1];
      if (url !== undefined) resolve(url);
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    void ended.then(() => reject(new Error(`the server ended: ${said}`)));
    setTimeout(() => reject(new Error(`not ready: ${said}`)), READY_MS).unref();
  });
  const kill = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  return {
    url: await ready.catch(async (error: unknown) => kill().then(() => Promise.reject(error as Error))),
    kill,
  };
}
