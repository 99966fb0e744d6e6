import { fork, type ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isAlive, readInfo, type SandboxInfo } from '../config/sandbox-file.js';
import type { SandboxMessage } from './main.js';

export type SpawnOptions = {
  stateDir: string;
  host: string;
  rpcPort: number;
  facilitatorPort: number;
  /** URL of the server, for `sandbox.json`. */
  publicUrl: string;
  /** Length of a slot in ms. Default 400. */
  slotMs?: number;
  /** Called with a message if the sandbox ends before `stop` is called. */
  onExit: (reason: string) => void;
};

export type SpawnedSandbox = {
  info: SandboxInfo;
  /** Ends the sandbox if this process started it; a sandbox that was already running is left running. */
  stop(): Promise<void>;
};

const READY_MS = 20_000;
const STOP_MS = 5000;
const WATCH_MS = 2000;
const MISSES = 3;
const SECOND_LOOK_MS = 300;
const ENVIRONMENT = (options: SpawnOptions): NodeJS.ProcessEnv => ({
  STATE_DIR: options.stateDir,
  HOST: options.host,
  SANDBOX_RPC_PORT: String(options.rpcPort),
  SANDBOX_FACILITATOR_PORT: String(options.facilitatorPort),
  SANDBOX_SLOT_MS: String(options.slotMs ?? 400),
  PUBLIC_URL: options.publicUrl,
});

/**
 * Starts the sandbox as a child process that always ends with this one, or uses a sandbox that is already running on the state folder.
 * Takes at most 20 s.
 * @throws Error that says why there is no sandbox
 */
export async function spawnSandbox(options: SpawnOptions): Promise<SpawnedSandbox> {
  const deadline = Date.now() + READY_MS;
  for (;;) {
    const running = await findRunning(options.stateDir, deadline);
    if (running) return join(running, options.onExit);
    try {
      return await start(options, deadline);
    } catch (error) {
      // If two servers start at the same time, the second uses the sandbox of the first.
      const lost =
        error instanceof Error && error.message.startsWith('Another sandbox is already running on');
      if (!lost || Date.now() > deadline) throw error;
      await sleep(200);
    }
  }
}

/**
 * A sandbox that is running on the folder. If its parent has ended, the sandbox is about to end, too. In that case, waits until it has
 * ended instead of using it.
 */
async function findRunning(stateDir: string, deadline: number): Promise<SandboxInfo | null> {
  for (;;) {
    const info = readInfo(stateDir);
    if (!info || !(await isAlive(info))) return null;
    if (info.parent === null) return info;
    // A parent that was just killed may still be listed as a process; by the second check, its child has noticed that the parent is gone.
    await sleep(SECOND_LOOK_MS);
    if (processLives(info.parent) && (await isAlive(info))) return info;
    if (Date.now() > deadline) return null;
  }
}

function processLives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function start(options: SpawnOptions, deadline: number): Promise<SpawnedSandbox> {
  const child = fork(fileURLToPath(new URL('./main.js', import.meta.url)), [], {
    env: ENVIRONMENT(options),
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const gone = new Promise<string>(resolve => {
    child.once('exit', (code, signal) => resolve(signal ? `by ${signal}` : `with code ${code}`));
    child.once('error', error => resolve(`with ${error.message}`));
  });
  let stopping = false;
  const stop = async (): Promise<void> => {
    stopping = true;
    await end(child, gone);
  };
  try {
    const info = await ready(child, gone, deadline);
    void gone.then(how => {
      if (!stopping)
        options.onExit(
          `The sandbox ended ${how}: the local Solana chain has stopped. Restart the server to resume it.`,
        );
    });
    return { info, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function ready(child: ChildProcess, gone: Promise<string>, deadline: number): Promise<SandboxInfo> {
  return new Promise((resolve, reject) => {
    const seconds = READY_MS / 1000;
    const timer = setTimeout(() => {
      reject(new Error(`The sandbox was not ready within ${seconds} s. Run \`npm run sandbox\` to see why.`));
    }, deadline - Date.now());
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      act();
    };
    child.once('message', (message: SandboxMessage) =>
      settle(() => (message.type === 'ready' ? resolve(message.sandbox) : reject(new Error(message.error)))),
    );
    void gone.then(how => settle(() => reject(new Error(`The sandbox ended ${how} before it was ready.`))));
  });
}

async function end(child: ChildProcess, gone: Promise<string>): Promise<void> {
  if (child.connected) child.disconnect();
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await gone;
  clearTimeout(timer);
}

/** Uses a sandbox that another process started, and checks every two seconds that it still answers. */
function join(info: SandboxInfo, onExit: (reason: string) => void): SpawnedSandbox {
  let misses = 0;
  const timer = setInterval(() => {
    void isAlive(info).then(alive => {
      misses = alive ? 0 : misses + 1;
      if (misses !== MISSES) return;
      clearInterval(timer);
      onExit(`The sandbox at ${info.rpcUrl} no longer answers. Restart the server to resume it.`);
    });
  }, WATCH_MS);
  timer.unref();
  const stop = async (): Promise<void> => clearInterval(timer);
  return { info, stop };
}
