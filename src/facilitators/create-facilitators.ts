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
import { facilitatorName, httpFacilitator } from './http-facilitator.js';
import { loadReferenceVerdict } from './reference-verdict.js';

/** What the embedded facilitator needs. */
export type OwnParts = {
  chain: SolanaChain;
  /** Undefined if `embedded` is not configured. */
  feePayer: KeyPair | undefined;
  limits: FeePayerLimits;
  log: Log;
  observer?: Observer;
  /** Told what a facilitator's directory makes of an operation. */
  onListing?: (facilitator: string, verdict: ListingVerdict) => void;
  /** Called with the guard of the embedded facilitator's fee payer. */
  onGuard?: (guard: FeePayerGuard) => void;
};

/**
 * Builds the configured facilitators.
 * @throws ConfigFault
 */
export async function createFacilitators(
  configured: readonly FacilitatorConfig[],
  own: OwnParts,
): Promise<Facilitators> {
  const names = configured.map(config =>
    config.kind === 'embedded' ? EMBEDDED : facilitatorName(config.url),
  );
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new ConfigFault(`FACILITATOR_URL: names ${twice} twice`);
  const [first, ...others] = await Promise.all(configured.map(config => createEntry(config, own)));
  if (!first) throw new ConfigFault('FACILITATOR_URL: must name at least one facilitator');
  return new Facilitators([first, ...others], Date.now, own.observer);
}

async function createEntry(config: FacilitatorConfig, own: OwnParts): Promise<FacilitatorEntry> {
  if (config.kind === 'embedded') return createEmbedded(own);
  const { url, header, rate, cdp } = config;
  const name = facilitatorName(url);
  const headers = header && { [header.name]: header.value };
  const authorize = cdp && (await cdpTokens(cdp));
  return {
    name,
    facilitator: httpFacilitator(url, undefined, { headers, authorize }, verdict => {
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
