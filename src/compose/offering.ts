import { durabilityOf } from '../ledger/durability.js';
import { openLedger, type Ledger } from '../ledger/store.js';
import { Offers } from '../offers/offers.js';
import { DirectoryOffers } from '../facilitators/directory-offers.js';
import { createSender } from '../facilitators/sender.js';
import { createFacilitators, nameOf } from '../facilitators/create-facilitators.js';
import type { FeePayerGuard } from '../facilitators/fee-payer-guard.js';
import type { Facilitators } from '../facilitators/facilitators.js';
import { loadFacilitatorTrust, type FacilitatorTrust } from '../facilitators/facilitator-trust.js';
import { OfferedFeePayers, rememberedFeePayers } from '../facilitators/offered-fee-payers.js';
import { boundedHistory, ChainHeights } from '../rails/solana/chain-heights.js';
import { BlockhashLife } from '../rails/solana/blockhash-life.js';
import { SolanaHints } from '../rails/solana/solana-hints.js';
import { SolanaRail } from '../rails/solana/solana-rail.js';
import type { Rail } from '../rails/rail.js';
import { FacilitatorRequests } from '../facilitators/facilitator-requests.js';
import { ledgerWatch } from '../observe/ledger-watch.js';
import { heed, runChecks } from '../checks/preflight.js';
import { startupChecks } from '../checks/startup-checks.js';
import { createChain, type SolanaChain } from '../rails/solana/rpc.js';
import { HintRefresher } from '../rails/solana/refresh-hints.js';
import type { ListingVerdict } from '../facilitators/facilitator.js';
import { REFUSED_FOR_MS } from '../facilitators/listing-answers.js';
import { ListingVerdicts } from '../facilitators/listing-verdicts.js';
import { Listings } from '../facilitators/listings.js';
import { toolShapeOf } from '../mcp/tool-arguments.js';
import { isSandbox, type Base } from './base.js';

const CHAIN_TRY_MS = 3_000;

/** The parts that a payment challenge needs. */
export type Offering = {
  chain: SolanaChain;
  ledger: Ledger;
  facilitator: Facilitators;
  hints: SolanaHints;
  rail: Rail;
  offers: Offers;
  trust: FacilitatorTrust;
  verdicts: ListingVerdicts;
  /** The balance of the embedded facilitator's fee payer. */
  guard: FeePayerGuard | undefined;
};

/** Checks everything that sales depend on, and builds the offers for challenges. */
export async function openOffering(base: Base): Promise<Offering> {
  const { config, contract, endpoints, terms, log, observation, disposers } = base;
  const { observer } = observation;
  const { network, payTo } = terms;
  const chain = createChain({ urls: endpoints.rpcUrls, network, timeoutMs: CHAIN_TRY_MS, log });
  disposers.unshift(() => chain.close());
  const { databaseUrl: url, databaseDirectUrl: directUrl, answerBudgetBytes } = config;
  const ofLedger = ledgerWatch(observer);
  const ledger = await openLedger({ url, directUrl, payTo, network, answerBudgetBytes, watch: ofLedger });
  disposers.unshift(() => ledger.close());
  const { feePayer: ownFeePayer } = endpoints;
  let guard: FeePayerGuard | undefined;
  const onGuard = (made: FeePayerGuard): void => void (guard = made);
  const { limits, second: secondFeePayer } = config.feePayer;
  const verdicts = new ListingVerdicts(ledger, log);
  const onListing = (name: string, verdict: ListingVerdict): void => void verdicts.hear(name, verdict);
  const own = { chain, feePayer: ownFeePayer, secondFeePayer, limits, log, observer, onGuard, onListing };
  const facilitator = await createFacilitators(endpoints.facilitators, own, config.catalogue.facilitators);
  disposers.unshift(() => facilitator.close());
  facilitator.recorded = () => rememberedFeePayers(ledger);
  const remembered = facilitator.learn(await facilitator.recorded());
  const checks = startupChecks({
    contract,
    terms,
    methods: base.methods,
    network: config.network.name,
    chain,
    facilitators: facilitator,
    hadFeePayer: remembered.length > 0,
    durability: () => durabilityOf(directUrl, answerBudgetBytes),
  });
  heed(await runChecks(checks), { isSandbox: isSandbox(config), log });
  const hints = new SolanaHints(facilitator.firstFeePayer(remembered));
  const heights = new ChainHeights(ledger);
  const feePayers = new OfferedFeePayers({ ledger, hints, facilitators: facilitator, network, log });
  const trust = await loadFacilitatorTrust(ledger, facilitator, log);
  const catalogue = catalogueOf(base, { ledger, facilitator, hints, trust, verdicts });
  const watch = new HintRefresher({ hints, chain, heights, feePayers, catalogue, ledger, log });
  disposers.unshift(async () => {
    watch.stop();
    hints.close();
  });
  await watch.start();
  const life = new BlockhashLife({ hints, chain, closing: base.closing });
  const listings = config.listed ? new Listings(terms, toolShapeOf) : undefined;
  // The sender is created even without mpp, because payments may have been claimed while METHODS included
  // mpp.
  const sender = createSender(chain, log);
  disposers.unshift(async () => sender.close());
  if (config.mpp) hints.sponsor = () => (guard?.refusal() === undefined ? facilitator.own : undefined);
  const rail = new SolanaRail({
    ...{ terms, hints, facilitator, sender, trust, receivers: ledger.receivers },
    requests: new FacilitatorRequests(terms, ledger.receivers, listings),
    chain: boundedHistory(chain, heights),
    blocksLeft: blockhash => life.blocksLeft(blockhash),
  });
  const offers = new Offers(base.methods, hints);
  return { chain, ledger, facilitator, hints, rail, offers, trust, guard, verdicts };
}

/** Offers some sales through facilitators that list what they settle; undefined if none is configured for that. */
function catalogueOf(
  { config, log }: Base,
  parts: Pick<Offering, 'ledger' | 'facilitator' | 'hints' | 'trust' | 'verdicts'>,
): DirectoryOffers | undefined {
  const { ledger, facilitator, hints, trust, verdicts } = parts;
  const { facilitators, everyMs } = config.catalogue;
  if (facilitators.length === 0) return undefined;
  const offerable = (name: string): string | undefined =>
    trust.isLiar(name) ? undefined : facilitator.offerable(name);
  const catalogue = new DirectoryOffers({ ledger, names: facilitators.map(nameOf), offerable, everyMs, log });
  facilitator.onDirectory = (name, listing, went) => catalogue.heard(name, listing, went);
  verdicts.onRefused = name => catalogue.rest(name, REFUSED_FOR_MS);
  hints.elsewhere = called => catalogue.feePayerFor(called);
  return catalogue;
}
