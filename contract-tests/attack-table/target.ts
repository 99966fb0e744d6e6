import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { SandboxInfo } from '../../src/config/sandbox-file.js';
import { commitsOf } from '../support/commits.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const MEGABYTE = 1024 * 1024;
/** The unit of the processor time in /proc/<pid>/stat. */
const TICKS_PER_SECOND = 100;
export type Size = {
  rssMb: number;
  ledgerMb: number;
  /** The number of commits to the ledger so far. */
  commits: number;
  /** The processor time so far, in seconds. */
  cpuSeconds: number;
  /** The size of the log so far, in lines and bytes. */
  logLines: number;
  logBytes: number;
};

/** A server in the sandbox, in a process and a state folder of its own. */
export class Target {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #log = { lines: 0, bytes: 0 };

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.url = url;
    this.#child = child;
    this.#folder = folder;
  }

  /** @param more settings besides those of the sandbox */
  static async start(sandbox: SandboxInfo, more: Record<string, string> = {}): Promise<Target> {
    const folder = await mkdtemp(join(tmpdir(), 'coinslot-attacked-'));
    const env = {
      PATH: process.env['PATH'] ?? '',
      NETWORK: 'sandbox',
      PORT: '0',
      STATE_DIR: folder,
      SOLANA_RPC_URL: sandbox.rpcUrl,
      FACILITATOR_URL: sandbox.facilitatorUrl,
      PAY_TO: sandbox.payTo,
      ...more,
    };
    const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = createInterface(child.stdout);
    const url = await new Promise<string>((resolve, reject) => {
      lines.on('line', line => {
        const ready = /ready to be paid at (http[^"]+)/.exec(line)?.[1];
        if (ready !== undefined) resolve(ready);
      });
      lines.once('close', () => reject(new Error('the server ended')));
    });
    const target = new Target(url, child, folder);
    lines.on('line', line => target.#count(line));
    return target;
  }

  size(): Size {
    const pid = this.#child.pid ?? 0;
    const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    const bytes = ['ledger.db', 'ledger.db-wal'].map(
      name => statSync(join(this.#folder, name), { throwIfNoEntry: false })?.size ?? 0,
    );
    return {
      rssMb: kilobytes / 1024,
      ledgerMb: bytes.reduce((sum, each) => sum + each, 0) / MEGABYTE,
      commits: commitsOf(join(this.#folder, 'ledger.db')),
      cpuSeconds: cpuSecondsOf(pid),
      logLines: this.#log.lines,
      logBytes: this.#log.bytes,
    };
  }

  #count(line: string): void {
    this.#log.lines += 1;
    this.#log.bytes += Buffer.byteLength(line) + 1;
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit');
    await rm(this.#folder, { recursive: true, force: true });
  }
}

function cpuSecondsOf(pid: number): number {
  // The process name in parentheses may contain spaces; user and system time are fields 14 and 15.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
