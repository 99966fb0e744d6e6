import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

type Started = { command: string; args: string[] };
type Hosts = { mcpServers?: Record<string, Started>; servers?: Record<string, Started> };

function commandsIn(page: string): Started[] {
  const blocks = (language: string): string[] =>
    [...page.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(match => match[1] ?? '');
  const json = blocks('json').flatMap(text => {
    const hosts = JSON.parse(text) as Hosts;
    return Object.values(hosts.mcpServers ?? hosts.servers ?? {});
  });
  // These values are written the same way in TOML and in JSON.
  const toml = blocks('toml').map(text => {
    const valueOf = (name: string): unknown =>
      JSON.parse(new RegExp(`^${name} = (.*)$`, 'm').exec(text)?.[1] ?? '');
    return { command: valueOf('command') as string, args: valueOf('args') as string[] };
  });
  const shell = [...page.matchAll(/^ {4}claude mcp add \S+ -- ([^]*?[^\\])$/gm)].map(match => {
    const [command = '', ...args] = (match[1] ?? '').replace(/\\\n/g, ' ').split(/\s+/);
    return { command, args };
  });
  const yaml = blocks('yaml').flatMap(text => {
    const { extensions } = parse(text) as { extensions: Record<string, { cmd: string; args: string[] }> };
    return Object.values(extensions).map(({ cmd: command, args }) => ({ command, args }));
  });
  const libraries = [
    ...page.matchAll(/^const wallet = \{\n {2}command: '(.*)',\n {2}args: (\[.*\]),$/gm),
  ].map(([, command = '', args = '']) => ({
    command,
    args: JSON.parse(args.replaceAll("'", '"')) as string[],
  }));
  return [...json, ...toml, ...shell, ...yaml, ...libraries];
}

describe('the configuration of hosts in docs/how-to/mcp.md', function () {
  this.timeout(60_000);
  const commands = commandsIn(readFileSync(join(ROOT, 'docs/how-to/mcp.md'), 'utf8'));
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-hosts-'));
    const file = join(folder, 'payer.json');
    writeFileSync(file, JSON.stringify([...Keypair.generate().secretKey]), { mode: 0o600 });
    chmodSync(file, 0o600);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('has a command for each kind of host', () => expect(commands).to.have.lengthOf(6));

  for (const [at, { command, args }] of commands.entries())
    it(`starts a server that speaks MCP (${at + 1})`, async () => {
      expect(command).to.equal('node');
      const own = args.map(each =>
        each.replace('/path/to/coinslot/', ROOT).replace('/path/to/', `${folder}/`),
      );
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: own,
        env: { PATH: process.env['PATH'] ?? '', HOME: folder },
      });
      const client = new Client({ name: 'host', version: '1' });
      await client.connect(transport);
      expect(client.getServerVersion()).to.have.property('name', 'coinslot-wallet');
      expect(client.getInstructions()).to.include('at most 0.05 USDC a call and 1.00 USDC a day');
      await client.close();
    });
});
