import {
  type Account,
  type ChainReads,
  type Holding,
  isOnCurve,
  readAddress,
  toAddress,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from 'coinslot';
import { INCINERATOR, knownAs } from './known-programs.js';
import { formatUnits, type MintFacts } from './mint.js';

/**
 * A token account. `owner` is null if the account could not be read. `kind`: `burned`, if nobody can move it; `program`, if a program
 * owns it (`name` is that program's name, if known); `wallet`, if a key may sign for its owner.
 */
type LargeAccount = {
  address: string;
  owner: string | null;
  kind: 'wallet' | 'program' | 'burned' | null;
  name: string | null;
  /** In whole tokens. */
  amount: string;
  percent: number;
};

/** `topTenPercent`: the share of the ten largest that are neither burned nor owned by a known program. */
export type LargestAccounts = { topTenPercent: number; accounts: LargeAccount[] };

const TOKEN_ACCOUNT_BYTES = 165;
const OWNER_AT = 32;
const TOP = 10;
const DECIMALS = 2;

/**
 * The twenty largest accounts of a mint and their owners: one read for the accounts, one for their owners, and one for the programs of
 * owners that are unknown program addresses. Null if no tokens exist.
 */
export async function readLargestAccounts(
  chain: ChainReads,
  facts: MintFacts,
  signal: AbortSignal,
): Promise<LargestAccounts | null> {
  const supply = BigInt(facts.supply.replace('.', ''));
  if (supply === 0n) return null;
  const holdings = await chain.largestHoldings(facts.mint, signal);
  const owners = await readOwners(chain, facts.mint, holdings, signal);
  const programs = await readPrograms(chain, owners, signal);
  const accounts = holdings.map(({ address, amount }, index): LargeAccount => {
    const owner = owners[index] ?? null;
    const name = owner === null ? null : knownAs(owner, programs.get(owner) ?? null);
    return {
      address,
      owner,
      kind: owner === null ? null : kindOf(owner),
      name,
      amount: formatUnits(amount, facts.decimals),
      percent: shareOf(amount, supply),
    };
  });
  const counted = holdings.filter((_, index) => accounts[index]?.name === null).slice(0, TOP);
  const held = counted.reduce((sum, { amount }) => sum + amount, 0n);
  return { topTenPercent: shareOf(held, supply), accounts };
}

async function readOwners(
  chain: ChainReads,
  mint: string,
  holdings: Holding[],
  signal: AbortSignal,
): Promise<(string | null)[]> {
  if (holdings.length === 0) return [];
  const addresses = holdings.map(({ address }) => address);
  const { accounts } = await chain.accounts(addresses, signal, TOKEN_ACCOUNT_BYTES);
  return accounts.map(account => ownerOf(account, mint));
}

function ownerOf(account: Account | null, mint: string): string | null {
  const isToken = account?.owner === TOKEN_PROGRAM || account?.owner === TOKEN_2022_PROGRAM;
  if (!account || !isToken || account.data.length < TOKEN_ACCOUNT_BYTES) return null;
  if (toAddress(account.data.subarray(0, OWNER_AT)) !== mint) return null;
  return toAddress(account.data.subarray(OWNER_AT, 2 * OWNER_AT));
}

/** For each owner that is a program address without a known name, the program that owns it. */
async function readPrograms(
  chain: ChainReads,
  owners: (string | null)[],
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const asked = [...new Set(owners)].filter(
    (owner): owner is string =>
      owner !== null && knownAs(owner, null) === null && kindOf(owner) === 'program',
  );
  if (asked.length === 0) return new Map();
  const { accounts } = await chain.accounts(asked, signal, 0);
  return new Map(
    asked.flatMap((owner, index): [string, string][] => {
      const program = accounts[index]?.owner;
      return program === undefined ? [] : [[owner, program]];
    }),
  );
}

function kindOf(owner: string): 'wallet' | 'program' | 'burned' {
  if (owner === INCINERATOR) return 'burned';
  return isOnCurve(readAddress(owner) ?? Buffer.alloc(0)) ? 'wallet' : 'program';
}

/** In per cent, truncated to two decimals. */
function shareOf(amount: bigint, supply: bigint): number {
  const scale = 10n ** BigInt(DECIMALS);
  return Number((amount * 100n * scale) / supply) / Number(scale);
}
