// An MCP server that sells with x402's Python package: `coinslot conformance` finds no error in it, and `coinslot mcp` buys from it.
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const { STATE_DIR = '', KEYPAIR = '', RPC_URL: rpcUrl = '', root = '' } = process.env;
const sandbox = JSON.parse(readFileSync(join(STATE_DIR, 'sandbox.json'), 'utf8'));
const coinslot = join(root, 'src/cli/coinslot.js');
const CALLS = 5;

const shop = spawn('.venv/bin/python', ['-W', 'ignore', 'reference_shop.py'], {
  env: { ...process.env, FACILITATOR: sandbox.facilitatorUrl, CHAIN: sandbox.network, PAYEE: sandbox.payTo },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const state = mkdtempSync(join(tmpdir(), 'coinslot-reference-'));
try {
  const [url] = await new Promise((resolve, reject) => {
    createInterface(shop.stdout).once('line', line => resolve([line]));
    shop.once('exit', () => reject(new Error('it ends')));
  });

  const report = await promisify(execFile)(process.execPath, [coinslot, 'conformance', url, '--json']);
  const findings = report.stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
  const told = findings.map(({ promise }) => promise).join('\n');
  assert.match(told, /count_words without payment returns its challenge/);
  const wrong = findings.filter(({ fault, advice }) => fault && !advice);
  assert.deepEqual(wrong, []);
  // The advice about sessions is justified, because this server keeps them.
  const advice = findings.filter(({ fault }) => fault).map(({ promise }) => promise);
  assert.deepEqual(advice, ['MCP: a call needs no session, so any server of the shop can answer it']);

  const args = [coinslot, 'mcp', '--url', url, '--keypair', KEYPAIR, '--rpc', rpcUrl, '--state', state];
  const host = new Client({ name: 'host', version: '1.0.0' });
  await host.connect(new StdioClientTransport({ command: process.execPath, args }));
  const { tools } = await host.listTools();
  assert.deepEqual(tools.map(({ name }) => name).sort(), ['count_words', 'languages', 'wallet_statement']);
  for (let words = 1; words <= CALLS; words += 1) {
    const answer = await host.callTool({ name: 'count_words', arguments: { text: 'word '.repeat(words) } });
    const said = answer.content.map(({ text }) => text).join('\n');
    assert.ok(said.includes(`"words": ${words}`) && said.includes('Paid 0.01 USDC'), said);
  }
  await host.close();
  console.log(`${findings.length} findings, ${CALLS} calls bought`);
} finally {
  shop.kill();
  rmSync(state, { recursive: true });
}
