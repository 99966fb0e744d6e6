import {
  createAssociatedTokenAccountInstruction,
  getAssociatedTokenAddressSync,
  TOKEN_PROGRAM_ID,
} from '@solana/spl-token';
import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
  type AddressLookupTableAccount,
  type VersionedMessage,
} from '@solana/web3.js';
import { createPrivateKey, randomBytes, sign } from 'node:crypto';

const MEMO_PROGRAM = new PublicKey('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr');
const LIGHTHOUSE_PROGRAM = new PublicKey('L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95');
export const DEVNET_USDC = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU';
export const DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
export const DEVNET_V1 = 'solana-devnet';

/** The fields of a payment. Each has a valid default; a test sets only the ones that it makes invalid. */
export type Recipe = {
  payer?: Keypair;
  /** In base58. It is account key 0 unless `message` moves it. */
  feePayer?: string;
  /** The mint, and the owner of the receiving account, in base58. */
  asset?: string;
  payTo?: string;
  /** Atomic units. */
  amount?: bigint;
  decimals?: number;
  tokenProgram?: PublicKey;
  source?: PublicKey;
  destination?: PublicKey;
  /** The required signer of the transfer; the payer unless a test changes it. */
  authority?: PublicKey;
  /** Additional signers of the transfer, for a multisig. */
  cosigners?: Keypair[];
  blockhash?: string;
  version?: 0 | 'legacy';
  computeLimit?: number;
  /** Micro-lamports per compute unit. */
  computePrice?: bigint;
  /** Text of the memo; random by default, null for no memo. */
  memo?: string | null;
  /** Further instructions after the memo. */
  extra?: TransactionInstruction[];
  /** Replaces the list of instructions: limit, price, transfer, memo, extra. */
  instructions?: (usual: TransactionInstruction[]) => TransactionInstruction[];
  lookupTables?: AddressLookupTableAccount[];
  /** Changes the compiled message before it is signed. */
  message?: (message: VersionedMessage) => void;
  /** `none` leaves the payer's signature empty, `wrong` signs other bytes, `stranger` signs with another key. */
  signature?: 'right' | 'none' | 'wrong' | 'stranger';
  /** Changes the bytes after signing. */
  bytes?: (bytes: Buffer) => Buffer;
};

export type CraftedPayment = {
  /** Base64, as sent in a payment. */
  transaction: string;
  bytes: Buffer;
  messageBytes: Buffer;
  payer: Keypair;
};

/** A payment built from `recipe` and signed by its payer only: compute limit, compute price, TransferChecked, memo. */
export function craftPayment(recipe: Recipe): CraftedPayment {
  const payer = recipe.payer ?? Keypair.generate();
  const feePayer = new PublicKey(recipe.feePayer ?? Keypair.generate().publicKey);
  const usual = usualInstructions(recipe, payer);
  const content = new TransactionMessage({
    payerKey: feePayer,
    recentBlockhash: recipe.blockhash ?? new PublicKey(randomBytes(32)).toBase58(),
    instructions: recipe.instructions?.(usual) ?? usual,
  });
  const message = compile(content, recipe);
  recipe.message?.(message);
  const transaction = new VersionedTransaction(message);
  const messageBytes = Buffer.from(message.serialize());
  for (const signer of [payer, ...(recipe.cosigners ?? [])]) {
    const slot = message.staticAccountKeys.findIndex(key => key.equals(signer.publicKey));
    if (slot >= 0 && slot < transaction.signatures.length) {
      transaction.signatures[slot] = signatureOf(recipe.signature ?? 'right', signer, messageBytes);
    }
  }
  const signed = Buffer.from(transaction.serialize());
  const bytes = recipe.bytes?.(signed) ?? signed;
  return { transaction: bytes.toString('base64'), bytes, messageBytes, payer };
}

function usualInstructions(recipe: Recipe, payer: Keypair): TransactionInstruction[] {
  const memo = recipe.memo === undefined ? randomBytes(16).toString('hex') : recipe.memo;
  return [
    ComputeBudgetProgram.setComputeUnitLimit({ units: recipe.computeLimit ?? 20_000 }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports: recipe.computePrice ?? 1n }),
    transferInstruction(recipe, payer),
    ...(memo === null ? [] : [memoInstruction(memo)]),
    ...(recipe.extra ?? []),
  ];
}

function transferInstruction(recipe: Recipe, payer: Keypair): TransactionInstruction {
  const mint = new PublicKey(recipe.asset ?? DEVNET_USDC);
  const payTo = new PublicKey(recipe.payTo ?? Keypair.generate().publicKey);
  const programId = recipe.tokenProgram ?? TOKEN_PROGRAM_ID;
  const owner = recipe.authority ?? payer.publicKey;
  const ata = (of: PublicKey): PublicKey => getAssociatedTokenAddressSync(mint, of, true, programId);
  const data = Buffer.alloc(10);
  data[0] = 12;
  data.writeBigUInt64LE(recipe.amount ?? 10_000n, 1);
  data[9] = recipe.decimals ?? 6;
  const account = (pubkey: PublicKey, isWritable: boolean, isSigner = false) => ({
    pubkey,
    isWritable,
    isSigner,
  });
  return new TransactionInstruction({
    programId,
    keys: [
      account(recipe.source ?? ata(owner), true),
      account(mint, false),
      account(recipe.destination ?? ata(payTo), true),
      account(owner, false, true),
      ...(recipe.cosigners ?? []).map(cosigner => account(cosigner.publicKey, false, true)),
    ],
    data,
  });
}

export function memoInstruction(text: string, signers: PublicKey[] = []): TransactionInstruction {
  const keys = signers.map(pubkey => ({ pubkey, isSigner: true, isWritable: false }));
  return new TransactionInstruction({ programId: MEMO_PROGRAM, keys, data: Buffer.from(text) });
}

/** An instruction of the kind that wallets add to guard a transfer (Lighthouse). */
export function lighthouseInstruction(
  account: PublicKey = Keypair.generate().publicKey,
): TransactionInstruction {
  const keys = [{ pubkey: account, isSigner: false, isWritable: false }];
  return new TransactionInstruction({ programId: LIGHTHOUSE_PROGRAM, keys, data: Buffer.from([5, 0]) });
}

/** An instruction that opens a token account at the fee payer's cost. */
export function openAccountInstruction(
  funder: PublicKey,
  owner: PublicKey,
  mint = DEVNET_USDC,
): TransactionInstruction {
  const asset = new PublicKey(mint);
  const account = getAssociatedTokenAddressSync(asset, owner, true);
  return createAssociatedTokenAccountInstruction(funder, account, owner, asset);
}

function compile(content: TransactionMessage, recipe: Recipe): VersionedMessage {
  if (recipe.version === 'legacy') return content.compileToLegacyMessage();
  return content.compileToV0Message(recipe.lookupTables);
}

const PKCS8_OF_SEED = Buffer.from('302e020100300506032b657004220420', 'hex');

function signatureOf(kind: NonNullable<Recipe['signature']>, signer: Keypair, message: Buffer): Uint8Array {
  if (kind === 'none') return new Uint8Array(64);
  const { secretKey } = kind === 'stranger' ? Keypair.generate() : signer;
  const der = Buffer.concat([PKCS8_OF_SEED, secretKey.subarray(0, 32)]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return sign(null, kind === 'wrong' ? Buffer.concat([message, Buffer.of(0)]) : message, key);
}

export function base64Json(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

/** The value of PAYMENT-SIGNATURE: an x402 v2 PaymentPayload. */
export function v2Header(accepted: object, transaction: string, extensions?: object): string {
  const resource = { url: 'http://localhost/paid' };
  return base64Json({
    x402Version: 2,
    resource,
    accepted,
    payload: { transaction },
    ...(extensions ? { extensions } : {}),
  });
}

/** The value of X-PAYMENT: an x402 v1 PaymentPayload. */
export function v1Header(network: string, transaction: string): string {
  return base64Json({ x402Version: 1, scheme: 'exact', network, payload: { transaction } });
}

/** The `payment-identifier` extension as a buyer sends it. */
export function withIdentifier(id: string): object {
  return { 'payment-identifier': { info: { required: false, id } } };
}

/**
 * A payment built from `recipe` as a correctly signed transaction of version 1 (SIMD-0385): message first,
 * signatures last. The server does not accept that version.
 */
export function craftVersion1(recipe: Recipe): string {
  const payer = recipe.payer ?? Keypair.generate();
  let compiled: VersionedMessage | undefined;
  craftPayment({ ...recipe, payer, message: message => (compiled = message) });
  if (!compiled) throw new Error('nothing was compiled');
  const { header, staticAccountKeys, compiledInstructions } = compiled;
  const lengths = [
    header.numRequiredSignatures,
    header.numReadonlySignedAccounts,
    header.numReadonlyUnsignedAccounts,
  ];
  const message = Buffer.concat([
    Buffer.of(0x81, ...lengths, 0, 0, 0, 0),
    new PublicKey(compiled.recentBlockhash).toBuffer(),
    Buffer.of(compiledInstructions.length, staticAccountKeys.length),
    ...staticAccountKeys.map(key => key.toBuffer()),
    ...compiledInstructions.map(({ programIdIndex, accountKeyIndexes, data }) =>
      Buffer.of(programIdIndex, accountKeyIndexes.length, data.length & 255, data.length >> 8),
    ),
    ...compiledInstructions.flatMap(({ accountKeyIndexes, data }) => [
      Buffer.from(accountKeyIndexes),
      Buffer.from(data),
    ]),
  ]);
  const signatures = Buffer.concat([Buffer.alloc(64), signatureOf('right', payer, message)]);
  return Buffer.concat([message, signatures]).toString('base64');
}
