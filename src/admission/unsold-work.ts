import type { Fault } from '../net/failure.js';
import { LeakyBuckets } from '../net/leaky-buckets.js';
import type { Log } from '../net/log.js';
import { UNOBSERVED, type Observer } from '../observe/observer.js';
import { SharedBucket } from './admission.js';

/**
 * How much a purchase raises a payer's limit of unsold runs; also the share of a known payer's runs that is
 * expected to be unsold.
 */
const SHARE = 1 / 8;
/**
 * A wallet's limits on unsold runs: `capacity` at once, and `perSecond` more from then on. `highest` is the maximum number that
 * is counted, which limits the wait to five minutes.
 */
const PAYER = { capacity: 10, perSecond: 1 / 15, highest: 30, lowest: -100, maxKeys: 10_000 };
/** An address has five times a wallet's limit. */
const SOURCE = { capacity: 50, perSecond: 1 / 3, highest: 150, lowest: -500, maxKeys: 20_000 };
/** The unsold runs that all payers of one backend together may cause in an hour. */
const PER_HOUR = 1_000;
const HOUR_SECONDS = 3_600;
const BACKEND_WAIT_SECONDS = 60;
const MAX_WAIT_SECONDS = 300;
const LONG_WORK_MS = 1_000;
/**
 * The backend's own failures count less. Without other unsold runs, they never block a caller for longer than
 * it takes until one more run is allowed.
 */
const BACKEND_FAULT = 1 / 4;
/** How many unverified runs of a known payer may be under way at once. */
const UNVERIFIED_WORK = 4;

/**
 * The accounts for a piece of work. `source`: undefined if it has no limit. `backend`: the one that does the work; undefined if only the payer's
 * account counts. `known`: whether the payer has paid before.
 */
export type Party = {
  payer: string;
  source: string | undefined;
  backend: string | undefined;
  known: boolean;
};

/** The account that is used up, and the seconds (at least 1) until the caller may try again. */
export type UsedUp = { whose: 'payer' | 'source' | 'backend'; seconds: number };

/** A run that is under way. */
export type Started = { end(): void };

/** Work that is under way. Only the first report of its outcome counts; without a report, no account is charged. */
export type Working = Started & {
  /** Records that the work has ended, so that the settlement does not count as working time. */
  done(): void;
  sold(): void;
  unsold(fault: Fault): void;
};

/** `capacity`: runs at once; `perSecond`: how many more each second allows; `highest`: the count rises no further, which limits the wait. */
export type PayerAllowance = { capacity: number; perSecond: number; highest: number };

type Reports = { log?: Pick<Log, 'warn'>; observer?: Pick<Observer, 'tell'> };

/**
 * Limits unsold work: runs for a call that was refused, failed, came too late, could not be settled, or whose caller left. Each payer, each
 * source and each backend has an account. A payer may have ten such runs, and one more every 15 s. Each paid run adds an eighth of a run to
 * the payer's account; unsold runs that these eighths cover affect no other account. Work in progress counts, too. Work of more than a
 * second counts double.
 */
export class UnsoldWork {
  readonly #payers: LeakyBuckets;
  readonly #sources: LeakyBuckets;
  readonly #hourly = new Map<string, SharedBucket>();
  readonly #perHour: number;
  /** Work under way by payer, source and backend. Sums of eighths are exact, so they return to 0. */
  readonly #running = new Map<string, number>();
  /** When the unverified runs of each payer began. */
  readonly #unverified = new Map<string, Set<{ began: number }>>();
  readonly #reports: Reports;
  readonly #now: () => number;

  /** @param perHour for each backend; at least 2 */
  constructor({
    perHour = PER_HOUR,
    perPayer = PAYER,
    now = Date.now,
    ...reports
  }: Reports & { perHour?: number | undefined; perPayer?: PayerAllowance | undefined; now?: () => number }) {
    this.#now = now;
    this.#perHour = perHour;
    this.#reports = reports;
    this.#payers = new LeakyBuckets({ ...PAYER, ...perPayer, now });
    this.#sources = new LeakyBuckets({ ...SOURCE, now });
  }

  /** The account that currently forbids the work, if any. */
  usedUp(party: Party): UsedUp | undefined {
    const { payer, source, backend } = party;
    const more = this.#expectedOf(party);
    const ofPayer = this.#under(`payer ${payer}`) + more;
    const payerWait = this.#payers.wait(payer, ofPayer);
    if (payerWait > 0) return usedUp('payer', payerWait);
    if (this.#payers.level(payer) + ofPayer <= 0) return undefined;
    const sourceWait =
      source === undefined ? 0 : this.#sources.wait(source, this.#under(`source ${source}`) + more);
    if (sourceWait > 0) return usedUp('source', sourceWait);
    if (backend === undefined) return undefined;
    const left = this.#hourlyOf(backend).has(source ?? payer, this.#under(`backend ${backend}`) + more);
    return left ? undefined : usedUp('backend', BACKEND_WAIT_SECONDS);
  }

  /** Reports that a call was turned away. */
  turnedAway({ payer, source, backend }: Party, { whose }: UsedUp): void {
    const { log, observer = UNOBSERVED } = this.#reports;
    observer.tell({ kind: 'throttled' });
    // The log merges lines with the same `error` into one that says how many there were.
    const error = `too much unsold work from one ${whose}`;
    log?.warn({ payer, source, backend, error }, 'turned away a call: too many calls ended without a sale');
  }

  /** Starts work. @returns the reason if it may not start */
  begin(party: Party): Working | UsedUp {
    const refused = this.usedUp(party);
    if (refused) return refused;
    const began = this.#now();
    const weight = this.#expectedOf(party);
    const keys = [`payer ${party.payer}`, `source ${party.source ?? ''}`, `backend ${party.backend ?? ''}`];
    for (const key of keys) this.#count(key, weight);
    const once = onlyOnce();
    const ended = onlyOnce();
    let doneAt: number | undefined;
    const work = (): number => weightOf((doneAt ?? this.#now()) - began);
    return {
      done: () => void (doneAt ??= this.#now()),
      sold: () => once(() => this.#credit(party, work())),
      unsold: fault => once(() => this.#charge(party, fault, work())),
      end: () => ended(() => keys.forEach(key => this.#count(key, -weight))),
    };
  }

  /**
   * Starts a run of a known payer whose payment is not verified before it is settled. A run that has taken more than a second counts double.
   * @returns undefined if too many are under way
   */
  beginUnverified(payer: string): Started | undefined {
    const now = this.#now();
    const runs = this.#unverified.get(payer) ?? new Set();
    const weights = [...runs].map(({ began }) => weightOf(now - began));
    if (weights.reduce((sum, weight) => sum + weight, 1) > UNVERIFIED_WORK) return undefined;
    const run = { began: now };
    this.#unverified.set(payer, runs.add(run));
    return {
      end: () => {
        runs.delete(run);
        if (runs.size === 0 && this.#unverified.get(payer) === runs) this.#unverified.delete(payer);
      },
    };
  }

  #credit({ payer, source }: Party, weight: number): void {
    this.#payers.add(payer, -SHARE * weight);
    if (source !== undefined) this.#sources.add(source, -SHARE * weight);
  }

  #charge({ payer, source, backend }: Party, fault: Fault, work: number): void {
    if (fault === 'none') return;
    const ofBackend = fault === 'backend';
    const weight = ofBackend ? BACKEND_FAULT * work : work;
    const covered = this.#payers.level(payer) + weight <= 0;
    this.#payers.add(payer, weight, ofBackend ? PAYER.capacity : undefined);
    if (covered) return;
    if (source !== undefined) this.#sources.add(source, weight, ofBackend ? SOURCE.capacity : undefined);
    if (backend !== undefined) this.#hourlyOf(backend).add(source ?? payer, weight);
  }

  /** Half of the hourly allowance is available immediately, and half in the course of the hour. */
  #hourlyOf(backend: string): SharedBucket {
    const known = this.#hourly.get(backend);
    if (known) return known;
    const burst = this.#perHour / 2;
    const bucket = new SharedBucket({ burst, rate: burst / HOUR_SECONDS, now: this.#now });
    this.#hourly.set(backend, bucket);
    return bucket;
  }

  /** The share of a run that is expected to be unsold. A payer who has credit from purchases counts as known. */
  #expectedOf({ payer, known }: Party): number {
    return known || this.#payers.level(payer) < 0 ? SHARE : 1;
  }

  #under(key: string): number {
    return this.#running.get(key) ?? 0;
  }

  #count(key: string, weight: number): void {
    const now = this.#under(key) + weight;
    if (now > 0) this.#running.set(key, now);
    else this.#running.delete(key);
  }
}

function usedUp(whose: UsedUp['whose'], seconds: number): UsedUp {
  return { whose, seconds: Math.min(Math.max(1, Math.ceil(seconds)), MAX_WAIT_SECONDS) };
}

function weightOf(ms: number): number {
  return ms > LONG_WORK_MS ? 2 : 1;
}

function onlyOnce(): (run: () => void) => void {
  let done = false;
  return run => {
    if (!done) run();
    done = true;
  };
}
