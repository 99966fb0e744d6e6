import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A command of Coinslot that runs as a separate process. It ends when this process ends, for whatever reason. */
export type Program = { said: () => string; stop(): Promise<void> };

type Start<T> = {
  command: 'sandbox' | 'run';
  /** The working directory of the command. */
  folder: string;
  /** The complete environment of the process; it inherits nothing. */
  settings: Record<string, string>;
  /** Returns a value once a line of output, or a message to this process, shows that the command is ready. */
  ready: (from: { line?: string; message?: unknown }) => T | undefined;
  log: (line: string) => void;
};

/** The engine is a separate package. */
const ENGINE = new URL('./dist/src/cli/main.js', import.meta.resolve('coinslot/package.json'));
const END_WITH_PARENT = new URL('./end-with-parent.js', import.meta.url).href;
const READY_MS = 60_000;
const STOP_MS = 15_000;
const MAX_SAID = 64 * 1024;

/**
 * Starts a command and waits until it is ready.
 * @throws Error with its output if it ends before that, or is not ready within a minute
 */
export async function startProgram<T>(start: Start<T>): Promise<Program & { facts: T }> {
  const { command, folder, settings, ready, log } = start;
  const child = fork(fileURLToPath(ENGINE), [command], {
    cwd: folder,
    env: settings,
    execArgv: ['--import', END_WITH_PARENT],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let said = '';
  const ended = once(child, 'exit');
  const facts = new Promise<T>((resolve, reject) => {
    const hear = (from: { line?: string; message?: unknown }): void => {
      const found = ready(from);
      if (found !== undefined) resolve(found);
    };
    for (const output of [child.stdout, child.stderr])
      readLines(output, line => {
        said = `${said}${line}\n`.slice(-MAX_SAID);
        log(line);
        hear({ line });
      });
    child.on('message', message => hear({ message }));
    void ended.then(
      () => reject(new Error(`coinslot ${command} ended before it was ready. Its output:\n${said.trim()}`)),
      reject,
    );
    setTimeout(
      () =>
        reject(new Error(`coinslot ${command} was not ready within a minute. Its output:\n${said.trim()}`)),
      READY_MS,
    ).unref();
  });
  const stop = (): Promise<void> => end(child, ended);
  try {
    return { facts: await facts, said: () => said, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Ends a process. It may finish its open calls, but is killed after 15 s. */
async function end(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(late);
}

function readLines(stream: NodeJS.ReadableStream | null, hear: (line: string) => void): void {
  let rest = '';
  stream?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = (lines.pop() ?? '').slice(-MAX_SAID);
    for (const line of lines) hear(line);
  });
}
