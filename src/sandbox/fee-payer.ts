import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readKeyPairFile, type KeyPair } from '../rails/solana/key-pair.js';
import { newKey, writeAtomically } from './genesis.js';

/** Enough for the fees of a million payments. The chain's faucet provides it. */
const LAMPORTS = 10_000_000_000;
const LEAST_LAMPORTS = 1_000_000_000;
const DEADLINE_MS = 10_000;

/**
 * The fee payer of a server whose embedded facilitator runs on the sandbox's chain: a key pair in `fee-payer.json` in the state folder,
 * created (mode 0600) and funded if necessary.
 */
export async function sandboxFeePayer(stateDir: string, rpcUrl: string): Promise<KeyPair> {
  const file = join(stateDir, 'fee-payer.json');
  if (!existsSync(file)) writeAtomically(file, `${JSON.stringify(newKey())}\n`);
  const keyPair = readKeyPairFile(file);
  const { value } = (await ask(rpcUrl, 'getBalance', [keyPair.address])) as { value: number };
  if (value < LEAST_LAMPORTS) await ask(rpcUrl, 'requestAirdrop', [keyPair.address, LAMPORTS]);
  return keyPair;
}

async function ask(rpcUrl: string, method: string, params: unknown[]): Promise<unknown> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const answer = (await response.json()) as { result?: unknown; error?: { message: string } };
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}
