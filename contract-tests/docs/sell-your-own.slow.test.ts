import { expect } from 'chai';
import { readFileSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyRepository } from '../support/copied-repository.js';
import { describeInCi } from '../support/extent.js';
import { freePort } from '../support/free-port.js';
import { ownPlace, succeed } from '../support/other-shop.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const READY_MS = 120_000;

/** The tutorial's commands, in their order; `server` is the block for a second terminal. */
function blocks(): { server: boolean; script: string }[] {
  const text = readFileSync(join(ROOT, 'docs', 'tutorial', 'sell-your-own.md'), 'utf8');
  return [...text.matchAll(/^```sh( server)?\n(.*?)^```$/gms)].map(([, server, script = '']) => ({
    server: server !== undefined,
    script,
  }));
}

describeInCi(
  'docs/tutorial/sell-your-own.md, followed word for word in a copy of the repository',
  function () {
    this.timeout(900_000);
    let folder: string;
    let server: ReturnType<typeof spawn> | undefined;

    before(() => {
      folder = copyRepository('coinslot-tutorial-');
    });
    after(async () => {
      if (server?.pid !== undefined && server.exitCode === null) {
        const ended = once(server, 'exit');
        // The shell, the API and the server: one group.
        process.kill(-server.pid, 'SIGTERM');
        await ended;
      }
      rmSync(folder, { recursive: true, force: true });
    });

    it('ends with a shop that sells one by a handler, one by an upstream and one paid up front, and nothing else', async () => {
      const [port, apiPort] = [await freePort(), await freePort()];
      const env = ownPlace(join(folder, '.coinslot'), { PORT: String(port) });
      const answers: string[] = [];
      for (const { server: second, script } of blocks()) {
        const local = script
          .replaceAll('127.0.0.1:8402', `127.0.0.1:${port}`)
          .replaceAll('4020', String(apiPort));
        if (second) server = await started(local, env);
        else answers.push(await succeed(folder, env, 'bash', '-e', '-c', local));
      }
      const said = answers.join('\n');
      expect(said).to.contain('{"words":2,"characters":10}');
      expect(said).to.contain('<p>Texts counted: 1</p>');
      expect(said).to.contain('{"symbol":"SOL","price":150.5}');
      expect(said).to.contain('{"report":"Ferries run every ten minutes."}');
      expect(said)
        .to.match(/\d+ passing/)
        .and.not.match(/\d+ failing/);
      expect(said).to.match(/^\d+ kept, 0 broken, nothing was paid$/m);
      expect(said.match(/without payment is a challenge at its price/g)).to.have.length(3);
    });

    async function started(script: string, env: Record<string, string>): Promise<ReturnType<typeof spawn>> {
      const child = spawn('bash', ['-e', '-c', script], { cwd: folder, env, detached: true });
      let said = '';
      await new Promise<void>((resolve, reject) => {
        const hear = (chunk: Buffer): void => {
          said += String(chunk);
          if (said.includes('ready to be paid')) resolve();
        };
        child.stdout.on('data', hear);
        child.stderr.on('data', hear);
        child.once('exit', () => reject(new Error(said)));
        setTimeout(() => reject(new Error(`not ready: ${said}`)), READY_MS).unref();
      });
      return child;
    }
  },
);
