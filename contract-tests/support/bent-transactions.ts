import type { PublicKey } from '@solana/web3.js';
import {
  AddressLookupTableAccount,
  ComputeBudgetProgram,
  Keypair,
  TransactionInstruction,
} from '@solana/web3.js';
import { TransactionChecker, type CheckedTransaction } from '../../src/rails/solana/transaction.js';
import { craftPayment, DEVNET_USDC, memoInstruction, type Recipe } from './craft.js';

export const PAYER = Keypair.generate();
export const PAY_TO = Keypair.generate().publicKey.toBase58();
export const FEE_PAYER = Keypair.generate().publicKey.toBase58();
export const BLOCKHASH = Keypair.generate().publicKey.toBase58();
export const EXPECTED = { asset: DEVNET_USDC, payTo: PAY_TO, amount: 10_000n };
export const GOOD: Recipe = { payer: PAYER, payTo: PAY_TO, feePayer: FEE_PAYER };

export const checker = new TransactionChecker();

export function craft(bend: Recipe = {}): string {
  return craftPayment({ ...GOOD, ...bend }).transaction;
}

export async function accept(transaction: string): Promise<CheckedTransaction> {
  const result = await checker.check(transaction, EXPECTED);
  if (!result.ok) throw new Error(`refused: ${result.error}`);
  return result.checked;
}

export async function reasonOf(transaction: string): Promise<string> {
  const result = await checker.check(transaction, EXPECTED);
  if (result.ok) throw new Error('was accepted');
  return result.error;
}

/** Rewrites the compact-u16 at `offset`, a value below 128, with two bytes instead of the canonical one. */
export function longLength(offset: number): (bytes: Buffer) => Buffer {
  return bytes =>
    Buffer.concat([
      bytes.subarray(0, offset),
      Buffer.of((bytes[offset] ?? 0) | 0x80, 0),
      bytes.subarray(offset + 1),
    ]);
}

export function budget(type: number, length: number): TransactionInstruction {
  const data = Buffer.alloc(length);
  data[0] = type;
  return new TransactionInstruction({ programId: ComputeBudgetProgram.programId, keys: [], data });
}

export function replaced(index: number, instruction: TransactionInstruction): Recipe {
  return { instructions: usual => usual.map((one, at) => (at === index ? instruction : one)) };
}

export function bentTransfer(bend: (transfer: TransactionInstruction) => void): Recipe {
  return {
    instructions: usual => {
      if (usual[2]) bend(usual[2]);
      return usual;
    },
  };
}

export const memo = (): TransactionInstruction => memoInstruction('more');
export const stranger = (): PublicKey => Keypair.generate().publicKey;

export const tableOf = (address: PublicKey): AddressLookupTableAccount =>
  new AddressLookupTableAccount({
    key: stranger(),
    state: {
      deactivationSlot: 2n ** 64n - 1n,
      lastExtendedSlot: 1,
      lastExtendedSlotStartIndex: 0,
      addresses: [address],
    },
  });
