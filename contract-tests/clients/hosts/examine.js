import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { x402Client } from '@x402/core/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';

/**
 * Buys everything with a library that agents are built on, directly and through `coinslot mcp`. There is no model: the test examines the
 * text that the library would hand to a model. examine.py does the same in Python.
 */
const { COINSLOT_URL: url = '', KEYPAIR = '', RPC_URL: rpcUrl = '', root = '' } = process.env;
/** The wallet's budget, in atomic units. */
const BUDGET = 5_000_000n;
/** The size limit of one text for a model, in bytes. */
const MAX_BYTES = 4096;
/** A word that the answer of each operation contains. */
const ANSWERS = {
  summarize: 'summary',
  solTokenBrief: 'brief',
  solMintInfo: 'decimals',
  brandFeedback: 'responses',
  textToSpeech: 'audio/wav',
};

const key = Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8')));
const signer = await createKeyPairSignerFromBytes(key);
const wallet = new x402Client().register('solana:*', new ExactSvmScheme(signer, { rpcUrl }));

const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8'));
const sold = Object.values(paths).flatMap(({ post }) => (post?.['x-price'] ? [post] : []));
const examples = sold.map(({ operationId, requestBody }) => [
  operationId,
  requestBody.content['application/json'].example,
]);

let longest = 0;

/** Calls a tool, and returns everything that a model sees of its result. */
async function read(host, name, args, payment) {
  const texts = await host.call(name, args, payment);
  for (const text of texts) {
    const bytes = Buffer.byteLength(text);
    longest = Math.max(longest, bytes);
    assert.ok(bytes <= MAX_BYTES, `${name} hands ${bytes} bytes to a model: ${text.slice(0, 200)}`);
  }
  return texts.join('\n');
}

async function seen(host, more = []) {
  for (const name of [...Object.keys(ANSWERS), 'listVoices', 'pick_up', ...more])
    assert.ok(host.tools.includes(name), `${name} is not among ${host.tools}`);
  assert.match(await read(host, 'listVoices', {}), /default/);
}

function assertSpeech(bytes) {
  assert.equal(bytes.subarray(0, 4).toString(), 'RIFF');
}

/** Buys a tool's answer with a payment in the call. @returns the price */
async function buyDirectly(host, name, example) {
  const unpaid = await read(host, name, example);
  assert.match(unpaid, new RegExp(`${name} costs [\\d.]+ USDC and was not paid`));
  const required = JSON.parse(/\{.*\}/.exec(unpaid)[0]);
  const text = await read(host, name, example, await wallet.createPaymentPayload(required));
  assert.ok(text.includes(ANSWERS[name]), text);
  if (name === 'textToSpeech') {
    const [link] = /https?:[^\s"\\]+/.exec(text);
    assertSpeech(Buffer.from(await (await fetch(link)).arrayBuffer()));
  }
  return BigInt(required.accepts[0].amount);
}

async function buyThroughWallet(host, name, example) {
  const text = await read(host, name, example);
  assert.ok(text.includes(ANSWERS[name]), text);
  assert.match(text, /Paid [\d.]+ USDC/);
  if (name === 'textToSpeech') assertSpeech(readFileSync(/in the file (\S+)/.exec(text)[1]));
}

/** Calls all tools concurrently, as an agent does with independent calls. */
const buyAll = (buy, host) => Promise.all(examples.map(([name, example]) => buy(host, name, example)));

/**
 * @param open connects to `{ url }` or starts `{ command, args }`, and gives `tools` (names), `close`, and
 *   `call(name, args, payment?)`, which returns the texts that a model would get, including those of an error
 */
export async function examine(open) {
  assert.equal(examples.length, 5);
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-host-'));
  const program = [join(root, 'src/cli/coinslot.js'), 'mcp', '--url', url, '--keypair', KEYPAIR];
  const limits = ['--max-price', '0.60', '--budget', String(BUDGET / 1_000_000n)];
  const args = [...program, '--rpc', rpcUrl, '--state', folder, ...limits];
  try {
    const servers = await Promise.all([open({ url: `${url}/mcp` }), open({ command: 'node', args })]);
    const [direct, through] = servers;
    await seen(direct);
    await seen(through, ['wallet_statement']);
    const [prices] = await Promise.all([buyAll(buyDirectly, direct), buyAll(buyThroughWallet, through)]);
    const due = prices.reduce((sum, price) => sum + price, 0n);
    const statement = await read(through, 'wallet_statement', {});
    const [, left] = /leftToday\W+([\d.]+)/.exec(statement);
    assert.equal(BigInt(Math.round(Number(left) * 1e6)), BUDGET - due, 'one payment for each answer');
    await Promise.all(servers.map(({ close }) => close()));
    console.log(`the longest text has ${longest} bytes`);
  } finally {
    rmSync(folder, { recursive: true });
  }
  process.exit(0);
}
