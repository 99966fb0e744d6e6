import type { SampleMints } from '../config/sandbox-file.js';
import { EXAMPLE_MINT } from './sample-mints.js';
import { createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { NETWORKS } from '../rails/solana/networks.js';
import { toBase58 } from './base58.js';
import type { Account, Vm } from './vm.js';

/** The programs of the VM count as deployed from this slot, the first of epoch 1036. */
const FIRST_SLOT = 447_552_000;

/** Slots are counted from here: slot `slot` began at `time` (ms since 1970), and each lasts `slotMs`. */
export type SlotClock = { slot: number; time: number; slotMs: number };

/** An account in a file: null if it does not exist, otherwise lamports, owner, base64 data, executable. */
export type StoredAccount = null | [lamports: string, owner: string, data: string, executable: 0 | 1];

/** The initial state of a chain. Keys are 64 bytes in the format of solana-keygen: seed, then public key. */
export type Genesis = {
  /** Random id of the chain. */
  id: string;
  clock: SlotClock;
  /** Key for blockhashes, so that they are recognized after a restart (base64, 32 bytes). */
  secret: string;
  /** `authority` mints every sample token and USDC, and gives out SOL. */
  keys: { authority: number[]; feePayer: number[]; seller: number[]; buyer: number[] };
  mints: SampleMints;
  accounts: { [address: string]: StoredAccount };
};

export type Wallet = { address: string; secret: Uint8Array };

/** Reads the genesis from `file`, or creates one with new keys and writes it there (mode 0600). */
export async function openGenesis(file: string, vm: Vm, slotMs: number): Promise<Genesis> {
  const known = readIfThere(file);
  if (known !== null) return withSamples(parseGenesis(known, file), vm);
  const genesis = await createGenesis(vm, slotMs);
  writeAtomically(file, `${JSON.stringify(genesis)}\n`);
  return genesis;
}

/** Adds sample mints to older chains that do not have them. */
async function withSamples(genesis: Genesis, vm: Vm): Promise<Genesis> {
  if (genesis.accounts[EXAMPLE_MINT] && genesis.mints.doubtful) return genesis;
  const { createDoubtful, createExampleMint } = await import('./create-mints.js');
  const { DOUBTFUL_MINTS } = await import('./doubtful-mints.js');
  const example = createExampleMint(vm);
  const added = [example, ...createDoubtful(vm)].map(address => [address, storeAccount(vm.account(address))]);
  return {
    ...genesis,
    mints: { ...genesis.mints, example, ...DOUBTFUL_MINTS },
    accounts: { ...(Object.fromEntries(added) as Genesis['accounts']), ...genesis.accounts },
  };
}

async function createGenesis(vm: Vm, slotMs: number): Promise<Genesis> {
  const { createTokens } = await import('./create-mints.js');
  const time = Date.now();
  vm.setClock(FIRST_SLOT, Math.floor(time / 1000));
  const keys = { authority: newKey(), feePayer: newKey(), seller: newKey(), buyer: newKey() };
  const [authority, feePayer, seller, buyer] = [keys.authority, keys.feePayer, keys.seller, keys.buyer].map(
    key => walletOf(key).address,
  ) as [string, string, string, string];
  const { mints, addresses } = createTokens(vm, {
    authority,
    feePayer,
    seller,
    buyer,
    usdcMint: NETWORKS.sandbox.usdcMint,
  });
  const accounts: Genesis['accounts'] = {};
  for (const address of addresses) accounts[address] = storeAccount(vm.account(address));
  return {
    id: randomBytes(16).toString('hex'),
    clock: { slot: FIRST_SLOT + 1000, time, slotMs },
    secret: randomBytes(32).toString('base64'),
    keys,
    mints,
    accounts,
  };
}

/** A new key pair: 64 numbers, seed and public key. */
export function newKey(): number[] {
  const { privateKey } = generateKeyPairSync('ed25519');
  const jwk = privateKey.export({ format: 'jwk' });
  return [...Buffer.from(jwk.d ?? '', 'base64url'), ...Buffer.from(jwk.x ?? '', 'base64url')];
}

export function walletOf(key: number[]): Wallet {
  const secret = Uint8Array.from(key);
  return { address: toBase58(secret.subarray(32)), secret };
}

/** Signs with ed25519. The signature has 64 bytes. */
export function signWith(wallet: Wallet, message: Uint8Array): Uint8Array {
  const d = Buffer.from(wallet.secret.subarray(0, 32)).toString('base64url');
  const x = Buffer.from(wallet.secret.subarray(32)).toString('base64url');
  return sign(null, message, createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' }));
}

export function storeAccount(account: Account | null): StoredAccount {
  if (!account || account.lamports === 0n) return null;
  const data = Buffer.from(account.data).toString('base64');
  return [account.lamports.toString(), account.owner, data, account.executable ? 1 : 0];
}

export function restoreAccount(stored: StoredAccount): Account | null {
  if (!stored) return null;
  const [lamports, owner, data, executable] = stored;
  return {
    lamports: BigInt(lamports),
    owner,
    data: Buffer.from(data, 'base64'),
    executable: executable === 1,
  };
}

/** Writes a file atomically, readable only by its owner. */
export function writeAtomically(file: string, text: string): void {
  const draft = `${file}.${process.pid}.new`;
  const fd = openSync(draft, 'w', 0o600);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(draft, file);
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function parseGenesis(text: string, file: string): Genesis {
  try {
    const genesis = JSON.parse(text) as Genesis;
    if (!genesis.id || !genesis.secret || !genesis.accounts || !genesis.clock.slotMs)
      throw new Error('incomplete');
    return genesis;
  } catch {
    throw new Error(
      `${file} is damaged: the local chain cannot be resumed. Restore it, or delete the state folder to begin a new chain.`,
    );
  }
}
