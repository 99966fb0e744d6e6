import {
  type Account,
  type ChainReads,
  isOnCurve,
  readAddress,
  SYSTEM_PROGRAM,
  toAddress,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from 'coinslot';
import type { Metadata } from './metaplex.js';
import type { MintExtensions } from './mint-extensions.js';
import type { MintFacts } from './mint.js';

/**
 * An authority with power over a mint. `roles`: `mint`, `freeze`, `metadata`, and the names of the extensions that it has power over.
 * `kind` says who can sign for it. `wallet`: one key. `multisig`: `required` of its `signers` together. `program-address`: only a program,
 * which is named in `program` if it owns the account. `program`: nobody, because the authority is itself a program. `account`: one key,
 * although the account belongs to the program named in `program`.
 */
export type Authority = {
  address: string;
  roles: string[];
  kind: 'wallet' | 'multisig' | 'program-address' | 'program' | 'account';
  required?: number;
  signers?: string[];
  program?: string;
  sentence: string;
};

/** One byte more than a multisig has, so that a larger account is not taken for a multisig. */
const BYTES_READ = 356;
const MULTISIG_BYTES = 355;
const ADDRESS_BYTES = 32;
const SIGNERS_AT = 3;
const MAX_SIGNERS = 11;

/**
 * Reads the kind of each authority of a mint in one request. The mint and its metadata must be read first, because they name the
 * authorities.
 */
export async function readAuthorities(
  chain: ChainReads,
  mint: { facts: MintFacts; extensions: MintExtensions; metadata: Metadata | null },
  signal: AbortSignal,
): Promise<Authority[]> {
  const roles = rolesOf(mint);
  if (roles.size === 0) return [];
  const { accounts } = await chain.accounts([...roles.keys()], signal, BYTES_READ);
  return [...roles].map(([address, held], index) => describe(address, held, accounts[index] ?? null));
}

function rolesOf({
  facts,
  extensions,
  metadata,
}: Parameters<typeof readAuthorities>[1]): Map<string, string[]> {
  const roles = new Map<string, string[]>();
  const add = (address: unknown, role: string): void => {
    if (typeof address === 'string') roles.set(address, [...(roles.get(address) ?? []), role]);
  };
  add(facts.mintAuthority, 'mint');
  add(facts.freezeAuthority, 'freeze');
  if (metadata?.mutable) add(metadata.updateAuthority, 'metadata');
  for (const [name, extension] of Object.entries(extensions)) {
    const { authority, delegate } = extension as { authority?: unknown; delegate?: unknown };
    add(authority ?? delegate, name);
  }
  add(extensions.transferFee?.withdrawAuthority, 'transferFeeWithdrawal');
  return roles;
}

function describe(address: string, roles: string[], account: Account | null): Authority {
  const is = whatIs(address, account);
  return { address, roles, ...is, sentence: `${address} is ${WORDS[is.kind](is)}.` };
}

type What = Omit<Authority, 'address' | 'roles' | 'sentence'>;

const WORDS: Record<Authority['kind'], (what: What) => string> = {
  wallet: () => 'a wallet: a single key signs for it',
  multisig: ({ required, signers }) => `a multisig: ${required} of ${signers?.length} keys must sign`,
  'program-address': ({ program }) =>
    `an address of a program${program === undefined ? '' : ` (${program})`}: no key signs for it, and the rules of the program were not checked`,
  program: () => 'a program, which cannot sign by itself',
  account: ({ program }) => `an account of the program ${program}, for which a key can sign`,
};

function whatIs(address: string, account: Account | null): What {
  if (account?.executable) return { kind: 'program' };
  const multisig = account && readMultisig(account);
  if (multisig) return multisig;
  const owned = account !== null && account.owner !== SYSTEM_PROGRAM ? { program: account.owner } : {};
  if (!isOnCurve(readAddress(address) ?? Buffer.alloc(0))) return { kind: 'program-address', ...owned };
  return 'program' in owned ? { kind: 'account', ...owned } : { kind: 'wallet' };
}

/** `Multisig` in the token programs' `state.rs`: how many must sign, how many can, whether it is initialised, and up to 11 keys. */
function readMultisig({ owner, data }: Account): What | undefined {
  if ((owner !== TOKEN_PROGRAM && owner !== TOKEN_2022_PROGRAM) || data.length !== MULTISIG_BYTES)
    return undefined;
  const [required = 0, count = 0, initialized] = data;
  if (initialized !== 1 || required < 1 || required > count || count > MAX_SIGNERS) return undefined;
  const signers = Array.from({ length: count }, (_, index) => {
    const at = SIGNERS_AT + index * ADDRESS_BYTES;
    return toAddress(data.subarray(at, at + ADDRESS_BYTES));
  });
  return { kind: 'multisig', required, signers };
}
