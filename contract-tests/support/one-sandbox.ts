import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import {
  createTransferCheckedInstruction,
  getAccount,
  getAssociatedTokenAddressSync,
} from '@solana/spl-token';
import { Connection, Keypair, PublicKey, TransactionMessage, VersionedTransaction } from '@solana/web3.js';
import type { PaymentRequirements } from '@x402/core/types';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are asserted on, not typed
export type Json = { [name: string]: any };

export let folder: string;

export let sandbox: Sandbox;

export let connection: Connection;

export let buyer: Keypair;

export const usdcOf = async (owner: string): Promise<bigint> => {
  const account = getAssociatedTokenAddressSync(new PublicKey(sandbox.info.usdcMint), new PublicKey(owner));
  return (await getAccount(connection, account)).amount;
};

export const call = async (method: string, params: unknown[]): Promise<Json> => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return (await (await fetch(sandbox.rpc.url, { method: 'POST', body })).json()) as Json;
};

export const facilitate = async (path: string, body: unknown): Promise<{ status: number; answer: Json }> => {
  const response = await fetch(sandbox.facilitator.url + path, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  return { status: response.status, answer: (await response.json()) as Json };
};

export const offer = (extra: Json = {}): PaymentRequirements => ({
  scheme: 'exact',
  network: sandbox.info.network as PaymentRequirements['network'],
  amount: '10000',
  asset: sandbox.info.usdcMint,
  payTo: sandbox.info.payTo,
  maxTimeoutSeconds: 60,
  extra: { feePayer: sandbox.info.feePayer, ...extra },
});

export const pay = async (requirements: PaymentRequirements): Promise<Json> => {
  const scheme = new ExactSvmScheme(await createKeyPairSignerFromBytes(buyer.secretKey), {
    rpcUrl: sandbox.rpc.url,
  });
  const { payload } = await scheme.createPaymentPayload(2, requirements);
  const paymentPayload = {
    x402Version: 2,
    payload,
    resource: { url: 'http://x/' },
    accepted: requirements,
  };
  return { x402Version: 2, paymentPayload, paymentRequirements: requirements };
};

export const transfer = async (amount: bigint, blockhash?: string): Promise<VersionedTransaction> => {
  const mint = new PublicKey(sandbox.info.usdcMint);
  const from = getAssociatedTokenAddressSync(mint, buyer.publicKey);
  const to = getAssociatedTokenAddressSync(mint, new PublicKey(sandbox.info.payTo));
  const message = new TransactionMessage({
    payerKey: buyer.publicKey,
    recentBlockhash: blockhash ?? (await connection.getLatestBlockhash()).blockhash,
    instructions: [createTransferCheckedInstruction(from, mint, to, buyer.publicKey, amount, 6)],
  }).compileToV0Message();
  const transaction = new VersionedTransaction(message);
  transaction.sign([buyer]);
  return transaction;
};

export const base64 = (transaction: VersionedTransaction): string =>
  Buffer.from(transaction.serialize()).toString('base64');

/** Gives the tests of a suite one sandbox to share. */
export function allInOneSandbox(): void {
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'coinslot-sandbox-'));
    sandbox = await startSandbox({ stateDir: folder, rpcPort: 0, facilitatorPort: 0 });
    connection = new Connection(sandbox.rpc.url, 'confirmed');
    buyer = Keypair.fromSecretKey(
      Uint8Array.from(JSON.parse(readFileSync(join(folder, 'buyer.json'), 'utf8'))),
    );
  });

  after(async () => {
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  });
}
