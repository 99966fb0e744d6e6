import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Order, VersionMessage } from './version.js';

const PROGRAM = fileURLToPath(new URL('./version.js', import.meta.url));
const LOAD_MS = 30_000;
const START_MS = 60_000;
/** Longer than a server takes to finish its open calls. */
const STOP_MS = 30_000;

/** A version could not start. It has printed the reason to stderr and ended. */
export class VersionFault extends Error {}

/** A server in its own process, which writes to the terminal of `coinslot dev`. */
export class VersionProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  /**
   * @param copy the folder from which the server reads the contract
   * @param ended called when the server ends
   */
  constructor(copy: string, env: NodeJS.ProcessEnv, ended: (version: VersionProcess) => void) {
    this.#child = fork(PROGRAM, [copy], {
      env,
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#ended = once(this.#child, 'exit');
    void this.#ended.then(() => ended(this));
  }

  /** Makes the process load its contract and handlers. @throws VersionFault */
  async load(): Promise<void> {
    await this.#ask('load', 'loaded', LOAD_MS);
  }

  /** Makes the process start selling. @returns the lines to show the user @throws VersionFault */
  async start(): Promise<string> {
    const { banner = '' } = (await this.#ask('start', 'ready', START_MS)) as { banner?: string };
    return banner;
  }

  /** Ends the process after its open calls, or immediately if `signal` is SIGKILL. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#hasEnded()) return;
    const late = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS);
    this.#child.kill(signal);
    await this.#ended;
    clearTimeout(late);
  }

  #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async #ask(order: Order, answer: VersionMessage['type'], ms: number): Promise<VersionMessage> {
    let late: NodeJS.Timeout | undefined;
    let hear: ((message: VersionMessage) => void) | undefined;
    try {
      return await new Promise((resolve, reject) => {
        hear = message => message.type === answer && resolve(message);
        this.#child.on('message', hear);
        const failed = (): void => reject(new VersionFault('The process of the version has ended.'));
        if (this.#hasEnded()) return failed();
        void this.#ended.then(failed);
        late = setTimeout(
          () => reject(new VersionFault(`The version did not ${order} within ${ms / 1000} s.`)),
          ms,
        );
        this.#child.send(order, () => undefined);
      });
    } catch (error) {
      await this.stop('SIGKILL');
      throw error;
    } finally {
      clearTimeout(late);
      if (hear) this.#child.off('message', hear);
    }
  }
}
