import {
  ACCOUNT_SIZE,
  AccountLayout,
  AccountState,
  AccountType,
  ExtensionType,
  MINT_SIZE,
  MULTISIG_SIZE,
  MintLayout,
  MultisigLayout,
} from '@solana/spl-token';
import { Keypair, PublicKey } from '@solana/web3.js';
import { createHash } from 'node:crypto';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../rails/solana/networks.js';
import { EXAMPLE_MINT } from './sample-mints.js';
import type { Account, Vm } from './vm.js';

/** Tokens owned by this address are burnt. */
const INCINERATOR = '1nc1nerator11111111111111111111111111111111';
const METADATA_PROGRAM = 'metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s';
const WHIRLPOOLS = 'whirLbMiicVdio4qvUfM5KAg6Ct8VwpYzGff3uctyCc';
const RAYDIUM_AUTHORITY = '5Q544fKrFoe6tsEbD7S8EmxGTJYAKtTVhAW5Q5pge4j1';
/** The size of Metaplex's metadata accounts in bytes. */
const METADATA_SIZE = 607;
const POOL_SIZE = 653;
const NOBODY = PublicKey.default;

const keyOf = (name: string): PublicKey =>
  Keypair.fromSeed(createHash('sha256').update(`coinslot sample mint ${name}`).digest()).publicKey;
/** An address that has no private key. Only a program can sign for it. */
const programsOwn = (name: string, program: string): PublicKey =>
  PublicKey.findProgramAddressSync([Buffer.from(name)], new PublicKey(program))[0];

const DOUBTFUL = keyOf('doubtful');
const FROZEN = keyOf('frozen for ever');
const MULTISIG = keyOf('multisig');

type Made = [address: string, owner: string, data: Buffer];

/**
 * Accounts that no program of the VM can create, or that would need many transactions, in the form in which their programs store them:
 * the metadata of the example, a doubtful mint with its multisig, metadata and holders, and a mint that is frozen for ever.
 */
export function doubtfulAccounts(vm: Vm): Map<string, Account> {
  const made: Made[] = [
    metadata(EXAMPLE_MINT, { name: 'Jupiter', symbol: 'JUP', uri: '', mutable: false }),
    [MULTISIG.toBase58(), TOKEN_PROGRAM, multisig(2, ['one', 'two', 'three'].map(keyOf))],
    [DOUBTFUL.toBase58(), TOKEN_PROGRAM, doubtfulMint()],
    metadata(DOUBTFUL.toBase58(), {
      name: 'Sure Profit <now>\u202e',
      symbol: 'SURE',
      uri: 'https://example.com/sure.json',
      mutable: true,
    }),
    ...doubtfulHolders(),
    [FROZEN.toBase58(), TOKEN_2022_PROGRAM, frozenMint()],
  ];
  return new Map(
    made.map(([address, owner, data]) => [
      address,
      { lamports: vm.rentExemption(data.length), owner, data, executable: false },
    ]),
  );
}

export const DOUBTFUL_MINTS = { doubtful: DOUBTFUL.toBase58(), frozenForEver: FROZEN.toBase58() };

function mint(decimals: number, supply: bigint, minter?: PublicKey, freezer?: PublicKey): Buffer {
  const data = Buffer.alloc(MINT_SIZE);
  MintLayout.encode(
    {
      mintAuthorityOption: minter ? 1 : 0,
      mintAuthority: minter ?? NOBODY,
      supply,
      decimals,
      isInitialized: true,
      freezeAuthorityOption: freezer ? 1 : 0,
      freezeAuthority: freezer ?? NOBODY,
    },
    data,
  );
  return data;
}

const doubtfulMint = (): Buffer => mint(6, 1_000_000_000_000n, MULTISIG, programsOwn('treasury', WHIRLPOOLS));

/** A mint without authorities, followed by the extension `DefaultAccountState`. */
function frozenMint(): Buffer {
  const extension = Buffer.alloc(5);
  extension.writeUInt16LE(ExtensionType.DefaultAccountState, 0);
  extension.writeUInt16LE(1, 2);
  extension[4] = AccountState.Frozen;
  const padding = Buffer.alloc(ACCOUNT_SIZE - MINT_SIZE);
  return Buffer.concat([mint(9, 5_000_000_000n), padding, Buffer.of(AccountType.Mint), extension]);
}

function multisig(m: number, signers: PublicKey[]): Buffer {
  const data = Buffer.alloc(MULTISIG_SIZE);
  const keys = Object.fromEntries(
    Array.from({ length: 11 }, (_, index) => [`signer${index + 1}`, signers[index] ?? NOBODY]),
  );
  MultisigLayout.encode({ m, n: signers.length, isInitialized: true, ...keys } as never, data);
  return data;
}

/** The holders: two wallets hold most of the tokens; a pool, an older pool and the incinerator hold some. */
function doubtfulHolders(): Made[] {
  const pool = programsOwn('sample pool', WHIRLPOOLS);
  const holders: [string, PublicKey, bigint][] = [
    ['insider', keyOf('insider'), 480_000_000_000n],
    ['second insider', keyOf('second insider'), 220_000_000_000n],
    ['burned', new PublicKey(INCINERATOR), 150_000_000_000n],
    ['pool', pool, 100_000_000_000n],
    ['old pool', new PublicKey(RAYDIUM_AUTHORITY), 50_000_000_000n],
  ];
  return [
    [pool.toBase58(), WHIRLPOOLS, Buffer.alloc(POOL_SIZE)],
    ...holders.map(([name, owner, amount]): Made => [
      keyOf(`account of ${name}`).toBase58(),
      TOKEN_PROGRAM,
      tokenAccount(owner, amount),
    ]),
  ];
}

function tokenAccount(owner: PublicKey, amount: bigint): Buffer {
  const data = Buffer.alloc(ACCOUNT_SIZE);
  AccountLayout.encode(
    {
      mint: DOUBTFUL,
      owner,
      amount,
      delegateOption: 0,
      delegate: NOBODY,
      state: AccountState.Initialized,
      isNativeOption: 0,
      isNative: 0n,
      delegatedAmount: 0n,
      closeAuthorityOption: 0,
      closeAuthority: NOBODY,
    },
    data,
  );
  return data;
}

/** Metaplex's metadata account. Its strings are padded with zeros, as Metaplex's program pads them. */
function metadata(
  of: string,
  { name, symbol, uri, mutable }: { name: string; symbol: string; uri: string; mutable: boolean },
): Made {
  const text = (value: string, room: number): Buffer => {
    const bytes = Buffer.alloc(4 + room);
    bytes.writeUInt32LE(room);
    bytes.write(value, 4);
    return bytes;
  };
  const program = new PublicKey(METADATA_PROGRAM);
  const key = new PublicKey(of);
  const seeds = [Buffer.from('metadata'), program.toBytes(), key.toBytes()];
  const data = Buffer.concat([
    Buffer.of(4),
    keyOf('issuer').toBuffer(),
    key.toBuffer(),
    text(name, 32),
    text(symbol, 10),
    text(uri, 200),
    // No royalty, no creators, no primary sale.
    Buffer.of(0, 0, 0, 0, mutable ? 1 : 0),
  ]);
  const filled = Buffer.concat([data, Buffer.alloc(METADATA_SIZE - data.length)]);
  return [PublicKey.findProgramAddressSync(seeds, program)[0].toBase58(), METADATA_PROGRAM, filled];
}
