import { toBase58 } from './base58.js';
import type { Account } from './vm.js';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../solana/networks.js';

const MINT_BYTES = 82;
const ACCOUNT_BYTES = 165;
/** Token-2022 writes the kind of account here and its extensions behind it, in mints and token accounts alike. */
const KIND_AT = 165;
const KIND_MINT = 1;
const KIND_ACCOUNT = 2;
const ACCOUNT_STATES = ['uninitialized', 'initialized', 'frozen'];
// In the order of their numbers in Token-2022, from 0.
const EXTENSIONS =
  `uninitialized transferFeeConfig transferFeeAmount mintCloseAuthority confidentialTransferMint
  confidentialTransferAccount defaultAccountState immutableOwner memoTransfer nonTransferable interestBearingConfig
  cpiGuard permanentDelegate nonTransferableAccount transferHook transferHookAccount confidentialTransferFeeConfig
  confidentialTransferFeeAmount metadataPointer tokenMetadata groupPointer tokenGroup groupMemberPointer
  tokenGroupMember confidentialMintBurn scaledUiAmountConfig pausableConfig pausableAccount`.split(/\s+/);

export type Mint = {
  mintAuthority: string | null;
  supply: bigint;
  decimals: number;
  freezeAuthority: string | null;
};

export type TokenAccount = {
  mint: string;
  owner: string;
  amount: bigint;
  delegate: string | null;
  delegatedAmount: bigint;
  state: string;
  /** Rent-exempt reserve of an account of wrapped SOL. */
  isNative: bigint | null;
  closeAuthority: string | null;
};

export type UiAmount = { amount: string; decimals: number; uiAmount: number; uiAmountString: string };

/** Reads an initialised mint of either token program; null for every other account. */
export function readMint(account: Account | null): Mint | null {
  const bytes = tokenBytes(account);
  if (!bytes || !(bytes.length === MINT_BYTES || bytes[KIND_AT] === KIND_MINT) || bytes[45] !== 1)
    return null;
  return {
    mintAuthority: optionalAddress(bytes, 0),
    supply: bytes.readBigUInt64LE(36),
    decimals: bytes[44] ?? 0,
    freezeAuthority: optionalAddress(bytes, 46),
  };
}

/** Reads an initialised token account of either token program; null for every other account. */
export function readTokenAccount(account: Account | null): TokenAccount | null {
  const bytes = tokenBytes(account);
  if (!bytes || !(bytes.length === ACCOUNT_BYTES || bytes[KIND_AT] === KIND_ACCOUNT)) return null;
  const state = ACCOUNT_STATES[bytes[108] ?? 0];
  if (!state || state === 'uninitialized') return null;
  return {
    mint: address(bytes, 0),
    owner: address(bytes, 32),
    amount: bytes.readBigUInt64LE(64),
    delegate: optionalAddress(bytes, 72),
    delegatedAmount: bytes.readBigUInt64LE(121),
    state,
    isNative: bytes.readUInt32LE(109) === 1 ? bytes.readBigUInt64LE(113) : null,
    closeAuthority: optionalAddress(bytes, 129),
  };
}

/** An amount as RPC nodes write it: exact as strings, and as the nearest float. */
export function uiAmount(amount: bigint, decimals: number): UiAmount {
  const digits = amount.toString().padStart(decimals + 1, '0');
  const fraction = decimals > 0 ? digits.slice(-decimals).replace(/(?<!0)0+$/, '') : '';
  const uiAmountString = digits.slice(0, digits.length - decimals) + (fraction && `.${fraction}`);
  return { amount: amount.toString(), decimals, uiAmount: Number(uiAmountString), uiAmountString };
}

/**
 * The `jsonParsed` form of a mint or a token account; null for accounts that have none (nodes then answer base64).
 * @param decimalsOf the decimals of a mint, needed for the amounts of its accounts
 */
export function parseTokenData(account: Account, decimalsOf: (mint: string) => number | null): object | null {
  const program = account.owner === TOKEN_PROGRAM ? 'spl-token' : 'spl-token-2022';
  const space = account.data.length;
  const extensions = space > KIND_AT ? { extensions: readExtensions(Buffer.from(account.data)) } : {};
  const mint = readMint(account);
  if (mint) {
    const info = { ...mint, supply: mint.supply.toString(), isInitialized: true, ...extensions };
    return { program, parsed: { type: 'mint', info }, space };
  }
  const held = readTokenAccount(account);
  const decimals = held && decimalsOf(held.mint);
  if (!held || decimals === null) return null;
  const { mint: of, owner, amount, delegate, delegatedAmount, state, isNative, closeAuthority } = held;
  const info = {
    mint: of,
    owner,
    state,
    isNative: isNative !== null,
    tokenAmount: uiAmount(amount, decimals),
    ...(delegate && { delegate, delegatedAmount: uiAmount(delegatedAmount, decimals) }),
    ...(isNative !== null && { rentExemptReserve: uiAmount(isNative, 9) }),
    ...(closeAuthority && { closeAuthority }),
    ...extensions,
  };
  return { program, parsed: { type: 'account', info }, space };
}

function tokenBytes(account: Account | null): Buffer | null {
  if (!account || account.data.length < MINT_BYTES) return null;
  if (account.owner !== TOKEN_PROGRAM && account.owner !== TOKEN_2022_PROGRAM) return null;
  return Buffer.from(account.data.buffer, account.data.byteOffset, account.data.length);
}

function address(bytes: Buffer, at: number): string {
  return toBase58(bytes.subarray(at, at + 32));
}

function optionalAddress(bytes: Buffer, at: number): string | null {
  return bytes.readUInt32LE(at) === 1 ? address(bytes, at + 4) : null;
}

/** Extensions write "none" as an address of zeros. */
function nonZeroAddress(bytes: Buffer, at: number): string | null {
  return bytes.subarray(at, at + 32).every(byte => byte === 0) ? null : address(bytes, at);
}

function readExtensions(bytes: Buffer): object[] {
  const found: object[] = [];
  for (let at = KIND_AT + 1; at + 4 <= bytes.length;) {
    const type = bytes.readUInt16LE(at);
    const length = bytes.readUInt16LE(at + 2);
    if (type === 0) break;
    const extension = EXTENSIONS[type] ?? 'unparseableExtension';
    const state = extensionState(extension, bytes.subarray(at + 4, at + 4 + length));
    found.push(state ? { extension, state } : { extension });
    at += 4 + length;
  }
  return found;
}

function extensionState(extension: string, bytes: Buffer): object | null {
  switch (extension) {
    case 'metadataPointer':
      return { authority: nonZeroAddress(bytes, 0), metadataAddress: nonZeroAddress(bytes, 32) };
    case 'permanentDelegate':
      return { delegate: nonZeroAddress(bytes, 0) };
    case 'mintCloseAuthority':
      return { closeAuthority: nonZeroAddress(bytes, 0) };
    case 'transferFeeAmount':
      return { withheldAmount: Number(bytes.readBigUInt64LE(0)) };
    case 'transferFeeConfig':
      return {
        transferFeeConfigAuthority: nonZeroAddress(bytes, 0),
        withdrawWithheldAuthority: nonZeroAddress(bytes, 32),
        withheldAmount: Number(bytes.readBigUInt64LE(64)),
        olderTransferFee: transferFee(bytes, 72),
        newerTransferFee: transferFee(bytes, 90),
      };
    case 'tokenMetadata':
      return tokenMetadata(bytes);
    default:
      return null;
  }
}

function transferFee(bytes: Buffer, at: number): object {
  return {
    epoch: Number(bytes.readBigUInt64LE(at)),
    maximumFee: Number(bytes.readBigUInt64LE(at + 8)),
    transferFeeBasisPoints: bytes.readUInt16LE(at + 16),
  };
}

function tokenMetadata(bytes: Buffer): object {
  let at = 64;
  const text = (): string => {
    const length = bytes.readUInt32LE(at);
    at += 4 + length;
    return bytes.toString('utf8', at - length, at);
  };
  const [name, symbol, uri] = [text(), text(), text()];
  const count = bytes.readUInt32LE(at);
  at += 4;
  const additionalMetadata = Array.from({ length: Math.min(count, 100) }, () => [text(), text()]);
  return {
    updateAuthority: nonZeroAddress(bytes, 0),
    mint: address(bytes, 32),
    name,
    symbol,
    uri,
    additionalMetadata,
  };
}
