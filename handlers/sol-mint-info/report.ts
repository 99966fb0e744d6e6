import type { ChainReads } from 'coinslot';
import { splitEntries } from './entries.js';
import { describeEntries, type Described } from './extensions.js';
import type { MintExtensions } from './mint-extensions.js';
import { readMintAccount, type MintFacts } from '../mints/mint.js';
import { authoritySentences, authorityWarnings, UNINITIALISED } from './wording.js';

/**
 * The facts of a mint with its extensions and what they mean (`solMintInfo` in openapi.yaml). `extensions` is empty if the mint has
 * none; the Token program has none at all. `warnings`: what somebody can do to holders or does already, in the order of the extensions, one
 * sentence each. `brief`: all of it in sentences, on one line.
 */
export type MintReport = MintFacts & { extensions: MintExtensions; warnings: string[]; brief: string };

/**
 * Bytes read of a mint. The extensions that are not texts take about 1 500 bytes together; longer metadata is cut off, which the
 * answer says.
 */
const BYTES_READ = 65_536;
const NONE: Described = { extensions: {}, sentences: [], warnings: [] };

/**
 * Reads a mint with its extensions in one read of the chain.
 * @throws UpstreamFailure as `readMint`
 */
export async function reportMint(chain: ChainReads, mint: string, signal: AbortSignal): Promise<MintReport> {
  const { facts, extensionData } = await readMintAccount(chain, mint, signal, BYTES_READ);
  const found = splitEntries(extensionData);
  const none = found.entries.length === 0 && found.unreadable === 0;
  const described = none ? NONE : await describeEntries(found, facts);
  const first = facts.initialized ? [] : [UNINITIALISED];
  return {
    ...facts,
    extensions: described.extensions,
    warnings: [...first, ...described.warnings, ...(facts.initialized ? authorityWarnings(facts) : [])],
    brief: [...authoritySentences(facts), ...described.sentences].join(' '),
  };
}
