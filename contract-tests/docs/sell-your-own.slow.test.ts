import { expect } from 'chai';
import { readFileSync, rmSync } from 'node:fs';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyRepository } from '../support/copied-repository.js';
import { describeInCi, isEverythingRun } from '../support/extent.js';
import { freePort } from '../support/free-port.js';
import { ownPlace, succeed } from '../support/other-shop.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const READY_MS = 120_000;
const READY = /ready to be paid|^API at /m;

type Block = { kind: 'command' | 'server' | 'shown'; text: string };

/** The tutorial's commands in order, those for further terminals, and the output that it shows. */
function blocks(): Block[] {
  const text = readFileSync(join(ROOT, 'docs', 'tutorial', 'sell-your-own.md'), 'utf8');
  return [...text.matchAll(/^```(sh|sh server|text)\n(.*?)^```$/gms)].map(([, info = '', text = '']) => ({
    kind: info === 'text' ? 'shown' : info === 'sh' ? 'command' : 'server',
    text,
  }));
}

/** The lines of a block, without empty ones. */
const linesOf = (text: string): string[] => text.split('\n').filter(line => line !== '');

describeInCi(
  'docs/tutorial/sell-your-own.md, followed word for word in a copy of the repository',
  function () {
    this.timeout(900_000);
    const servers: ChildProcess[] = [];
    let folder: string;
    /** The current folder of the first terminal. */
    let at: string;
    let env: Record<string, string>;
    let said: string[];

    before(async () => {
      folder = copyRepository('coinslot-tutorial-');
      at = folder;
      const ports = [await freePort(), await freePort(), await freePort()].map(String);
      // A relative STATE_DIR gives each shop a state folder of its own.
      env = ownPlace('.coinslot', { PORT: ports[0] ?? '' });
      said = await followed(text =>
        ['8402', '4020', '4021'].reduce(
          (all, port, index) => all.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${ports[index]}`),
          text
            .replaceAll('listen(4020', `listen(${ports[1]}`)
            .replaceAll('listen(4021', `listen(${ports[2]}`)
            // The tests of all handlers take minutes, and run with `make replaced-shop`, too.
            .replaceAll(
              'make test-contract',
              isEverythingRun ? 'make test-contract' : 'make test-contract TESTED=contract',
            ),
        ),
      );
    });
    after(async () => {
      await ended();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Runs every block. @returns the output of each command */
    async function followed(local: (text: string) => string): Promise<string[]> {
      const heard: string[] = [];
      for (const { kind, text } of blocks()) {
        if (kind === 'server') servers.push(await started(local(text)));
        else if (kind === 'command') heard.push(await entered(local(text)));
        else expect(heard.at(-1)?.split('\n')).to.include.members(linesOf(local(text)));
      }
      return heard;
    }

    it('imports the document of an API, sells it, and buys a call', () => {
      const [imported = '', bought = '', left] = said;
      expect(imported).to.contain('2 operations for sale');
      expect(bought).to.contain('{"name":"Tha Tien"}');
      expect(left).to.equal('');
    });

    it('ends with exactly three operations: one by a handler, one by an upstream and one paid up front', () => {
      const all = said.join('\n');
      expect(all).to.contain('{"words":2,"characters":10}');
      expect(all).to.contain('<p>Texts counted: 1</p>');
      expect(all).to.contain('{"symbol":"SOL","price":150.5}');
      expect(all).to.contain('{"report":"Ferries run every ten minutes."}');
      expect(all)
        .to.match(/\d+ passing/)
        .and.not.match(/\d+ failing/);
      expect(all).to.match(/^\d+ kept, 0 broken(, \d+ pieces? of advice)?, nothing was paid$/m);
      expect(all.match(/without payment is a challenge at its price/g)).to.have.length(3);
    });

    it('names the shop, so that the check has no warnings', async () => {
      const checked = await succeed(folder, env, 'npm', 'run', '--silent', 'check').catch(String);
      expect(checked).to.contain('quote').and.not.contain('info.title');
    });

    /** Runs what is entered in the first terminal. */
    async function entered(script: string): Promise<string> {
      // "Go back to the clone" ends the server of the first shop.
      if (script === 'cd ..\n') await ended();
      const output = await succeed(at, env, 'bash', '-e', '-c', `{ ${script}\n} 2>&1\npwd`);
      const lines = output.trimEnd().split('\n');
      at = lines.pop() ?? at;
      return lines.join('\n');
    }

    /** All further terminals. Each is a process group: the shell and what it starts. */
    async function ended(): Promise<void> {
      for (const server of servers.splice(0)) {
        if (server.pid === undefined || server.exitCode !== null) continue;
        const exit = once(server, 'exit');
        process.kill(-server.pid, 'SIGTERM');
        await exit;
      }
    }

    async function started(script: string): Promise<ChildProcess> {
      const child = spawn('bash', ['-e', '-c', script], { cwd: folder, env, detached: true });
      let output = '';
      await new Promise<void>((resolve, reject) => {
        const hear = (chunk: Buffer): void => {
          output += String(chunk);
          if (READY.test(output)) resolve();
        };
        child.stdout.on('data', hear);
        child.stderr.on('data', hear);
        child.once('exit', () => reject(new Error(output)));
        setTimeout(() => reject(new Error(`not ready: ${output}`)), READY_MS).unref();
      });
      return child;
    }
  },
);
