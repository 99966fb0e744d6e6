import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import bs58 from 'bs58';

/** Ten different calls in a row, most of them at one price: agentcash signs without a memo. */
const { COINSLOT_URL, KEYPAIR } = process.env;
const program = fileURLToPath(new URL('node_modules/agentcash/dist/esm/index.js', import.meta.url));
const stub = new URL('sandbox.js', import.meta.url).href;
const home = mkdtempSync(join(tmpdir(), 'agentcash-'));
const env = {
  ...process.env,
  HOME: home,
  X402_SOLANA_PRIVATE_KEY: bs58.encode(Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8')))),
};

function buy(path, body) {
  const call = ['fetch', COINSLOT_URL + path, '-m', 'POST', '-b', JSON.stringify(body)];
  const options = ['-H', 'content-type: application/json', '--payment-network', 'solana', '-y'];
  let output;
  try {
    output = execFileSync(process.execPath, ['--import', stub, program, ...call, ...options], {
      env,
      timeout: 60_000,
    });
  } catch (error) {
    throw new Error(`${path}: ${String(error.stdout).slice(0, 500)}`);
  }
  const { success, metadata } = JSON.parse(output.toString());
  if (!success || !metadata?.payment?.success) throw new Error(`${path}: ${output.toString().slice(0, 500)}`);
}

try {
  const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8'));
  const paid = Object.entries(paths).filter(([, { post }]) => post?.['x-price']);
  for (const [path, { post }] of paid) buy(path, post.requestBody.content['application/json'].example);
  for (const day of ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday'])
    buy('/v1/summarize', { text: `The harbour bridge closes on ${day}. Ferries run every ten minutes.` });
  if (paid.length !== 5) throw new Error(`bought ${paid.length} operations instead of 5`);
} finally {
  rmSync(home, { recursive: true });
}
