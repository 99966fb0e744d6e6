import { createKeyPairSignerFromBytes } from '@solana/kit';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { expect } from 'chai';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.js';
import { ownPlace, succeed } from '../../support/other-shop.js';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const COMMAND = join(ROOT, 'src', 'cli', 'coinslot.js');
const WAIT_MS = 90_000;

/** A shop written by `coinslot init`, with the packages that npm would install for it. */
async function installedShop(folder: string): Promise<void> {
  const env = ownPlace(join(folder, 'state'));
  await succeed(tmpdir(), env, process.execPath, COMMAND, 'init', folder);
  const packages = join(folder, 'node_modules');
  const own = join(packages, 'coinslot');
  mkdirSync(join(own, 'dist'), { recursive: true });
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    symlinkSync(join(ROOT, 'node_modules', name), join(packages, name));
  copyFileSync(join(ROOT, 'package.json'), join(own, 'package.json'));
  symlinkSync(join(ROOT, 'dist', 'src'), join(own, 'dist', 'src'));
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const types = ['-p', join(ROOT, 'src', 'shop'), '--outDir', join(own, 'dist', 'types')];
  await succeed(ROOT, env, process.execPath, compiler, ...types);
}

/** `coinslot dev`, and its output so far. */
class Dev {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  said = '';
  #heard: (() => void)[] = [];

  constructor(folder: string, env: Record<string, string>) {
    this.child = spawn(process.execPath, [COMMAND, 'dev'], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.ended = once(this.child, 'exit');
    const hear = (chunk: Buffer): void => {
      this.said += String(chunk);
      for (const heard of this.#heard.splice(0)) heard();
    };
    this.child.stdout?.on('data', hear);
    this.child.stderr?.on('data', hear);
    void this.ended.then(() => hear(Buffer.from('')));
  }

  /** Makes a change, and waits for what is printed about it. */
  async after(change: () => void, said: RegExp): Promise<string> {
    const from = this.said.length;
    change();
    const until = Date.now() + WAIT_MS;
    while (!said.test(this.said.slice(from))) {
      if (Date.now() > until || this.child.exitCode !== null)
        throw new Error(`coinslot dev did not say ${said}, but:\n${this.said.slice(from)}`);
      await new Promise<void>(resolve => {
        this.#heard.push(resolve);
        setTimeout(resolve, 1_000);
      });
    }
    return this.said.slice(from);
  }

  /** The ids of the processes that have written a log. */
  pids(): number[] {
    return [...new Set([...this.said.matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid)))];
  }
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('coinslot dev', function () {
  this.timeout(240_000);
  let folder: string;
  let env: Record<string, string>;
  let dev: Dev;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-dev-'));
    await installedShop(folder);
    env = ownPlace(join(folder, 'state'), { PORT: String(await freePort()), ADMIN_PORT: '0' });
    dev = new Dev(folder, env);
    await dev.after(() => undefined, /On sale after/);
  });
  after(async () => {
    dev.child.kill('SIGKILL');
    await dev.ended;
    rmSync(folder, { recursive: true, force: true });
  });

  const file = (...path: string[]): string => join(folder, ...path);
  const handler = (): string => readFileSync(file('handlers', 'textStats.ts'), 'utf8');
  const sandbox = (): { rpcUrl: string; pid: number } =>
    JSON.parse(readFileSync(file('state', 'sandbox.json'), 'utf8')) as { rpcUrl: string; pid: number };
  /** Saves a file as many editors do, by replacing it with a new one. */
  const replace = (path: string, text: string): void => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  const saveHandler = (words: string): void =>
    replace(file('handlers', 'textStats.ts'), handler().replace(/words: [^,]*,/, `words: ${words},`));
  const savePrice = (amount: string): void =>
    writeFileSync(
      file('openapi.yaml'),
      readFileSync(file('openapi.yaml'), 'utf8').replace(/amount: [^,]*,/, `amount: ${amount},`),
    );

  /** Buys with the official client. */
  async function buy(): Promise<unknown> {
    const keypair = Uint8Array.from(
      JSON.parse(readFileSync(file('state', 'buyer.json'), 'utf8')) as number[],
    );
    const scheme = new ExactSvmScheme(await createKeyPairSignerFromBytes(keypair), sandbox());
    const pay = wrapFetchWithPayment(fetch, new x402Client().register('solana:*', scheme));
    const answer = await pay(`http://127.0.0.1:${env['PORT']}/v1/text-stats`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'One coin, one call.' }),
    });
    return answer.json();
  }

  it('prints each operation with price and address, and a purchase command to paste', async () => {
    expect(dev.said)
      .to.contain(`textStats  0.01 USDC  POST http://127.0.0.1:${env['PORT']}/v1/text-stats`)
      .and.to.contain(`npx coinslot buy textStats '{"text":"One coin, one call."}'`);
    expect(await buy()).to.include({ words: 4 });
  });

  it('sells what a saved handler answers, and keeps the chain, the wallets and the ledger', async () => {
    const before = sandbox();
    await dev.after(() => saveHandler('40'), /On sale after .*handlers\/textStats\.ts/);
    expect(await buy()).to.include({ words: 40 });
    expect(sandbox()).to.deep.equal(before);
    const sold = await succeed(folder, env, process.execPath, COMMAND, 'ledger', 'list', '--json');
    expect(sold.match(/"delivered"/g)).to.have.length(2);
  });

  it('says where a handler does not compile, keeps selling the previous version, and then sells the fixed one', async () => {
    const said = await dev.after(() => saveHandler("'many'"), /The previous version keeps selling/);
    expect(said).to.match(/^handlers\/textStats\.ts:\d+:\d+ Type /m);
    expect(await buy()).to.include({ words: 40 });
    await dev.after(() => saveHandler('41'), /On sale after/);
    expect(await buy()).to.include({ words: 41 });
  });

  it('says where the contract has an error, keeps selling at the old price, and then sells at the new one', async () => {
    await dev.after(
      () => savePrice('0.02'),
      /^ +openapi\.yaml:\d+ paths.*amount must be a decimal string[^]*The previous version keeps selling/m,
    );
    expect(await buy()).to.include({ words: 41 });
    const mended = await dev.after(() => savePrice("'0.02'"), /On sale after/);
    expect(mended).to.contain('textStats  0.02 USDC');
    expect(await buy()).to.include({ words: 41 });
    const sold = await succeed(folder, env, process.execPath, COMMAND, 'ledger', 'list', '--json');
    expect(sold).to.contain('0.02');
  });

  it("keeps selling when a handler can't be loaded, and returns to the previous version when the new one can't start", async () => {
    const working = handler();
    const path = file('handlers', 'textStats.ts');
    const unloaded = await dev.after(
      () => replace(path, `${working}throw new Error('not loaded');\n`),
      /The previous version keeps selling/,
    );
    expect(unloaded)
      .to.contain("can't be loaded: not loaded")
      .and.to.match(/textStats\.js:\d+/);
    expect(await buy()).to.include({ words: 41 });
    const fails = working
      .replace('=> ({', "=> { throw new Error('no backend'); return {")
      .replace('});', '}};');
    const unstarted = await dev.after(() => replace(path, fails), /The previous version keeps selling/);
    expect(unstarted).to.contain('no backend');
    expect(await buy()).to.include({ words: 41 });
    await dev.after(() => replace(path, working.replace('words: 41', 'words: 42')), /On sale after/);
    expect(await buy()).to.include({ words: 42 });
  });

  it('sells the newer of two versions if it is saved before the older one is on sale', async () => {
    await dev.after(() => saveHandler('50'), /stopping: finishing open requests/);
    await dev.after(() => saveHandler('51'), /On sale after[^]*On sale after/);
    expect(await buy()).to.include({ words: 51 });
  });

  it('does not rebuild when a log in the folder grows, which may be its own', async () => {
    const said = await dev.after(() => {
      writeFileSync(file('dev.log'), 'On sale\n');
      return saveHandler('52');
    }, /On sale after.*/);
    expect(said).to.contain('textStats.ts').and.not.contain('dev.log');
    expect(await buy()).to.include({ words: 52 });
  });

  it('sells an added operation, from a file in a new folder', async () => {
    await dev.after(() => {
      mkdirSync(file('handlers', 'words'));
      writeFileSync(file('handlers', 'words', 'count.ts'), 'export const COUNT = 60;\n');
      const text = handler().replace(
        "from 'coinslot';",
        "from 'coinslot';\nimport { COUNT } from './words/count.js';",
      );
      replace(file('handlers', 'textStats.ts'), text.replace(/words: \d+,/, 'words: COUNT,'));
    }, /On sale after/);
    expect(await buy()).to.include({ words: 60 });
    await dev.after(
      () => writeFileSync(file('handlers', 'words', 'count.ts'), 'export const COUNT = 61;\n'),
      /On sale after/,
    );
    expect(await buy()).to.include({ words: 61 });
  });

  it('sells a call that is paid up front once real code replaces the generated stub', async () => {
    const tsconfig = readFileSync(file('tsconfig.json'), 'utf8');
    replace(
      file('tsconfig.json'),
      tsconfig.replace('"strict": true', '"strict": true, "noUnusedLocals": true'),
    );
    const options = ['--price', '0.5', '--flow', 'upfront', '--request', '{"topic":"ferries"}'];
    await dev.after(() => {
      const added = spawnSync(process.execPath, [COMMAND, 'operation', 'add', 'report', ...options], {
        cwd: folder,
        env,
        encoding: 'utf8',
      });
      expect(added.status, added.stderr).to.equal(0);
    }, /report +0\.5 USDC[^]*On sale after/);
    const written = readFileSync(file('handlers', 'report.ts'), 'utf8')
      .replace(/ {2}\/\/ Runs before[^]*?\n {2}\},\n/, '')
      .replace(
        /call: [^]*?\n {2}\},/,
        'call: async ({ body }) => ({ status: 200, body: { result: body.topic } }),',
      );
    await dev.after(() => replace(file('handlers', 'report.ts'), written), /On sale after/);
    expect(written).not.to.contain('ready:');
    expect(written).to.contain('{@link UpstreamFailure}');
  });

  it('generates tests that pass for answers that differ from the examples', async () => {
    expect(await buy()).not.to.include({ words: 4 });
    const tested = await succeed(folder, env, process.execPath, '--test', 'dist/test/');
    expect(tested).to.match(/^# pass 2$/m);
  });

  it('says that its port is in use, and that it sells in the sandbox only', async () => {
    for (const [more, says] of [
      [{}, /^PORT: \d+ is in use; set PORT to another one$/m],
      [
        {
          NETWORK: 'mainnet',
          PAY_TO: 'So11111111111111111111111111111111111111112',
          PUBLIC_URL: 'https://shop.example',
        },
        /^NETWORK: coinslot dev sells in the sandbox only/m,
      ],
    ] as const) {
      const { status, stderr } = spawnSync(process.execPath, [COMMAND, 'dev'], {
        cwd: folder,
        env: { ...env, ...more, STATE_DIR: file('other-state') },
        encoding: 'utf8',
        timeout: WAIT_MS,
      });
      expect(status, stderr).to.equal(1);
      expect(stderr)
        .to.match(says)
        .and.not.to.match(/^\s+at /m);
    }
  });

  it('ends with Ctrl-C, and leaves no process behind', async () => {
    const pids = [...dev.pids(), sandbox().pid];
    expect(pids.filter(lives)).to.have.length(2);
    dev.child.kill('SIGINT');
    await dev.ended;
    expect(dev.child.exitCode).to.equal(0);
    expect(pids.filter(lives)).to.deep.equal([]);
  });
});
