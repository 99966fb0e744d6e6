import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import {
  createAssociatedTokenAccountInstruction,
  createTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
} from '@solana/spl-token';
import { Connection, Keypair, PublicKey, TransactionMessage, VersionedTransaction } from '@solana/web3.js';
import type { SandboxInfo } from '../../src/config/sandbox-file.js';

const PAYERS_PER_TRANSACTION = 4;
const MAX_LOOKS = 50;
const LOOK_MS = 200;

/** New payers, each with this much USDC in atomic units, funded by the buyer of a sandbox in another process. */
export async function fundedPayers(
  { rpcUrl, usdcMint }: SandboxInfo,
  folder: string,
  count: number,
  amount = 20_000_000n,
): Promise<Keypair[]> {
  const secret = JSON.parse(readFileSync(join(folder, 'buyer.json'), 'utf8')) as number[];
  const funder = Keypair.fromSecretKey(Uint8Array.from(secret));
  const connection = new Connection(rpcUrl, 'confirmed');
  const mint = new PublicKey(usdcMint);
  const accountOf = (owner: PublicKey): PublicKey => getAssociatedTokenAddressSync(mint, owner, true);
  const payers = Array.from({ length: count }, () => Keypair.generate());
  for (let from = 0; from < count; from += PAYERS_PER_TRANSACTION) {
    const instructions = payers.slice(from, from + PAYERS_PER_TRANSACTION).flatMap(({ publicKey }) => {
      const account = accountOf(publicKey);
      return [
        createAssociatedTokenAccountInstruction(funder.publicKey, account, publicKey, mint),
        createTransferCheckedInstruction(
          accountOf(funder.publicKey),
          mint,
          account,
          funder.publicKey,
          amount,
          6,
        ),
      ];
    });
    const { blockhash } = await connection.getLatestBlockhash();
    const content = { payerKey: funder.publicKey, recentBlockhash: blockhash, instructions };
    const transaction = new VersionedTransaction(new TransactionMessage(content).compileToV0Message());
    transaction.sign([funder]);
    await landed(connection, await connection.sendTransaction(transaction, { skipPreflight: true }));
  }
  return payers;
}

/** The total balance of these payers, in atomic units of USDC. */
export async function usdcOf({ rpcUrl, usdcMint }: SandboxInfo, payers: readonly Keypair[]): Promise<bigint> {
  const connection = new Connection(rpcUrl, 'confirmed');
  const mint = new PublicKey(usdcMint);
  const balances = payers.map(({ publicKey }) =>
    connection.getTokenAccountBalance(getAssociatedTokenAddressSync(mint, publicKey, true)),
  );
  return (await Promise.all(balances)).reduce((sum, { value }) => sum + BigInt(value.amount), 0n);
}

async function landed(connection: Connection, signature: string): Promise<void> {
  for (let look = 0; look < MAX_LOOKS; look++) {
    const { value } = await connection.getSignatureStatuses([signature]);
    if (value[0]?.err) throw new Error(`the payers could not be funded: ${JSON.stringify(value)}`);
    if (value[0]) return;
    await pause(LOOK_MS);
  }
  throw new Error('the payers could not be funded: the transaction did not land');
}
