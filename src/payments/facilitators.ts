import { LRUCache } from 'lru-cache';
import type { OfferedFeePayer } from '../ledger/store.js';
import {
  FacilitatorUnreachable,
  type Facilitator,
  type FacilitatorRequest,
  type SettleResult,
  type SignResult,
  type Supported,
  type VerifyResult,
} from './facilitator.js';

/** A configured facilitator. `name` has no credentials and is its key in the ledger. */
export type FacilitatorEntry = { name: string; facilitator: Facilitator };

const MAX_FEE_PAYERS = 1_024;
/** How long a fee payer that no facilitator has stays unknown. */
const UNKNOWN_MS = 5_000;

/**
 * The configured facilitators in order of preference. A payment goes to the one whose fee payer it names, because that fee payer is part
 * of what the buyer signed.
 */
export class Facilitators implements Facilitator {
  readonly #entries: readonly FacilitatorEntry[];
  /** The facilitator of each fee payer. */
  readonly #owners = new LRUCache<string, FacilitatorEntry>({ max: MAX_FEE_PAYERS });
  readonly #unknown = new LRUCache<string, true>({ max: MAX_FEE_PAYERS, ttl: UNKNOWN_MS });
  #looking: Promise<void> | undefined;

  constructor(entries: readonly [FacilitatorEntry, ...FacilitatorEntry[]]) {
    this.#entries = entries;
  }

  /** In order of preference. */
  get names(): string[] {
    return this.#entries.map(({ name }) => name);
  }

  /** The name of the facilitator that pays with this fee payer; undefined if that is not known here. */
  nameOf(feePayer: string): string | undefined {
    return this.#owners.get(feePayer)?.name;
  }

  /** Takes over what the ledger knows. Records without a name are those of the first facilitator. */
  learn(offered: readonly OfferedFeePayer[]): void {
    for (const { feePayer, facilitator } of offered) {
      const [first] = this.#entries;
      const entry =
        facilitator === undefined ? first : this.#entries.find(({ name }) => name === facilitator);
      if (entry && !this.#owners.has(feePayer)) this.#owners.set(feePayer, entry);
    }
  }

  /** Of the first facilitator that answers. */
  async supported(network: string): Promise<Supported> {
    const failures: string[] = [];
    for (const entry of this.#entries) {
      try {
        return await this.#ask(entry, network);
      } catch (error) {
        if (!(error instanceof FacilitatorUnreachable)) throw error;
        failures.push(error.message);
      }
    }
    throw new FacilitatorUnreachable(failures.join('; '));
  }

  async verify(request: FacilitatorRequest): Promise<VerifyResult> {
    const entry = await this.#entryFor(request);
    return entry
      ? entry.facilitator.verify(request)
      : { kind: 'unavailable', detail: nobodyHas(feePayerIn(request)) };
  }

  async sign(request: FacilitatorRequest): Promise<SignResult> {
    const entry = await this.#entryFor(request);
    if (!entry) return { kind: 'unavailable', detail: nobodyHas(feePayerIn(request)) };
    return entry.facilitator.sign?.(request) ?? { kind: 'not-needed' };
  }

  async settle(request: FacilitatorRequest): Promise<SettleResult> {
    const entry = await this.#entryFor(request);
    return entry
      ? entry.facilitator.settle(request)
      : { kind: 'unknown', reason: nobodyHas(feePayerIn(request)), signature: '' };
  }

  async close(): Promise<void> {
    await Promise.all(this.#entries.map(({ facilitator }) => facilitator.close()));
  }

  async #ask(entry: FacilitatorEntry, network: string): Promise<Supported> {
    const supported = await entry.facilitator.supported(network);
    for (const each of [supported.feePayer, ...(supported.signers ?? [])]) this.#owners.set(each, entry);
    return supported;
  }

  /** Asks all facilitators which fee payers they have, if this one is not known. */
  async #entryFor(request: FacilitatorRequest): Promise<FacilitatorEntry | undefined> {
    const feePayer = feePayerIn(request);
    const known = this.#owners.get(feePayer);
    if (known || this.#unknown.has(feePayer)) return known;
    await (this.#looking ??= this.#look(request.requirements.network));
    const found = this.#owners.get(feePayer);
    if (!found) this.#unknown.set(feePayer, true);
    return found;
  }

  async #look(network: string): Promise<void> {
    await Promise.allSettled(this.#entries.map(entry => this.#ask(entry, network)));
    this.#looking = undefined;
  }
}

function feePayerIn({ requirements }: FacilitatorRequest): string {
  return String(requirements.extra.feePayer);
}

function nobodyHas(feePayer: string): string {
  return `no facilitator in FACILITATOR_URL has the fee payer ${feePayer}`;
}
