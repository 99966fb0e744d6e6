import type { Health } from '../http/health.js';
import type { Ledger } from '../ledger/store.js';
import { withDeadline } from '../net/deadline.js';
import type { MetricsSource } from '../observe/metrics.js';
import type { Observation } from '../observe/observation.js';
import { readinessOf, type Readiness } from '../observe/readiness.js';
import type { Facilitators } from '../facilitators/facilitators.js';
import type { FeePayerGuard } from '../facilitators/fee-payer-guard.js';
import type { SolanaHints } from '../rails/solana/solana-hints.js';
import type { HttpOperations } from '../upstreams/http-operations/http-operations.js';
import type { MachineRoute } from './admin-server.js';

type MachineParts = {
  observation: Pick<Observation, 'metrics' | 'readFrom'>;
  ledger: Pick<Ledger, 'check' | 'undecided' | 'answerBytes'>;
  hints: Pick<SolanaHints, 'view' | 'viewAge'>;
  facilitator: Pick<Facilitators, 'choice' | 'states' | 'names'>;
  backends: readonly string[];
  apis: Pick<HttpOperations, 'breakers'>;
  health: Pick<Health, 'report'>;
  /** The balance of the embedded facilitator's fee payer. */
  guard: FeePayerGuard | undefined;
  config: { answerBudgetBytes: number };
  leaving: AbortSignal;
  readyAsked: () => void;
};

/** How long writing to the ledger may take, in ms. */
const LEDGER_TRY_MS = 2_000;
const NEVER = new AbortController().signal;

/** `/metrics` in the text format of Prometheus, and `/ready` for load balancers: 200, or 503 while nothing can be sold. */
export function machineRoutes(parts: MachineParts): MachineRoute[] {
  const { metrics, readFrom } = parts.observation;
  const readiness = readinessIn(parts);
  readFrom(sourceIn(parts, readiness));
  return [
    {
      path: '/metrics',
      withoutToken: 'private',
      serve: async ctx => {
        const text = await metrics.render();
        ctx.set('Content-Type', metrics.contentType);
        ctx.body = text;
      },
    },
    {
      path: '/ready',
      withoutToken: 'status',
      serve: async ctx => {
        parts.readyAsked();
        const found = await readiness();
        ctx.status = found.ready ? 200 : 503;
        ctx.body = found;
      },
    },
  ];
}

function readinessIn({ leaving, ledger, hints, facilitator }: MachineParts): () => Promise<Readiness> {
  const found = readinessOf([
    async () => {
      await withDeadline(LEDGER_TRY_MS, NEVER, () => ledger.check());
      return undefined;
    },
    () => (hints.view() ? undefined : 'no Solana RPC server has given a usable answer for 40 s'),
    () => (facilitator.choice === undefined ? 'no facilitator answers' : undefined),
  ]);
  // A shutdown is not cached for a second like the other findings, because load balancers must see it at once.
  return async () => (leaving.aborted ? { ready: false, reasons: ['the server is shutting down'] } : found());
}

function sourceIn(parts: MachineParts, readiness: () => Promise<Readiness>): MetricsSource {
  const { ledger, hints, facilitator, backends, apis, health, guard, config } = parts;
  return {
    services: () => ({ facilitators: facilitator.names, backends }),
    undecided: () => ledger.undecided(),
    breakers: () => [
      ...facilitator.states().map(({ name, status }) => ({ name, open: status === 'down' })),
      ...apis.breakers(),
    ],
    feePayer: () => {
      const lamports = guard?.lamports;
      return guard && lamports !== undefined ? { address: guard.address, lamports } : undefined;
    },
    answerStore: () => ({ bytes: ledger.answerBytes(), budget: config.answerBudgetBytes }),
    upstreams: () => {
      const { upstreams } = health.report();
      return Object.fromEntries(
        Object.entries(upstreams).map(([name, { status }]) => [name, status === 'ok']),
      );
    },
    chainAge: () => hints.viewAge(),
    isReady: async () => (await readiness()).ready,
  };
}
