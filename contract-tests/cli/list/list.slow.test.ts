import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openWorld, type World } from '../../support/world.js';
import { SOLD } from '../../support/sold.js';
import { standIn } from './stand-ins.js';

const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url));

type Run = { status: number; stdout: string; stderr: string };

describe('coinslot list', function () {
  this.timeout(60_000);
  let world: World;
  let folder: string;
  before(async () => {
    world = await openWorld();
    folder = mkdtempSync(join(tmpdir(), 'coinslot-list-'));
  });
  after(async () => {
    await world?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function list(words: string[], env: Record<string, string> = {}): Promise<Run> {
    const options = { cwd: folder, env: { PATH: process.env.PATH, ...env }, timeout: 50_000 };
    return new Promise(resolve => {
      execFile(process.execPath, [MAIN, 'list', ...words], options, (error, stdout, stderr) => {
        resolve({ status: Number(error?.code ?? 0), stdout, stderr });
      });
    });
  }

  it("finds no error in this repository's shop at PUBLIC_URL, except its local address and the missing contact", async () => {
    const { status, stdout, stderr } = await list(['--json', '--offline'], { PUBLIC_URL: world.url });
    expect(stderr).to.equal('');
    const lines = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>);
    const broken = lines.filter(({ fault }) => typeof fault === 'string');
    expect(broken.map(({ promise }) => promise)).to.deep.equal([
      'directories list this address: public, https, no tunnel',
      'info.contact.email says who sells here',
    ]);
    for (const { method, path } of SOLD.paid)
      expect(lines.map(({ promise }) => promise)).to.include(`${method} ${path} answers 402 with its price`);
    expect(lines.filter(({ directory }) => directory !== undefined)).to.have.length(5);
    expect(status).to.equal(1);
  });

  it('tells the operator what to fix and what to do next', async () => {
    const { stdout, status } = await list([world.url, '--offline']);
    expect(stdout).to.match(/^FIX {5}directories list this address.*\n {10}\S/m);
    expect(stdout).to.match(/^PayAI +unknown: it was not asked\n {10}- sell each operation once/m);
    expect(stdout).to.contain('mcp-publisher publish');
    expect(status).to.equal(1);
  });

  it('prints no control characters for a terminal, whatever a directory returns', async () => {
    const hostile = await standIn(() => ({
      body: { valid: false, preflight: [{ check: '\u001b[2J', passed: false }] },
    }));
    try {
      const { stdout } = await list([world.url, '--coinbase', hostile.url]);
      expect(stdout).to.contain('\\u001b[2J').and.not.to.contain('\u001b');
    } finally {
      hostile.close();
    }
  });

  const wrong: [string[], string][] = [
    [[], 'Usage: coinslot list'],
    [['ftp://shop'], 'is not an http(s) URL'],
    [['https://shop.example', '--register'], 'needs both --register and --keypair'],
    [['https://shop.example', '--register', '--keypair', 'k.json', '--offline'], 'use only one of them'],
    [['https://shop.example', '--register', '--keypair', 'k.json'], 'run chmod 600'],
    [['https://shop.example', '--category', 'data'], 'which is missing'],
    [['https://shop.example', '--wrong'], 'Usage: coinslot list'],
  ];
  for (const [words, says] of wrong)
    it(`refuses ${words.join(' ') || 'no URL'} with a reason`, async () => {
      writeFileSync(join(folder, 'k.json'), '[]', { mode: 0o644 });
      const { status, stderr } = await list(words);
      expect(stderr).to.contain(says);
      expect(status).to.equal(2);
    });
});
