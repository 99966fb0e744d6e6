import type { SampleMints } from '../config/sandbox-file.js';
import { EXAMPLE_MINT } from './sample-mints.js';
import { doubtfulAccounts, DOUBTFUL_MINTS } from './doubtful-mints.js';
import { createHash } from 'node:crypto';
import {
  AuthorityType,
  ExtensionType,
  MINT_SIZE,
  MintLayout,
  TOKEN_2022_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
  createAssociatedTokenAccountIdempotentInstruction,
  createInitializeMetadataPointerInstruction,
  createInitializeMint2Instruction,
  createInitializePermanentDelegateInstruction,
  createInitializeTransferFeeConfigInstruction,
  createMintToInstruction,
  createSetAuthorityInstruction,
  getAssociatedTokenAddressSync,
  getMintLen,
} from '@solana/spl-token';
import { createInitializeInstruction } from '@solana/spl-token-metadata';
import {
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
  type MessageV0,
  type TransactionInstruction,
} from '@solana/web3.js';
import type { Vm } from './vm.js';

export type GenesisWallets = {
  authority: string;
  feePayer: string;
  seller: string;
  buyer: string;
  usdcMint: string;
};

const SOL = 1_000_000_000n;
const BUYER_USDC = 1_000_000_000_000n;
const UNUSED_BLOCKHASH = '11111111111111111111111111111111';

type Founding = { vm: Vm; authority: PublicKey; addresses: Set<string> };

/**
 * Fills an empty VM with wallets that have SOL, with USDC (the buyer has a million, the seller none), and with one mint of each kind
 * that operations must handle. Everything except USDC's fixed address is created by real instructions.
 * @returns the sample mints and every address that holds something
 */
export function createTokens(vm: Vm, founders: GenesisWallets): { mints: SampleMints; addresses: string[] } {
  const founding: Founding = { vm, authority: new PublicKey(founders.authority), addresses: new Set() };
  giveSol(founding, founders.authority, 5_000_000n * SOL);
  giveSol(founding, founders.feePayer, 1_000n * SOL);
  giveSol(founding, founders.seller, 1n * SOL);
  giveSol(founding, founders.buyer, 100n * SOL);
  createUsdc(founding, founders);
  const mints = {
    example: createExampleMint(vm),
    classic: createSampleMint(founding, 'classic', {
      decimals: 9,
      supply: 1_234_567_890_123_456_789n,
      authorities: true,
    }),
    noAuthorities: createSampleMint(founding, 'noAuthorities', {
      decimals: 6,
      supply: 21_000_000_000_001n,
      authorities: false,
    }),
    token2022: createToken2022(founding),
    untraded: createSampleMint(founding, 'untraded', { decimals: 0, supply: 42n, authorities: true }),
    uninitialised: createUninitialised(founding),
    ...DOUBTFUL_MINTS,
  };
  return { mints, addresses: [...founding.addresses, mints.example, ...createDoubtful(vm)] };
}

/** The same addresses in every sandbox, so that examples can use them. */
function sampleAddress(name: string): PublicKey {
  return Keypair.fromSeed(createHash('sha256').update(`coinslot sample mint ${name}`).digest()).publicKey;
}

function giveSol({ vm, addresses }: Founding, address: string, lamports: bigint): void {
  const owner = SystemProgram.programId.toBase58();
  vm.setAccount(address, { lamports, owner, data: new Uint8Array(0), executable: false });
  addresses.add(address);
}

/** The mint in the contract's examples. Like the real one, it has a fixed supply. */
export function createExampleMint(vm: Vm): string {
  const data = mintData({ decimals: 6, supply: 6_863_982_190_837_482n });
  setOwned({ vm, addresses: new Set() }, EXAMPLE_MINT, data);
  return EXAMPLE_MINT;
}

/** The accounts of `doubtfulAccounts`. @returns their addresses */
export function createDoubtful(vm: Vm): string[] {
  const made = doubtfulAccounts(vm);
  for (const [address, account] of made) vm.setAccount(address, account);
  return [...made.keys()];
}

/** @param authority may mint and freeze; without it, nobody may */
function mintData(mint: { decimals: number; supply: bigint; authority?: PublicKey }): Buffer {
  const { decimals, supply, authority } = mint;
  const data = Buffer.alloc(MINT_SIZE);
  const option = authority ? (1 as const) : (0 as const);
  MintLayout.encode(
    {
      mintAuthorityOption: option,
      mintAuthority: authority ?? PublicKey.default,
      supply,
      decimals,
      isInitialized: true,
      freezeAuthorityOption: option,
      freezeAuthority: authority ?? PublicKey.default,
    },
    data,
  );
  return data;
}

function createUsdc(founding: Founding, { usdcMint, buyer, seller }: GenesisWallets): void {
  setOwned(founding, usdcMint, mintData({ decimals: 6, supply: 0n, authority: founding.authority }));
  const mint = new PublicKey(usdcMint);
  const [buyers, sellers] = [new PublicKey(buyer), new PublicKey(seller)].map(owner => ({
    owner,
    account: getAssociatedTokenAddressSync(mint, owner),
  }));
  if (!buyers || !sellers) throw new Error('unreachable: two owners give two accounts');
  run(founding, [
    createAssociatedTokenAccountIdempotentInstruction(
      founding.authority,
      sellers.account,
      sellers.owner,
      mint,
    ),
    createAssociatedTokenAccountIdempotentInstruction(founding.authority, buyers.account, buyers.owner, mint),
    createMintToInstruction(mint, buyers.account, founding.authority, BUYER_USDC),
  ]);
}

function createSampleMint(
  founding: Founding,
  name: string,
  { decimals, supply, authorities }: { decimals: number; supply: bigint; authorities: boolean },
): string {
  const mint = sampleAddress(name);
  const { authority } = founding;
  run(founding, [
    createAccount(founding, mint, MINT_SIZE, MINT_SIZE, TOKEN_PROGRAM_ID),
    createInitializeMint2Instruction(mint, decimals, authority, authorities ? authority : null),
    ...mintToAuthority(founding, mint, supply, TOKEN_PROGRAM_ID),
    ...(authorities ? [] : [createSetAuthorityInstruction(mint, authority, AuthorityType.MintTokens, null)]),
  ]);
  return mint.toBase58();
}

function createToken2022(founding: Founding): string {
  const mint = sampleAddress('token2022');
  const { authority } = founding;
  const program = TOKEN_2022_PROGRAM_ID;
  const space = getMintLen([
    ExtensionType.MetadataPointer,
    ExtensionType.TransferFeeConfig,
    ExtensionType.PermanentDelegate,
  ]);
  run(founding, [
    // Also pays the rent for the metadata, because its extension enlarges the account later.
    createAccount(founding, mint, space, space + 512, program),
    createInitializeMetadataPointerInstruction(mint, authority, mint, program),
    createInitializeTransferFeeConfigInstruction(mint, authority, authority, 50, 5_000_000_000n, program),
    createInitializePermanentDelegateInstruction(mint, authority, program),
    createInitializeMint2Instruction(mint, 8, authority, authority, program),
    createInitializeInstruction({
      programId: program,
      metadata: mint,
      mint,
      mintAuthority: authority,
      updateAuthority: authority,
      name: 'Coinslot Sample',
      symbol: 'CSLOT',
      uri: 'https://example.com/coinslot-sample.json',
    }),
    ...mintToAuthority(founding, mint, 100_000_000_000_000_000n, program),
  ]);
  return mint.toBase58();
}

function createUninitialised(founding: Founding): string {
  const mint = sampleAddress('uninitialised').toBase58();
  setOwned(founding, mint, Buffer.alloc(MINT_SIZE));
  return mint;
}

function setOwned(
  { vm, addresses }: Pick<Founding, 'vm' | 'addresses'>,
  address: string,
  data: Uint8Array,
): void {
  const lamports = vm.rentExemption(data.length);
  vm.setAccount(address, { lamports, owner: TOKEN_PROGRAM_ID.toBase58(), data, executable: false });
  addresses.add(address);
}

function createAccount(
  { vm, authority }: Founding,
  mint: PublicKey,
  space: number,
  rentFor: number,
  programId: PublicKey,
): TransactionInstruction {
  const lamports = Number(vm.rentExemption(rentFor));
  return SystemProgram.createAccount({
    fromPubkey: authority,
    newAccountPubkey: mint,
    lamports,
    space,
    programId,
  });
}

function mintToAuthority(
  { authority }: Founding,
  mint: PublicKey,
  supply: bigint,
  program: PublicKey,
): TransactionInstruction[] {
  const account = getAssociatedTokenAddressSync(mint, authority, false, program);
  return [
    createAssociatedTokenAccountIdempotentInstruction(authority, account, authority, mint, program),
    createMintToInstruction(mint, account, authority, supply, [], program),
  ];
}

/** Runs instructions as one transaction. */
function run({ vm, authority, addresses }: Founding, instructions: TransactionInstruction[]): void {
  const message = execute(vm, authority, instructions, 'The local chain cannot be created');
  message.staticAccountKeys.forEach((key, index) => {
    if (message.isAccountWritable(index)) addresses.add(key.toBase58());
  });
}

/**
 * Executes instructions as one transaction; the VM requires no signatures.
 * @param failed how the error message begins
 */
export function execute(
  vm: Vm,
  payerKey: PublicKey,
  instructions: TransactionInstruction[],
  failed: string,
): MessageV0 {
  const recentBlockhash = UNUSED_BLOCKHASH;
  const message = new TransactionMessage({ payerKey, recentBlockhash, instructions }).compileToV0Message();
  const { err, logs } = vm.execute(new VersionedTransaction(message).serialize());
  if (err) throw new Error(`${failed}: ${JSON.stringify(err)}\n${logs.join('\n')}`);
  return message;
}
