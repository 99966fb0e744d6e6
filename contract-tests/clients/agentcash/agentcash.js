import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import bs58 from 'bs58';

const { COINSLOT_URL, KEYPAIR } = process.env;
const program = fileURLToPath(new URL('node_modules/agentcash/dist/esm/index.js', import.meta.url));
const stub = new URL('sandbox.js', import.meta.url).href;
const run = promisify(execFile);

const key = bs58.encode(Uint8Array.from(JSON.parse(readFileSync(KEYPAIR, 'utf8'))));

/** Buys a call with the agentcash command. @returns the transaction */
export async function buy(path, body) {
  // Each run has its own home folder: processes that start concurrently damage each other's wallet file, which none of them needs.
  const home = mkdtempSync(join(tmpdir(), 'agentcash-'));
  const call = ['fetch', COINSLOT_URL + path, '-m', 'POST', '-b', JSON.stringify(body)];
  const options = ['-H', 'content-type: application/json', '--payment-network', 'solana', '-y'];
  const args = ['--import', stub, program, ...call, ...options];
  const env = { ...process.env, HOME: home, X402_SOLANA_PRIVATE_KEY: key };
  const { stdout } = await run(process.execPath, args, { env, timeout: 120_000 }).catch(error => error);
  rmSync(home, { recursive: true });
  const { success, metadata } = JSON.parse(stdout);
  if (!success || !metadata?.payment?.success) throw new Error(`${path}: ${stdout.slice(0, 500)}`);
  return metadata.payment.transactionHash;
}
