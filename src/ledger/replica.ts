import { setTimeout as sleep } from 'node:timers/promises';
import { clockOf } from './clock.js';
import type { Connection } from './connection.js';
import { execute, type Engine } from './engine.js';
import { openEngine } from './engines/open-engine.js';
import { messageOf } from './fault.js';
import { checkReadable } from './migrate.js';
import { replicaState } from './queries/replica.js';
import { readerOf, reportsOf, type Identity, type LedgerReader, type LedgerReports } from './reader.js';

/**
 * A transfer is finalized about 13 s after its payment was claimed. With a shorter lag, reports from the replica contain every payment whose
 * transfer the chain shows as finalized.
 */
const MAX_LAG_MS = 10_000;
const LOOK_EVERY_MS = 2_000;
/** How long a measurement waits for the replica to catch up. */
const PATIENCE_MS = 500;
const PAUSE_MS = 20;

/** How far a replica is behind its primary, or why it is not read. */
export type ReplicaState = { lagMs: number } | { unusable: string };

/** The functions that may read from a replica, because no decision about money depends on them. */
const REPORTS = [
  'list',
  'counts',
  'identity',
  'turnover',
  'salesAfter',
  'newestSales',
  'listSales',
  'payerTotals',
  'formerRefunds',
  'soldBefore',
  'refundedBetween',
] as const;
const STREAMS = ['movedSales', 'movedRefunds'] as const;
type Source = LedgerReader & LedgerReports;
export type Reports = Pick<Source, (typeof REPORTS)[number] | (typeof STREAMS)[number]>;

type Primary = Reports & Pick<Source, 'walPosition'>;
type Options = {
  url: string;
  primary: Primary;
  /** Called after the first measurement, and when the replica becomes usable or unusable. */
  onChange?: (state: ReplicaState) => void;
};

/** Reads reports from a replica while its lag is short enough, otherwise from the primary. */
export class Replica {
  readonly #options: Options;
  readonly reports: Reports;
  #opened: Promise<{ engine: Engine; reports: Reports }> | undefined;
  #seen: { state: ReplicaState; at: number } | undefined;
  #looking: Promise<ReplicaState> | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.reports = this.#reports();
  }

  /** The state as last measured. */
  get seen(): ReplicaState | undefined {
    return this.#seen?.state;
  }

  /** The state, measured at most two seconds ago. Never rejects. */
  state(): Promise<ReplicaState> {
    const { at = -Infinity, state } = this.#seen ?? {};
    if (state && performance.now() - at < LOOK_EVERY_MS) return Promise.resolve(state);
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async close(): Promise<void> {
    await this.#looking;
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.engine.close();
  }

  async #look(): Promise<ReplicaState> {
    const state = await this.#measured().catch((error: unknown) => ({ unusable: messageOf(error) }));
    const before = this.#seen?.state;
    this.#seen = { state, at: performance.now() };
    if (before === undefined || 'unusable' in before !== 'unusable' in state) this.#options.onChange?.(state);
    return state;
  }

  async #measured(): Promise<ReplicaState> {
    const { primary } = this.#options;
    const position = await primary.walPosition();
    if (position === undefined) return { unusable: 'the ledger is not in PostgreSQL' };
    const { engine } = await this.#open();
    const began = performance.now();
    for (;;) {
      const [row] = await engine.read(() => execute(replicaState({ position })));
      if (Number(row?.replica) !== 1) return { unusable: 'it is not a replica' };
      const waited = performance.now() - began;
      if (Number(row?.behind) === 0) return { lagMs: Math.round(waited) };
      if (waited < PATIENCE_MS) await sleep(PAUSE_MS);
      else return lagOf(Math.max(Number(row?.age ?? Infinity), waited));
    }
  }

  #open(): Promise<{ engine: Engine; reports: Reports }> {
    this.#opened ??= openReplica(this.#options).catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #source(): Promise<Reports> {
    return 'unusable' in (await this.state()) ? this.#options.primary : (await this.#open()).reports;
  }

  #reports(): Reports {
    const read =
      (name: string) =>
      async (...args: unknown[]) => {
        const source = (await this.#source()) as unknown as Record<string, (...args: unknown[]) => unknown>;
        return source[name]?.(...args);
      };
    const stream = (name: string) => {
      const source = read(name);
      return async function* (...args: unknown[]) {
        yield* (await source(...args)) as AsyncIterable<unknown>;
      };
    };
    return Object.fromEntries([
      ...REPORTS.map(name => [name, read(name)] as const),
      ...STREAMS.map(name => [name, stream(name)] as const),
    ]) as Record<string, unknown> as Reports;
  }
}

function lagOf(ms: number): ReplicaState {
  if (ms <= MAX_LAG_MS) return { lagMs: Math.round(ms) };
  const long = Number.isFinite(ms) ? `${Math.round(ms / 1_000)} s` : 'an unknown time';
  return { unusable: `it is ${long} behind the primary, more than ${MAX_LAG_MS / 1_000} s` };
}

async function openReplica({ url, primary }: Options): Promise<{ engine: Engine; reports: Reports }> {
  const engine = await openEngine(url, 'beside');
  try {
    await engine.read(() => checkReadable());
    const audience = { listens: false, onTold: () => {} };
    const connection: Connection = { engine, now: clockOf(engine.dialect), audience };
    const reports = { ...readerOf(connection), ...reportsOf(connection) };
    if (!isSame(await reports.identity(), await primary.identity())) throw new Error('it has another ledger');
    return { engine, reports };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** The replica may lack a receiver: it may not yet have the first sale, which binds a ledger to its receiver. */
function isSame(replica: Identity, primary: Identity): boolean {
  return (
    replica.network === primary.network && (replica.payTo === undefined || replica.payTo === primary.payTo)
  );
}
