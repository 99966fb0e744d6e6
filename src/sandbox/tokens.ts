import {
  ACCOUNT_SIZE,
  AccountLayout,
  AccountState,
  AccountType,
  ExtensionType,
  MINT_SIZE,
  MetadataPointerLayout,
  MintCloseAuthorityLayout,
  MintLayout,
  PermanentDelegateLayout,
  TransferFeeAmountLayout,
  TransferFeeConfigLayout,
  type TransferFee,
  type TransferFeeConfig,
} from '@solana/spl-token';
import { unpack, type TokenMetadata } from '@solana/spl-token-metadata';
import { PublicKey } from '@solana/web3.js';
import type { Account } from './vm.js';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../rails/solana/networks.js';

/** The offset at which Token-2022 stores the kind of an account, followed by its extensions, in both mints and token accounts. */
const KIND_AT = ACCOUNT_SIZE;
const STATES = new Map([
  [AccountState.Initialized, 'initialized'],
  [AccountState.Frozen, 'frozen'],
]);
/** Extensions that spl-token's list of numbers lacks. */
const MORE_EXTENSIONS: Record<number, string> = {
  16: 'ConfidentialTransferFeeConfig',
  17: 'ConfidentialTransferFeeAmount',
  24: 'ConfidentialMintBurn',
};

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
  if (!bytes || !(bytes.length === MINT_SIZE || bytes[KIND_AT] === AccountType.Mint)) return null;
  const mint = MintLayout.decode(bytes);
  if (!mint.isInitialized) return null;
  return {
    mintAuthority: mint.mintAuthorityOption === 1 ? mint.mintAuthority.toBase58() : null,
    supply: mint.supply,
    decimals: mint.decimals,
    freezeAuthority: mint.freezeAuthorityOption === 1 ? mint.freezeAuthority.toBase58() : null,
  };
}

/** Reads an initialised token account of either token program; null for every other account. */
export function readTokenAccount(account: Account | null): TokenAccount | null {
  const bytes = tokenBytes(account);
  if (!bytes || !(bytes.length === ACCOUNT_SIZE || bytes[KIND_AT] === AccountType.Account)) return null;
  const held = AccountLayout.decode(bytes);
  const state = STATES.get(held.state);
  if (!state) return null;
  return {
    mint: held.mint.toBase58(),
    owner: held.owner.toBase58(),
    amount: held.amount,
    delegate: held.delegateOption === 1 ? held.delegate.toBase58() : null,
    delegatedAmount: held.delegatedAmount,
    state,
    isNative: held.isNativeOption === 1 ? held.isNative : null,
    closeAuthority: held.closeAuthorityOption === 1 ? held.closeAuthority.toBase58() : null,
  };
}

/** An amount as RPC nodes write it: exact as strings, and as the nearest float. */
export function uiAmount(amount: bigint, decimals: number): UiAmount {
  const digits = amount.toString().padStart(decimals + 1, '0');
  const fraction = decimals > 0 ? digits.slice(-decimals).replace(/(?<!0)0+$/, '') : '';
  const uiAmountString = digits.slice(0, digits.length - decimals) + (fraction && `.${fraction}`);
  return { amount: amount.toString(), decimals, uiAmount: Number(uiAmountString), uiAmountString };
}

const MAX_LARGEST = 20;

/** The twenty largest token accounts of a mint among `accounts`, as RPC nodes list them. */
export function largestAccounts(
  accounts: [address: string, account: Account][],
  mint: string,
  decimals: number,
): (UiAmount & { address: string })[] {
  return accounts
    .flatMap(([address, account]) => {
      const held = readTokenAccount(account);
      return held?.mint === mint ? [{ address, amount: held.amount }] : [];
    })
    .sort((a, b) => Number(b.amount - a.amount) || (a.address < b.address ? -1 : 1))
    .slice(0, MAX_LARGEST)
    .map(({ address, amount }) => ({ address, ...uiAmount(amount, decimals) }));
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
  if (!account || account.data.length < MINT_SIZE) return null;
  if (account.owner !== TOKEN_PROGRAM && account.owner !== TOKEN_2022_PROGRAM) return null;
  return Buffer.from(account.data.buffer, account.data.byteOffset, account.data.length);
}

/** Extensions write "none" as an address of zeros. */
function orNull(address: PublicKey | undefined): string | null {
  return address && !address.equals(PublicKey.default) ? address.toBase58() : null;
}

function readExtensions(bytes: Buffer): object[] {
  const found: object[] = [];
  for (let at = KIND_AT + 1; at + 4 <= bytes.length;) {
    const type = bytes.readUInt16LE(at);
    const length = bytes.readUInt16LE(at + 2);
    if (type === (ExtensionType.Uninitialized as number)) break;
    const state = extensionState(type, bytes.subarray(at + 4, at + 4 + length));
    found.push({ extension: extensionName(type), ...(state && { state }) });
    at += 4 + length;
  }
  return found;
}

function extensionName(type: number): string {
  const name = ExtensionType[type] ?? MORE_EXTENSIONS[type] ?? 'UnparseableExtension';
  return name.charAt(0).toLowerCase() + name.slice(1);
}

function extensionState(type: ExtensionType, bytes: Buffer): object | null {
  switch (type) {
    case ExtensionType.MetadataPointer: {
      const { authority, metadataAddress } = MetadataPointerLayout.decode(bytes);
      return { authority: orNull(authority), metadataAddress: orNull(metadataAddress) };
    }
    case ExtensionType.PermanentDelegate:
      return { delegate: orNull(PermanentDelegateLayout.decode(bytes).delegate) };
    case ExtensionType.MintCloseAuthority:
      return { closeAuthority: orNull(MintCloseAuthorityLayout.decode(bytes).closeAuthority) };
    case ExtensionType.TransferFeeAmount:
      return { withheldAmount: Number(TransferFeeAmountLayout.decode(bytes).withheldAmount) };
    case ExtensionType.TransferFeeConfig:
      return transferFeeConfig(TransferFeeConfigLayout.decode(bytes));
    case ExtensionType.TokenMetadata:
      return tokenMetadata(unpack(bytes));
    default:
      return null;
  }
}

function transferFeeConfig(config: TransferFeeConfig): object {
  return {
    transferFeeConfigAuthority: orNull(config.transferFeeConfigAuthority),
    withdrawWithheldAuthority: orNull(config.withdrawWithheldAuthority),
    withheldAmount: Number(config.withheldAmount),
    olderTransferFee: transferFee(config.olderTransferFee),
    newerTransferFee: transferFee(config.newerTransferFee),
  };
}

function transferFee({ epoch, maximumFee, transferFeeBasisPoints }: TransferFee): object {
  return { epoch: Number(epoch), maximumFee: Number(maximumFee), transferFeeBasisPoints };
}

function tokenMetadata({ updateAuthority, mint, ...texts }: TokenMetadata): object {
  return { updateAuthority: orNull(updateAuthority), mint: mint.toBase58(), ...texts };
}
