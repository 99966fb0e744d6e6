// mcpay is a proxy that pays the sandbox's MCP server for a host, in x402 v1. The address of devnet's RPC server is hard-coded in it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import bs58 from 'bs58';

const { COINSLOT_URL, KEYPAIR, RPC_URL } = process.env;
const key = bs58.encode(Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8'))));
/** The size limit of one text for a model, in bytes. */
const MAX_BYTES = 4096;
/** A word that the answer of each operation contains. */
const ANSWERS = {
  summarize: 'summary',
  solTokenBrief: 'priceUsd',
  solMintInfo: 'decimals',
  brandFeedback: 'responses',
  textToSpeech: 'audio/wav',
};
const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8'));
const sold = Object.values(paths).flatMap(({ post }) => (post?.['x-price'] ? [post] : []));

const transport = new StdioClientTransport({
  command: process.execPath,
  args: [
    '--import=./devnet-is-the-sandbox.js',
    ...['node_modules/mcpay/dist/cli/index.js', 'connect'],
    ...['--urls', `${COINSLOT_URL}/mcp?x402Version=1`],
  ],
  env: {
    ...{ COINSLOT_URL, RPC_URL },
    ...{ SVM_SECRET_KEY: key, SVM_NETWORK: 'solana-devnet', X402_MAX_ATOMIC: '600000' },
  },
});
const host = new Client({ name: 'host', version: '1.0.0' });
await host.connect(transport);

async function read(name, args) {
  const { content } = await host.callTool({ name, arguments: args });
  for (const { text = '' } of content)
    assert.ok(
      Buffer.byteLength(text) <= MAX_BYTES,
      `${name} hands ${Buffer.byteLength(text)} bytes to a model`,
    );
  return content.map(({ text }) => text).join('\n');
}

let bought = 0;
const { tools } = await host.listTools();
for (const name of [...sold.map(({ operationId }) => operationId), 'listVoices', 'pick_up'])
  assert.ok(
    tools.some(tool => tool.name === name),
    `${name} is not among its tools`,
  );
assert.match(await read('listVoices', {}), /default/);
for (const { operationId, requestBody } of sold) {
  const text = await read(operationId, requestBody.content['application/json'].example);
  assert.ok(text.includes(ANSWERS[operationId]), text);
  bought += 1;
}
assert.equal(bought, 5);
await host.close();
process.exit(0);
