import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { openWorld, type World } from '../support/world.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

describe('npm start', function () {
  this.timeout(90_000);
  let world: World;
  let stateDir: string;
  let npm: ChildProcess | undefined;
  let server: number | undefined;

  before(async () => {
    world = await openWorld();
    stateDir = mkdtempSync(join(tmpdir(), 'npm-start-'));
  });
  after(async () => {
    npm?.kill('SIGKILL');
    if (server !== undefined && isAlive(server)) process.kill(server, 'SIGKILL');
    await world.close();
    rmSync(stateDir, { recursive: true, force: true });
  });

  function isAlive(pid: number): boolean {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  }

  /** Starts a server through npm, and waits until it sells. */
  async function start(): Promise<{ child: ChildProcess; pid: number }> {
    const env = { ...world.env, PATH: process.env.PATH, STATE_DIR: stateDir, LOG_LEVEL: 'info' };
    const child = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
    npm = child;
    for await (const line of createInterface(child.stdout)) {
      if (!line.includes('ready to be paid')) continue;
      child.stdout.resume();
      return { child, pid: (JSON.parse(line) as { pid: number }).pid };
    }
    throw new Error('the server did not start');
  }

  it('ends the server, and not only npm, when npm gets a SIGTERM', async () => {
    const { child, pid } = await start();
    server = pid;
    expect(isAlive(pid)).to.equal(true);
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
    for (const until = Date.now() + 30_000; isAlive(pid) && Date.now() < until;)
      await new Promise(resolve => setTimeout(resolve, 50));
    expect(isAlive(pid), 'the server runs on').to.equal(false);
  });

  it('leaves no shell between npm and any program of ours that keeps running', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    for (const [name, command] of Object.entries(scripts)) {
      // A short step that npm runs before packing.
      if (name === 'prepack') continue;
      const last = command.split(' && ').at(-1);
      expect(last, name).to.match(/^exec /);
      if (name !== 'build') expect(command, name).to.equal(last);
    }
  });
});
