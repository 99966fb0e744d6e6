import { LRUCache } from 'lru-cache';
import { setTimeout as sleep } from 'node:timers/promises';
import { SharedBucket } from '../admission/admission.js';
import type { Ledger } from '../ledger/store.js';
import type { Credential, Made } from '../methods/method.js';
import type { Log } from '../net/log.js';
import type { Named, Rail } from '../rails/rail.js';

type Options = {
  ledger: Pick<Ledger, 'settledBy'>;
  rail: Pick<Rail, 'find'>;
  log: Log;
  timing?: Partial<Timing>;
};

/** In ms. */
type Timing = { look: number; rest: number };
const TIMING: Timing = { look: 5_000, rest: 700 };
/**
 * How many times the rail is searched for a transfer: more than once, because its servers may lag behind the one that confirmed the
 * transfer to the buyer.
 */
const LOOKS = 3;
const RATE = { rate: 50, burst: 500 };
const MAX_KNOWN = 2_000;
const UNREAD =
  'Your transfer cannot be looked up on the chain at the moment. Do not pay again: send the same credential again';
const NOT_SEEN =
  'The chain does not show a confirmed transfer with this signature yet. If you have made it, do not pay again: send the same ' +
  'credential again';
const BUSY =
  'Too many transfers are being looked up at once. Do not pay again: send the same credential again';
const FAILED =
  'payload: this transfer failed on the chain and moved no money: pay the challenge in this answer';

/**
 * The signed transaction of a transfer that the buyer already sent. `ours`: whether the ledger has the payment under this credential's
 * challenge.
 */
export type MadePayment =
  | { kind: 'found'; evidence: string; ours: boolean }
  | { kind: 'refused'; error: string }
  | { kind: 'unavailable'; error: string; retryAfterSeconds: number };

type Found = Extract<MadePayment, { kind: 'found' }>;

/**
 * Payments that name only a transfer that the buyer already sent. The ledger is searched first. The rail is searched only for a payment
 * that answers, in time, a challenge from this server for this call.
 */
export class MadePayments {
  readonly #options: Options;
  readonly #timing: Timing;
  /** Transactions that have landed do not change, so they are cached. */
  readonly #evidence = new LRUCache<string, string>({ max: MAX_KNOWN });
  readonly #looks = new SharedBucket(RATE);

  constructor({ timing, ...options }: Options) {
    this.#options = options;
    this.#timing = { ...TIMING, ...timing };
  }

  /** Never rejects. @param source where the request comes from; the look-ups are shared fairly between sources */
  async find(credential: Credential, made: Made, source: string): Promise<MadePayment> {
    const known = made.live ? this.#evidence.get(credential.evidence) : undefined;
    if (known !== undefined) return { kind: 'found', evidence: known, ours: false };
    if (!this.#looks.take(source)) return { kind: 'unavailable', error: BUSY, retryAfterSeconds: 2 };
    try {
      return (await this.#inLedger(credential, made)) ?? (await this.#onRail(credential, made));
    } catch (error) {
      this.#options.log.warn({ error }, 'could not look for the transfer that a buyer named');
      return { kind: 'unavailable', error: UNREAD, retryAfterSeconds: 5 };
    }
  }

  /** A stranger can name the transfer, too, so the credential's challenge is compared with the one in the ledger. */
  async #inLedger({ evidence: name, identifier }: Credential, { foreign }: Made): Promise<Found | undefined> {
    const row = await this.#options.ledger.settledBy(name);
    const ours = row?.identifier === identifier;
    return row && (ours || !foreign) ? { kind: 'found', evidence: row.evidence, ours } : undefined;
  }

  async #onRail({ evidence: name, mismatch = '' }: Credential, { live }: Made): Promise<MadePayment> {
    if (!live) return { kind: 'refused', error: mismatch };
    const named = await this.#look(name);
    if (named.kind === 'failed') return { kind: 'refused', error: FAILED };
    if (named.kind === 'not-seen') return { kind: 'unavailable', error: NOT_SEEN, retryAfterSeconds: 2 };
    this.#evidence.set(name, named.evidence);
    return { kind: 'found', evidence: named.evidence, ours: false };
  }

  async #look(name: string): Promise<Named> {
    const { look, rest } = this.#timing;
    const { rail } = this.#options;
    for (let looks = 1; ; looks++) {
      const named = await rail.find(name, AbortSignal.timeout(look));
      if (named.kind !== 'not-seen' || looks === LOOKS) return named;
      await sleep(rest);
    }
  }
}
