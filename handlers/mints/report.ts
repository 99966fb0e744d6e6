import { withDeadline, type ChainReads } from 'coinslot';
import { readAuthorities, type Authority } from './authorities.js';
import { readCreation, type Creation } from './creation.js';
import { splitEntries } from './entries.js';
import { describeEntries, type Described } from './extensions.js';
import { findingsOf, mostSevereFirst, type Finding } from './findings.js';
import { readLargestAccounts, type LargestAccounts } from './largest-accounts.js';
import type { Metadata } from './metaplex.js';
import { MINT_FINDINGS } from './mint-findings.js';
import type { MintExtensions } from './mint-extensions.js';
import { readMintAccount, type MintFacts } from './mint.js';
import { authoritySentences } from './wording.js';

/**
 * The facts of a mint with its extensions and what they mean (`solMintInfo` in openapi.yaml). `extensions` is empty if the mint has none;
 * the Token program has none at all. `metadata`: Metaplex's account, null if there is none. `largestAccounts` and `creation` are null if
 * the RPC server does not report them. `findings`: what somebody can do to holders or already does, most severe first; `warnings`: their
 * sentences. `brief`: everything in sentences, on one line.
 */
export type MintReport = MintFacts & {
  extensions: MintExtensions;
  metadata: Metadata | null;
  authorities: Authority[];
  largestAccounts: LargestAccounts | null;
  creation: Creation | null;
  findings: Finding[];
  warnings: string[];
  brief: string;
};

/**
 * Bytes read from a mint account. Extensions that are not text take about 1 500 bytes together; longer metadata is cut off, and the answer
 * reports that.
 */
const BYTES_READ = 65_536;
/** The longest wait for data that a server may refuse or take long to find. */
const OPTIONAL_MS = 3_000;
const NONE: Described = { extensions: {}, sentences: [] };

type ReadMint = { facts: MintFacts; described: Described; metadata: Metadata | null };

/** One read: the mint and its metadata together. */
async function readMint(chain: ChainReads, mint: string, signal: AbortSignal): Promise<ReadMint> {
  const { facts, extensionData, metadata } = await readMintAccount(chain, mint, signal, BYTES_READ);
  const found = splitEntries(extensionData);
  const none = found.entries.length === 0 && found.unreadable === 0;
  return { facts, metadata, described: none ? NONE : await describeEntries(found, facts) };
}

/**
 * The facts of a mint and the findings that follow from its own account and its metadata, in one read of the chain.
 * @throws UpstreamFailure as `readMintAccount` does
 */
export async function readMintFindings(
  chain: ChainReads,
  mint: string,
  signal: AbortSignal,
): Promise<{ facts: MintFacts; findings: Finding[] }> {
  const { facts, described, metadata } = await readMint(chain, mint, signal);
  const { extensions } = described;
  const subject = { ...facts, extensions, metadata, largestAccounts: null };
  return { facts, findings: mostSevereFirst(findingsOf(MINT_FINDINGS, subject)) };
}

/**
 * Reads a mint and its metadata; then, in parallel, the kinds of its authorities, its largest accounts and its creation. An address that
 * is not a mint costs one read.
 * @throws UpstreamFailure as `readMintAccount` does
 */
export async function reportMint(chain: ChainReads, mint: string, signal: AbortSignal): Promise<MintReport> {
  const { facts, described, metadata } = await readMint(chain, mint, signal);
  const { extensions, sentences } = described;
  const [authorities, largestAccounts, creation] = await Promise.all([
    readAuthorities(chain, { facts, extensions, metadata }, signal),
    ifAnswered(signal, inTime => readLargestAccounts(chain, facts, inTime)),
    ifAnswered(signal, inTime => readCreation(chain, mint, inTime)),
  ]);
  const subject = { ...facts, extensions, metadata, largestAccounts };
  const findings = mostSevereFirst(findingsOf(MINT_FINDINGS, subject));
  return {
    ...subject,
    authorities,
    creation,
    findings,
    warnings: findings.map(({ sentence }) => sentence),
    brief: [
      ...authoritySentences(facts),
      ...sentences,
      ...(metadata === null ? [] : [metadata.sentence]),
      ...authorities.map(({ sentence }) => sentence),
    ].join(' '),
  };
}

/** The result of a read, or null if it fails or takes too long. If the caller's signal aborts, its reason is thrown. */
async function ifAnswered<T>(
  signal: AbortSignal,
  read: (inTime: AbortSignal) => Promise<T>,
): Promise<T | null> {
  try {
    return await withDeadline(OPTIONAL_MS, signal, read);
  } catch {
    signal.throwIfAborted();
    return null;
  }
}
