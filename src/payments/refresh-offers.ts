import type { Log } from '../net/log.js';
import type { Ledger, OfferedFeePayer } from '../ledger/store.js';
import type { ChainView, Offers } from './offers.js';
import { FacilitatorFault, FacilitatorUnreachable, type Facilitator } from './facilitator.js';
import type { SharedFeePayers } from './shared-fee-payers.js';
import type { ChainHeights } from './chain-heights.js';
import { heightOf } from './find-transfer.js';
import type { SolanaChain } from '../solana/rpc.js';

/** How often it is asked whether the chain is to be looked at; see `lookAfterMs`. */
const TICK_MS = 200;
const FEE_PAYER_INTERVAL_MS = 60_000;
const SHARE_INTERVAL_MS = 20_000;
const UPKEEP_INTERVAL_MS = 60_000;
const VIEW_DEADLINE_MS = 8_000;
/** Of a hundred rows each, so that one round of upkeep stays short. */
const MAX_SLICES = 100;
/** Where version 1.0.0 kept the fee payers that were offered, all in one. */
const FORMER_FEE_PAYERS_KEY = 'offered-fee-payers';

/** What the ledger remembers of the fee payers that were offered, the newest first. */
export async function rememberedFeePayers(ledger: Ledger): Promise<OfferedFeePayer[]> {
  const offered = await ledger.offeredFeePayers();
  if (offered.length > 0) return offered;
  const text = await ledger.getMeta(FORMER_FEE_PAYERS_KEY);
  return text === undefined ? [] : (JSON.parse(text) as OfferedFeePayer[]);
}

/** Asks the facilitator who pays network fees, or, while it can't be reached, the ledger who did last. */
export async function firstFeePayer(
  facilitator: Facilitator,
  network: string,
  remembered: OfferedFeePayer[],
  log: Log,
): Promise<string> {
  try {
    return (await facilitator.supported(network)).feePayer;
  } catch (error) {
    const last = remembered[0];
    if (!(error instanceof FacilitatorUnreachable)) throw error;
    if (!last)
      throw new FacilitatorFault(`${error.message}. Start it, or set FACILITATOR_URL to one that answers.`);
    log.warn(
      { error: error.message },
      'starting without the facilitator: paid calls answer 503 until it is back',
    );
    return last.feePayer;
  }
}

/**
 * Looks where the chain stands, and keeps its height for other servers and later starts.
 * @throws where no RPC server answers with a height that is believed
 */
export async function readView(
  chain: Pick<SolanaChain, 'latestBlockhash'>,
  heights: ChainHeights,
  signal: AbortSignal,
): Promise<ChainView> {
  await heights.refresh();
  const latest = await chain.latestBlockhash('confirmed', signal, heights.check);
  const height = heightOf(latest);
  await heights.record(height);
  return { blockhash: latest.blockhash, slot: latest.slot, height };
}

type OfferRefresherParts = {
  offers: Offers;
  chain: SolanaChain;
  heights: ChainHeights;
  feePayers: SharedFeePayers;
  facilitator: Facilitator;
  ledger: Ledger;
  log: Log;
};

/**
 * Keeps what the offers know of chain and facilitator fresh in the background, so that no request waits for either, and clears the
 * ledger of what has expired.
 */
export class OfferRefresher {
  readonly #parts: OfferRefresherParts;
  readonly #timers: NodeJS.Timeout[] = [];
  #chainDown = false;
  #lookedAt = -Infinity;

  constructor(parts: OfferRefresherParts) {
    this.#parts = parts;
  }

  /** Looks once at everything, then goes on by itself. Resolves after the first look, whatever it found. */
  async start(): Promise<void> {
    const look = this.#every(TICK_MS, () => this.#readChainWhenDue());
    this.#parts.offers.onUsedUp = look;
    this.#every(FEE_PAYER_INTERVAL_MS, () => this.#readFeePayer());
    this.#every(SHARE_INTERVAL_MS, () => this.#shareFeePayers());
    this.#every(UPKEEP_INTERVAL_MS, () => this.#runMaintenance());
    await Promise.all([this.#readChain(), this.#shareFeePayers(), this.#runMaintenance()]);
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** @returns what to call to have it done sooner */
  #every(ms: number, look: () => Promise<void>): () => void {
    let busy = false;
    const begin = (): void => {
      if (busy) return;
      busy = true;
      void look().finally(() => {
        busy = false;
      });
    };
    this.#timers.push(setInterval(begin, ms).unref());
    return begin;
  }

  async #readChainWhenDue(): Promise<void> {
    if (performance.now() - this.#lookedAt >= this.#parts.offers.nextReadAfterMs()) await this.#readChain();
  }

  async #readChain(): Promise<void> {
    const { chain, offers, heights, log } = this.#parts;
    this.#lookedAt = performance.now();
    try {
      offers.setView(await readView(chain, heights, AbortSignal.timeout(VIEW_DEADLINE_MS)));
      if (this.#chainDown) log.info({}, 'the chain answers again');
      this.#chainDown = false;
    } catch (error) {
      if (!this.#chainDown)
        log.warn({ error }, 'the chain does not answer as it should: paid calls answer 503 until it does');
      this.#chainDown = true;
    }
  }

  async #readFeePayer(): Promise<void> {
    const { facilitator, offers, feePayers, log } = this.#parts;
    try {
      await feePayers.offer((await facilitator.supported(offers.terms.network)).feePayer);
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'no news of who pays network fees');
    }
  }

  async #shareFeePayers(): Promise<void> {
    const { feePayers, log } = this.#parts;
    try {
      await feePayers.share();
    } catch (error) {
      log.warn({ error }, 'the fee payers could not be shared through the ledger');
    }
  }

  async #runMaintenance(): Promise<void> {
    const { ledger, offers, log } = this.#parts;
    try {
      const view = offers.view();
      for (let slice = 0; view && slice < MAX_SLICES; slice++)
        if (!(await ledger.deleteExpiredClaims({ height: view.height }))) break;
      for (let slice = 0; slice < MAX_SLICES; slice++) if (!(await ledger.prune())) break;
    } catch (error) {
      log.warn({ error }, 'the ledger could not be cleared of what has expired');
    }
  }
}
