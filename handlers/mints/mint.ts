import {
  type Account,
  readAddress,
  type ChainReads,
  SYSTEM_PROGRAM,
  toAddress,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
  UpstreamFailure,
} from 'coinslot';
import { metadataAddress, readMetadata, type Metadata } from './metaplex.js';

/**
 * The on-chain facts of a token mint (`solMintInfo` in openapi.yaml). `supply` is in whole tokens, with exactly `decimals` fractional
 * digits and no point if `decimals` is 0. Authorities are base58 addresses; null if there is none. If `initialized` is false, null has no
 * meaning yet: the authorities are chosen when the mint is initialised.
 */
export type MintFacts = {
  mint: string;
  decimals: number;
  supply: string;
  mintAuthority: string | null;
  freezeAuthority: string | null;
  tokenProgram: string;
  /** The slot at which the account had these values. */
  slot: number;
  initialized: boolean;
};

/** The sizes of the accounts of both token programs (`Pack::LEN` in the program's `state.rs`); a mint with extensions is larger. */
const MINT_SIZE = 82;
const ACCOUNT_SIZE = 165;
const MULTISIG_SIZE = 355;
/** The offsets of a mint's fields. An optional address is preceded by 4 bytes, which are 0 if there is none. */
const MINT_AUTHORITY_AT = 4;
const SUPPLY_AT = 36;
const DECIMALS_AT = 44;
const INITIALIZED_AT = 45;
const FREEZE_AUTHORITY_AT = 50;
const NO_BYTES = Buffer.alloc(0);
/** Where Token-2022 stores the type of an account with extensions (1: mint, 2: token account). */
const ACCOUNT_TYPE_AT = ACCOUNT_SIZE;

const invalid = (message: string): UpstreamFailure => new UpstreamFailure('invalid', message);

/** An atomic amount as a decimal string, exact at any size: `formatUnits(1n, 6)` is `0.000001`. */
export function formatUnits(amount: bigint, decimals: number): string {
  if (decimals === 0) return amount.toString();
  const digits = amount.toString().padStart(decimals + 1, '0');
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** Why an account that no token program owns is not a mint. */
function notATokenAccount({ owner, executable, lamports, data }: Account): UpstreamFailure {
  if (executable)
    return invalid('mint is the address of a program, not of a token: send the mint address of the token');
  if (lamports === 0 && data.length === 0) {
    return invalid('mint is an account that was closed: send the address of a mint that exists');
  }
  if (owner === SYSTEM_PROGRAM) {
    return invalid('mint is a wallet (a system account), not a token: send the mint address of the token');
  }
  return invalid(
    'mint is an account of another program, not of a token program: send the mint address of the token',
  );
}

/** Why an account of a token program is not a mint; undefined if it may be one. */
function otherTokenAccount(data: Buffer, extensible: boolean): UpstreamFailure | undefined {
  if (data.length === 0)
    return invalid('mint is an account that was closed: send the address of a mint that exists');
  if (data.length === MINT_SIZE) return undefined;
  const holds = 'mint is a token account, which holds tokens: send the mint address of the token it holds';
  if (data.length === ACCOUNT_SIZE) return invalid(holds);
  if (data.length === MULTISIG_SIZE) {
    return invalid('mint is a multisig account of the token program: send the mint address of the token');
  }
  const type = data[ACCOUNT_TYPE_AT];
  if (extensible && type === 2) return invalid(holds);
  if (extensible && type === 1) return undefined;
  return invalid(
    'mint is an account of the token program, but not a mint: send the mint address of the token',
  );
}

function optionalAddress(data: Buffer, at: number): string | null {
  return data.readUInt32LE(at - 4) === 0 ? null : toAddress(data.subarray(at, at + 32));
}

/** The facts of a mint, the bytes of its extensions (empty if it has none), and its metadata at Metaplex. */
export type MintAccount = { facts: MintFacts; extensionData: Buffer; metadata: Metadata | null };

/**
 * Reads a mint of the Token program or Token-2022 with its extensions, and its metadata, in one read of the chain. An account that
 * has the layout of a mint but is not initialised has `initialized` false, supply 0 and no authorities.
 * @param mint base58 address
 * @param bytes how many bytes of each account to read at most, more than 355
 * @throws UpstreamFailure `invalid` if it is not a mint, with a message for each case (not an address, no account, closed, wallet,
 *   token account, multisig, program, another program's account); otherwise as `chain.accounts`
 */
export async function readMintAccount(
  chain: ChainReads,
  mint: string,
  signal: AbortSignal,
  bytes: number,
): Promise<MintAccount> {
  if (!readAddress(mint)) {
    throw invalid(
      'mint is not a Solana address: it must be base58 for exactly 32 bytes; check it for typing errors',
    );
  }
  const { accounts } = await chain.accounts([mint, metadataAddress(mint)], signal, bytes);
  const [account = null, metadata = null] = accounts;
  if (account === null) throw invalid('mint does not exist on this chain: check the address and the network');
  const { owner, data } = account;
  const extensible = owner === TOKEN_2022_PROGRAM;
  if (!extensible && owner !== TOKEN_PROGRAM) throw notATokenAccount(account);
  const other = otherTokenAccount(data, extensible);
  if (other) throw other;
  return {
    facts: factsOf(mint, account),
    extensionData: data.length > ACCOUNT_TYPE_AT ? data.subarray(ACCOUNT_TYPE_AT + 1) : NO_BYTES,
    metadata: readMetadata(metadata, mint),
  };
}

function factsOf(mint: string, { owner, data, slot }: Account): MintFacts {
  const initialized = data[INITIALIZED_AT] !== 0;
  const decimals = data.readUInt8(DECIMALS_AT);
  return {
    mint,
    decimals,
    supply: formatUnits(initialized ? data.readBigUInt64LE(SUPPLY_AT) : 0n, decimals),
    mintAuthority: initialized ? optionalAddress(data, MINT_AUTHORITY_AT) : null,
    freezeAuthority: initialized ? optionalAddress(data, FREEZE_AUTHORITY_AT) : null,
    tokenProgram: owner,
    slot,
    initialized,
  };
}
