import { expect } from 'chai';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.js';
import { load } from '../support/load-readme.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const RUN_MS = 150_000;

for (const page of ['README.md', 'docs/tutorial/first-calls.md']) describeCommands(page);

function describeCommands(page: string): void {
  describe(`The commands of ${page}`, function () {
    this.timeout(RUN_MS);
    let folder: string;
    let env: Record<string, string>;
    let url: string;
    let server: ChildProcess | undefined;

    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'readme-'));
      const [port, rpc, facilitator, admin] = await Promise.all([
        freePort(),
        freePort(),
        freePort(),
        freePort(),
      ]);
      env = {
        PATH: process.env.PATH ?? '',
        HOME: folder,
        STATE_DIR: join(folder, 'state'),
        INIT_CWD: folder,
        PORT: String(port),
        SANDBOX_RPC_PORT: String(rpc),
        SANDBOX_FACILITATOR_PORT: String(facilitator),
        ADMIN_PORT: String(admin),
      };
      url = `http://127.0.0.1:${port}`;
      server = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
      for await (const line of createInterface(server.stdout!)) if (line.includes('ready to be paid')) break;
      server.stdout!.resume();
    });
    after(async () => {
      if (server && server.exitCode === null) {
        server.kill('SIGTERM');
        await once(server, 'exit');
      }
      rmSync(folder, { recursive: true, force: true });
    });

    for (const { command, shown } of load(readFileSync(join(ROOT, page), 'utf8'))) {
      it(`print what the page shows: ${command.slice(0, 70)}`, () => {
        const local = command.replaceAll('http://127.0.0.1:8402', url);
        const { status, stdout, stderr } = spawnSync('bash', ['-c', local], {
          cwd: local.startsWith('curl') ? folder : ROOT,
          env,
          encoding: 'utf8',
          timeout: RUN_MS,
        });
        expect(status, stderr).to.equal(0);
        // curl's progress meter is not part of the output.
        const said = local.startsWith('curl') ? stdout : stderr + stdout;
        expect(said).to.match(shown);
      });
    }
  });
}
