import type { FacilitatorConfig } from '../config/facilitator-settings.js';
import { ConfigFault } from '../config/setting-reader.js';
import type { Log } from '../net/log.js';
import type { Observer } from '../observe/observer.js';
import type { KeyPair } from '../rails/solana/key-pair.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import type { Authorize, CdpKey } from './cdp-token.js';
import { EMBEDDED, embeddedFacilitator } from './embedded-facilitator.js';
import type { ListingVerdict } from './facilitator.js';
import { Facilitators, type FacilitatorEntry } from './facilitators.js';
import { FeePayerGuard, type FeePayerLimits } from './fee-payer-guard.js';
import { DEADLINES, facilitatorName, httpFacilitator, type Deadlines } from './http-facilitator.js';
import { loadReferenceVerdict } from './reference-verdict.js';

/** What the embedded facilitator needs. */
export type OwnParts = {
  chain: SolanaChain;
  /** Undefined if `embedded` is not configured. */
  feePayer: KeyPair | undefined;
  /** A second signer for payments that name it; only the first is offered. */
  secondFeePayer?: KeyPair | undefined;
  limits: FeePayerLimits;
  log: Log;
  observer?: Observer;
  /** Receives a facilitator's answers about listings of operations. */
  onListing?: (facilitator: string, verdict: ListingVerdict) => void;
  /** Called with the guard of the embedded facilitator's fee payer. */
  onGuard?: (guard: FeePayerGuard) => void;
};

/**
 * Builds the configured facilitators.
 * @param forDirectories facilitators used only for their directories
 * @throws ConfigFault
 */
export async function createFacilitators(
  configured: readonly FacilitatorConfig[],
  own: OwnParts,
  forDirectories: readonly FacilitatorConfig[] = [],
): Promise<Facilitators> {
  const names = [...configured, ...forDirectories].map(nameOf);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new ConfigFault(`FACILITATOR_URL and CATALOGUE_FACILITATORS: ${twice} is listed twice`);
  const [first, ...others] = await Promise.all(configured.map(config => createEntry(config, own)));
  if (!first) throw new ConfigFault('FACILITATOR_URL: must name at least one facilitator');
  const listing = await Promise.all(forDirectories.map(config => createEntry(config, own, BRISK)));
  const beside = listing.map(entry => ({ ...entry, forDirectory: true }));
  const second = await createSecond(configured, own);
  return new Facilitators([first, ...others, ...second, ...beside], Date.now, own.observer);
}

/** The name of a facilitator in the ledger, in logs and on /health. */
export function nameOf(config: FacilitatorConfig): string {
  return config.kind === 'embedded' ? EMBEDDED : facilitatorName(config.url);
}

/** Short timeouts for facilitators used only for their directories, so that a slow one is not offered. */
const BRISK: Deadlines = { ...DEADLINES, supportedMs: 2_000, verifyMs: 4_000 };

async function createEntry(
  config: FacilitatorConfig,
  own: OwnParts,
  deadlines?: Deadlines,
): Promise<FacilitatorEntry> {
  if (config.kind === 'embedded') return createEmbedded(own);
  const { url, header, rate, cdp } = config;
  const name = facilitatorName(url);
  const headers = header && { [header.name]: header.value };
  const authorize = cdp && (await cdpTokens(cdp));
  return {
    name,
    facilitator: httpFacilitator(url, deadlines, { headers, authorize }, verdict => {
      own.observer?.tell({ kind: 'listing', facilitator: name, ...verdict });
      own.onListing?.(name, verdict);
    }),
    rate,
  };
}

async function cdpTokens(key: CdpKey): Promise<Authorize> {
  const { cdpAuthorization } = await import('./cdp-token.js');
  try {
    return cdpAuthorization(key);
  } catch (error) {
    throw new ConfigFault(`CDP_API_KEY_SECRET: can't be used: ${(error as Error).message}`);
  }
}

/** While a fee payer is being changed, payments that name the other one are settled, too. */
async function createSecond(
  configured: readonly FacilitatorConfig[],
  { secondFeePayer, ...own }: OwnParts,
): Promise<FacilitatorEntry[]> {
  if (!secondFeePayer || !configured.some(({ kind }) => kind === 'embedded')) return [];
  if (secondFeePayer.address === own.feePayer?.address)
    throw new ConfigFault('FEE_PAYER_SECOND_KEYPAIR: is the same key pair as FEE_PAYER_KEYPAIR');
  const entry = await createEmbedded({ ...own, feePayer: secondFeePayer, onGuard: () => {} });
  return [{ ...entry, second: true }];
}

async function createEmbedded({
  chain,
  feePayer,
  limits,
  log,
  onGuard,
}: OwnParts): Promise<FacilitatorEntry> {
  if (!feePayer)
    throw new ConfigFault('FEE_PAYER_KEYPAIR: must be set: the file with the key pair that pays the fees');
  const { address } = feePayer;
  const readBalance = (signal: AbortSignal): Promise<bigint> => chain.balance(address, signal);
  const guard = new FeePayerGuard({ address, limits, readBalance, log });
  onGuard?.(guard);
  const [verdict] = await Promise.all([loadReferenceVerdict(address), guard.start()]);
  const facilitator = embeddedFacilitator({ chain, feePayer, guard, verdict, log });
  return { name: EMBEDDED, facilitator, onlyFeePayer: address };
}
