// Buys every paid tool with an MCP client that does not support payments: buy.js sdk | client-2025 | client-2026 | remote
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { x402Client } from '@x402/core/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';

const { COINSLOT_URL: url = '', KEYPAIR = '', RPC_URL: rpcUrl } = process.env;
const endpoint = new URL(`${url}/mcp`);
const key = Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8')));
const signer = await createKeyPairSignerFromBytes(key);
const wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));

/** The size limit of one text for a model, in bytes. */
const MAX_BYTES = 4096;

const about = { name: 'buyer', version: '1.0.0' };
const connections = {
  sdk: async () => {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } =
      await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client(about);
    await client.connect(new StreamableHTTPClientTransport(endpoint));
    return client;
  },
  'client-2025': () => newClient('legacy'),
  'client-2026': () => newClient({ pin: '2026-07-28' }),
  remote: async () => {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const client = new Client(about);
    const args = ['node_modules/.bin/mcp-remote', endpoint.href, '--allow-http', '--transport', 'http-only'];
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
    return client;
  },
};

async function newClient(mode) {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client(about, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(endpoint));
  return client;
}

/** Checks that a model gets a link, and that the link leads to speech. */
async function assertSpeech({ content: [{ text }], structuredContent: { url, size } }) {
  assert.ok(text.includes(url) && text.length < 500);
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
  assert.equal(bytes.length, size);
  assert.equal(bytes.subarray(0, 4).toString(), 'RIFF');
}

async function call(asked) {
  const result = await client.callTool(asked);
  for (const { text = '' } of result.content)
    assert.ok(
      Buffer.byteLength(text) <= MAX_BYTES,
      `${asked.name} hands ${text.length} characters to a model`,
    );
  return result;
}

const client = await connections[process.argv[2]]();
// Some clients validate results only once they have listed the tools.
const { tools } = await client.listTools();
const [voices] = (await call({ name: 'listVoices', arguments: {} })).content;
assert.match(voices.text, /default/);
let bought = 0;
for (const { name } of tools) {
  const unpaid = await call({ name, arguments: {} });
  const required = unpaid.structuredContent;
  if (!required?.accepts) continue;
  assert.equal(unpaid.isError, true);
  const { example } = required.extensions.bazaar.info.input;
  const payment = await wallet.createPaymentPayload(required);
  const asked = { name, arguments: example, _meta: { 'x402/payment': payment } };
  const answer = await call(asked);
  assert.notEqual(answer.isError, true, JSON.stringify(answer.content).slice(0, 300));
  const receipt = answer._meta['x402/payment-response'];
  assert.equal(receipt.success, true);
  assert.equal(receipt.amount, required.accepts[0].amount);
  assert.ok(answer.structuredContent);
  if (name === 'textToSpeech') await assertSpeech(answer);
  bought += 1;
}
assert.equal(bought, 5);
await client.close();
process.exit(0);
