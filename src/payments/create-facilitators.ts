import { ConfigFault, type FacilitatorConfig } from '../config.js';
import type { Log } from '../net/log.js';
import type { KeyPair } from '../solana/key-pair.js';
import type { SolanaChain } from '../solana/rpc.js';
import { EMBEDDED, embeddedFacilitator } from './embedded-facilitator.js';
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
};

/**
 * Builds the configured facilitators.
 * @throws ConfigFault
 */
export async function createFacilitators(
  configured: readonly FacilitatorConfig[],
  own: OwnParts,
): Promise<Facilitators> {
  const [first, ...others] = await Promise.all(configured.map(config => createEntry(config, own)));
  if (!first) throw new ConfigFault('FACILITATOR_URL: must name at least one facilitator');
  return new Facilitators([first, ...others]);
}

async function createEntry(config: FacilitatorConfig, own: OwnParts): Promise<FacilitatorEntry> {
  if (config.kind === 'embedded') return { name: EMBEDDED, facilitator: await createEmbedded(own) };
  return { name: facilitatorName(config.url), facilitator: httpFacilitator(config.url) };
}

async function createEmbedded({
  chain,
  feePayer,
  limits,
  log,
}: OwnParts): Promise<FacilitatorEntry['facilitator']> {
  if (!feePayer)
    throw new ConfigFault('FEE_PAYER_KEYPAIR: must be set: the file with the key pair that pays the fees');
  const { address } = feePayer;
  const readBalance = (signal: AbortSignal): Promise<bigint> => chain.balance(address, signal);
  const guard = new FeePayerGuard({ address, limits, readBalance, log });
  const [verdict] = await Promise.all([loadReferenceVerdict(address), guard.start()]);
  return embeddedFacilitator({ chain, feePayer, guard, verdict, log });
}
