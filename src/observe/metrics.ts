import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Answered, Event, Listener, Step } from './observer.js';
import { reasonOf } from './refusal-reason.js';
import { saleCountsIn, type SaleCounts } from './sale-counts.js';
import { countIn, durationsIn, type Count, type Durations } from './series.js';

/** A paid operation. */
export type SoldOperation = { id: string; flow: string };

/** Values that are read at each request for the metrics. If `undecided` rejects, its metrics are left out. */
export type MetricsSource = {
  /**
   * The payments whose money moved, or may have moved, and whose answer was not delivered. Amounts in atomic units, times in ms since
   * 1970.
   */
  undecided: () => Promise<Record<'settling' | 'owed', Undecided>>;
  /** The configured facilitators, and the backends of the operations that are sold. */
  services: () => { facilitators: readonly string[]; backends: readonly string[] };
  /** Which services are paused after failures. */
  breakers: () => { name: string; open: boolean }[];
  /** The embedded facilitator's fee payer, in lamports; undefined without one. */
  feePayer: () => { address: string; lamports: bigint } | undefined;
  answerStore: () => { bytes: number; budget: number };
  /** Whether each upstream is ok, as the bodies of /health report it. */
  upstreams: () => Record<string, boolean>;
  /** The age of the view of the chain, in ms; undefined before the first view. */
  chainAge: () => number | undefined;
  isReady: () => Promise<boolean>;
};

type Undecided = { payments: number; amount: bigint; since: number | undefined };

export type Metrics = Listener & {
  unpaid: (operation: string) => void;
  committed: (ms: number) => void;
  measured: (step: Step, operation: string, ms: number) => void;
  /** @returns the text format of Prometheus */
  render(): Promise<string>;
  contentType: string;
  /** The operations as this process has counted them since it started. */
  counted(): CountedOperation[];
};

/**
 * `unpaid`: calls that were answered with the price; `own`: how many of the `sold` calls the operator bought. `refusals`: payments that were refused,
 * by reason.
 */
export type CountedOperation = {
  operation: string;
  unpaid: number;
  sold: number;
  own: number;
  refusals: readonly (readonly [string, number])[];
};

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 45];
const COMMIT_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];
const LAMPORTS_PER_SOL = 1e9;

/**
 * The metrics of this process. Labels have few values: operations of the contract, configured services, and fixed words. Revenue is
 * counted in atomic units and is exact. If there are several servers, each counts its own sales; unresolved and owed payments come from the ledger.
 * @param own the operator's own addresses
 */
export function createMetrics(
  operations: readonly SoldOperation[],
  source: () => MetricsSource | undefined,
  registry = new Registry(),
  own: ReadonlySet<string> = new Set(),
): Metrics {
  collectDefaultMetrics({ register: registry });
  const counts = countsIn(registry, operations);
  const sales = saleCountsIn(registry, operations, own);
  const [times, gauges] = [timesIn(registry), gaugesIn(registry)];

  function hear(event: Event): void {
    switch (event.kind) {
      case 'sold':
        return sales.add(event);
      case 'answered':
        return countAnswer(counts, event);
      case 'order':
        return counts.orders.add(event.operation, event.change);
      case 'throttled':
        return counts.throttled.add();
      case 'given':
        return counts.given.add(event.operation, String(event.status));
      case 'released':
        return counts.released.add(event.operation);
      case 'false settlement':
        return counts.falseSettlements.add(event.operation);
      case 'facilitator': {
        const { facilitator, request, result } = event;
        if (result === 'failed') counts.facilitatorErrors.add(facilitator, request);
        else counts.facilitatorErrors.begin(facilitator, request);
        return times.facilitator.add(event.ms, facilitator, request);
      }
      case 'upstream':
        if (event.result === 'failed') counts.upstreamErrors.add(event.upstream);
        return times.upstream.add(event.ms, event.upstream, event.result);
      case 'listing':
        return counts.listings.add(event.facilitator, event.operation, event.transport, event.status);
      case 'ledger':
        return counts.ledgerErrors.add();
      case 'decided':
        return undefined;
    }
  }

  return {
    hear,
    contentType: registry.contentType,
    committed: ms => times.commit.add(ms),
    unpaid: operation => counts.challenges.add(operation),
    measured: (step, operation, ms) => times.step.add(ms, step, operation),
    counted: () => countedIn(counts, sales, operations),
    render: async () => {
      const read = source();
      if (read) {
        beginErrors(counts, read);
        await readInto(gauges, read);
      }
      return registry.metrics();
    },
  };
}

type Counts = ReturnType<typeof countsIn>;
type Gauges = ReturnType<typeof gaugesIn>;

function countedIn(
  counts: Counts,
  sales: SaleCounts,
  operations: readonly SoldOperation[],
): CountedOperation[] {
  const [unpaid, sold, own] = [counts.challenges, sales.sales, sales.own].map(
    each => new Map(each.entries().map(([[operation = ''], count]) => [operation, count])),
  );
  const refusals = counts.refusals.entries();
  return operations.map(({ id }) => ({
    operation: id,
    unpaid: unpaid?.get(id) ?? 0,
    sold: sold?.get(id) ?? 0,
    own: own?.get(id) ?? 0,
    refusals: refusals.flatMap(([[operation, reason = ''], count]) =>
      operation === id ? [[reason, count] as const] : [],
    ),
  }));
}

function countAnswer(counts: Counts, { operation, transport, status, error = '' }: Answered): void {
  counts.answers.add(operation, transport, String(status));
  if (status === 402) counts.refusals.add(operation, reasonOf(error));
}

/** Creates the error series with 0, because Prometheus can't compute a rate without a value before the first error. */
function beginErrors({ facilitatorErrors, upstreamErrors }: Counts, { services }: MetricsSource): void {
  const { facilitators, backends } = services();
  for (const name of facilitators)
    for (const request of ['supported', 'verify', 'settle']) facilitatorErrors.begin(name, request);
  for (const name of backends) upstreamErrors.begin(name);
}

function countsIn(registry: Registry, operations: readonly SoldOperation[]) {
  const count = (name: string, help: string, labelNames: string[] = []): Count =>
    countIn(registry, { name: `coinslot_${name}`, help, labelNames });
  const counts = {
    challenges: count('challenges_total', 'Unpaid calls that were answered with 402, by operation.', [
      'operation',
    ]),
    answers: count('answers_total', 'Answers to requests with a payment, including resent ones.', [
      'operation',
      'transport',
      'status',
    ]),
    refusals: count('refusals_total', 'Payments that were refused with 402, by reason.', [
      'operation',
      'reason',
    ]),
    orders: count(
      'orders_total',
      'Changes to orders that are paid up front: paid, delivered, failed (an attempt failed), given up (the last attempt failed).',
      ['operation', 'change'],
    ),
    released: count('released_total', 'Unresolved payments that the chain has shown were not charged.', [
      'operation',
    ]),
    falseSettlements: count(
      'false_settlements_total',
      'Calls that a facilitator reported as paid, although the chain shows that they were not.',
      ['operation'],
    ),
    throttled: count(
      'throttled_total',
      'Calls that were turned away: their address was over its limit, or too many calls from their wallet or address, or to their backend, had ended without a sale.',
    ),
    given: count(
      'free_calls_total',
      'Free calls, by the status of their answer: calls granted by x-free, and calls of operations with x-free-proxy, including refused ones.',
      ['operation', 'status'],
    ),
    facilitatorErrors: count(
      'facilitator_errors_total',
      'Requests to a facilitator (supported, verify, sign, settle) without a usable answer.',
      ['facilitator', 'request'],
    ),
    listings: count(
      'listings_total',
      'Answers from facilitators’ directories about an operation: success, processing, rejected, refused.',
      ['facilitator', 'operation', 'transport', 'status'],
    ),
    upstreamErrors: count('upstream_errors_total', 'Calls in which a backend failed.', ['upstream']),
    ledgerErrors: count('ledger_errors_total', 'Operations that the database failed to carry out.'),
  };
  for (const { id, flow } of operations) {
    for (const each of [counts.challenges, counts.falseSettlements]) each.begin(id);
    if (flow !== 'upfront') continue;
    for (const change of ['paid', 'delivered', 'failed', 'given up']) counts.orders.begin(id, change);
  }
  return counts;
}

function timesIn(registry: Registry) {
  const durations = (name: string, help: string, labelNames: string[], bounds = SECONDS): Durations =>
    durationsIn(registry, { name: `coinslot_${name}`, help, labelNames }, bounds);
  return {
    step: durations('step_seconds', 'How long the steps of paid calls took: claim, verify, work, settle.', [
      'step',
      'operation',
    ]),
    facilitator: durations(
      'facilitator_request_seconds',
      'How long facilitators took to answer: supported, verify, sign, settle.',
      ['facilitator', 'request'],
    ),
    upstream: durations('upstream_seconds', 'How long backends worked on calls.', ['upstream', 'result']),
    commit: durations(
      'ledger_commit_seconds',
      'How long commits of the ledger took; the count is the number of requested commits.',
      [],
      COMMIT_SECONDS,
    ),
  };
}

function gaugesIn(registry: Registry) {
  const gauge = <T extends string>(name: string, help: string, labelNames: T[]): Gauge<T> =>
    new Gauge({ name: `coinslot_${name}`, help, labelNames, registers: [registry] });
  return {
    payments: gauge(
      'undecided_payments',
      'Payments that are unresolved or owed, in the whole ledger, from any server.',
      ['state'],
    ),
    usdc: gauge('undecided_usdc', 'USDC in payments that are unresolved or owed.', ['state']),
    oldest: gauge('undecided_oldest_seconds', 'Age of the oldest payment that is unresolved or owed.', [
      'state',
    ]),
    breaker: gauge(
      'breaker_open',
      '1 while calls to a facilitator, or to the host of an operation with x-upstream, are paused after failures.',
      ['service'],
    ),
    feePayer: gauge('fee_payer_sol', 'SOL of the fee payer; only with the embedded facilitator.', [
      'address',
    ]),
    stored: gauge('answer_store_bytes', 'Bytes of stored answers.', []),
    budget: gauge(
      'answer_store_budget_bytes',
      'Bytes of stored answers at which nothing new is sold (ANSWER_STORE_MB).',
      [],
    ),
    upstream: gauge('upstream_ok', '1 if /health reports the backend as ok, otherwise 0.', ['upstream']),
    chainAge: gauge(
      'chain_view_age_seconds',
      'Age of the server’s view of the chain. Above 40 s, nothing is sold.',
      [],
    ),
    ready: gauge('ready', '1 while calls can be sold, as in /ready.', []),
  };
}

/** Metrics without a current value are left out, so that no old value looks current. */
async function readInto(gauges: Gauges, source: MetricsSource): Promise<void> {
  for (const gauge of Object.values(gauges)) gauge.reset();
  const now = Date.now();
  const undecided = await source.undecided().catch(() => undefined);
  for (const [state, word] of [
    ['settling', 'unresolved'],
    ['owed', 'owed'],
  ] as const) {
    const found = undecided?.[state];
    if (!found) continue;
    gauges.payments.set({ state: word }, found.payments);
    gauges.usdc.set({ state: word }, Number(found.amount) / 1e6);
    gauges.oldest.set({ state: word }, found.since === undefined ? 0 : Math.max(0, now - found.since) / 1000);
  }
  for (const { name: service, open } of source.breakers()) gauges.breaker.set({ service }, open ? 1 : 0);
  const feePayer = source.feePayer();
  if (feePayer)
    gauges.feePayer.set({ address: feePayer.address }, Number(feePayer.lamports) / LAMPORTS_PER_SOL);
  const { bytes, budget } = source.answerStore();
  gauges.stored.set(bytes);
  gauges.budget.set(budget);
  for (const [upstream, ok] of Object.entries(source.upstreams()))
    gauges.upstream.set({ upstream }, ok ? 1 : 0);
  const age = source.chainAge();
  gauges.chainAge.set(age === undefined ? Infinity : age / 1000);
  gauges.ready.set((await source.isReady()) ? 1 : 0);
}
