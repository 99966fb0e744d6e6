import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { parse } from 'yaml';
import { HOSTS } from '../../../src/cli/mcp/hosts.js';
import { install as installIn, type InstallValues, type Surroundings } from '../../../src/cli/mcp/install.js';

const COINSLOT = '/opt/coinslot/src/cli/coinslot.js';
const URL_OF_SHOP = 'https://api.acme.example';
/** Where each host keeps its settings, below the home folder or the current one. */
const FILES: Record<string, string> = {
  'claude-code': 'shop/.mcp.json',
  'claude-desktop': '.config/Claude/claude_desktop_config.json',
  codex: '.codex/config.toml',
  cursor: '.cursor/mcp.json',
  goose: '.config/goose/config.yaml',
  vscode: 'shop/.vscode/mcp.json',
};

type Ran = { done: boolean; out: string; err: string };
type Entry = { command?: string; cmd?: string; args: string[] };

describe('coinslot mcp install', () => {
  let home: string;
  let keypair: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'coinslot-install-'));
    mkdirSync(join(home, 'shop'));
    keypair = join(home, 'payer.json');
    writeFileSync(keypair, JSON.stringify([...Keypair.generate().secretKey]), { mode: 0o600 });
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const install = async (host: string, more: Partial<InstallValues> = {}, allows = false): Promise<Ran> => {
    let out = '';
    const around: Surroundings = {
      ...{ home, folder: join(home, 'shop'), platform: 'linux', env: {}, program: COINSLOT },
      print: text => void (out += text),
      allowed: () => Promise.resolve(allows),
    };
    const wallet = { url: URL_OF_SHOP, keypair, 'max-price': '0.05', budget: '1.00', timeout: '50' };
    const values = { ...wallet, 'allow-http': false, yes: false, host, ...more };
    const done = await installIn(values, around).catch((error: Error) => error.message);
    return typeof done === 'string' ? { done: false, out, err: done } : { done, out, err: '' };
  };
  const fileOf = (host: string): string => join(home, FILES[host] ?? '');
  const write = (host: string, text: string): void => {
    mkdirSync(dirname(fileOf(host)), { recursive: true });
    writeFileSync(fileOf(host), text);
  };
  const read = (host: string): string => readFileSync(fileOf(host), 'utf8');
  const entryIn = (host: string): Entry => {
    if (host === 'codex') {
      const [, command, args] = /^\[mcp_servers\.api-acme-example\]\ncommand = (.*)\nargs = (.*)$/m.exec(
        read(host),
      ) as unknown as [string, string, string];
      return { command: JSON.parse(command) as string, args: JSON.parse(args) as string[] };
    }
    const all = parse(read(host)) as Record<string, Record<string, Entry>>;
    const servers = all['mcpServers'] ?? all['servers'] ?? all['extensions'];
    return servers?.['api-acme-example'] as Entry;
  };

  it('knows the settings file of each host', () => expect(HOSTS).to.have.keys(...Object.keys(FILES)));

  for (const host of Object.keys(FILES))
    it(`shows the change to the settings of ${host}, and writes it after confirmation`, async () => {
      const shown = await install(host, { budget: '2' });
      expect(shown.out).to.include(fileOf(host)).and.to.include('Nothing was written').and.to.match(/^\+ /m);
      expect([shown.done, existsSync(fileOf(host))]).to.deep.equal([false, false]);
      expect(await install(host, { budget: '2' }, true)).to.include({ done: true, err: '' });
      const { command, cmd, args } = entryIn(host);
      expect([command ?? cmd, args]).to.deep.equal([
        process.execPath,
        [COINSLOT, 'mcp', '--url', URL_OF_SHOP, '--keypair', keypair, '--max-price', '0.05', '--budget', '2'],
      ]);
      expect((await install(host, { budget: '2' })).out).to.equal(
        `${fileOf(host)} already has this server.\n`,
      );
    });

  it('leaves everything else in the settings unchanged', async () => {
    write('cursor', '{\n    "mcpServers": {\n        "other": { "command": "x" }\n    },\n    "a": 1\n}\n');
    write('codex', '# mine\nmodel = "o3"\n\n[mcp_servers.other]\ncommand = "x"');
    write('goose', '# mine\nGOOSE_MODEL: m # which\nextensions:\n  other:\n    enabled: true\n');
    for (const host of ['cursor', 'codex', 'goose'])
      expect((await install(host, { yes: true })).done).to.equal(true);
    const cursor = JSON.parse(read('cursor')) as { mcpServers: object; a: number };
    expect(cursor.a).to.equal(1);
    expect(cursor.mcpServers).to.have.keys('other', 'api-acme-example');
    expect(read('cursor')).to.match(/^ {4}"mcpServers"/m);
    expect(read('codex')).to.match(/^# mine\nmodel = "o3"\n\n\[mcp_servers\.other\]\ncommand = "x"\n\n\[mcp/);
    expect(read('goose')).to.match(/^# mine\nGOOSE_MODEL: m # which\nextensions:\n {2}other:/);
  });

  it("changes no settings that it can't read, and prints what to add by hand", async () => {
    write('vscode', '{ // mine\n  "servers": {} }');
    write('codex', '[mcp_servers."api-acme-example"]\ncommand = "x"\n');
    for (const [host, why] of [
      ['vscode', 'it is not plain JSON'],
      ['codex', 'codex mcp remove api-acme-example'],
    ] as const) {
      const before = read(host);
      const { done, err } = await install(host, { yes: true });
      expect(done).to.equal(false);
      expect(err).to.include('is left unchanged').and.to.include(why).and.to.include('"--keypair"');
      expect(read(host)).to.equal(before);
    }
  });

  it('first checks that the wallet would start with its options, and writes nothing if it would not', async () => {
    for (const [more, why] of [
      [{ budget: 'much' }, /^--budget /],
      [{ keypair: join(home, 'none.json') }, /^--keypair /],
      [{ url: 'http://shop.example' }, /http/],
      [{ name: 'a b' }, /^--name /],
      [{ host: 'emacs' }, /^--host must be one of claude-code, /],
    ] as const)
      expect((await install('cursor', { yes: true, ...more })).err).to.match(why);
    expect(existsSync(fileOf('cursor'))).to.equal(false);
  });
});
