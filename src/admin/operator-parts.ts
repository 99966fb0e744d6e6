import type { Middleware } from 'koa';
import type { Config } from '../config.js';
import type { Contract } from '../contract/contract.js';
import { productName } from '../contract/product-name.js';
import type { Health } from '../http/health.js';
import type { Replica } from '../ledger/replica.js';
import type { Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { Metrics } from '../observe/metrics.js';
import type { FacilitatorTrust } from '../facilitators/facilitator-trust.js';
import type { FacilitatorState, Facilitators } from '../facilitators/facilitators.js';
import type { ListingVerdicts } from '../facilitators/listing-verdicts.js';
import type { CanaryRuns } from '../operator/canary-runs.js';
import type { OrderWorker } from '../sale/order-worker.js';
import type { HttpOperations } from '../upstreams/http-operations/http-operations.js';
import type { AdminPlace } from './admin-listener.js';
import type { Sections } from './order-tasks.js';
import { createOperatorPage } from './operator-page.js';
import { explorerOf } from '../rails/solana/explorer.js';

type Parts = {
  config: Pick<Config, 'network' | 'ownWallets' | 'explorer'>;
  observation: { metrics: Pick<Metrics, 'counted'> };
  contract: Pick<Contract, 'document'>;
  endpoints: { rpcUrls: readonly string[] };
  terms: { payTo: string; publicUrl: string };
  ledger: Ledger;
  replica?: Replica | undefined;
  facilitator: Pick<Facilitators, 'states' | 'names'>;
  trust: Pick<FacilitatorTrust, 'isLiar'>;
  verdicts: Pick<ListingVerdicts, 'read'>;
  apis: Pick<HttpOperations, 'breakers'>;
  health: Pick<Health, 'report'>;
  canary: Pick<CanaryRuns, 'newest'>;
  orders: Pick<OrderWorker, 'retry'>;
  sections: Sections;
  log: Log;
  /** Aborts when the server shuts down. */
  closing: AbortSignal;
};

/** The operator page of a server. */
export function operatorPageOf(parts: Parts, { token, url }: AdminPlace): Middleware {
  const {
    config,
    contract,
    endpoints,
    terms,
    ledger,
    replica,
    facilitator,
    trust,
    verdicts,
    apis,
    health,
    orders,
    log,
    sections,
  } = parts;
  const since = Date.now();
  return createOperatorPage({
    token,
    url,
    payTo: terms.payTo,
    publicUrl: terms.publicUrl,
    ledger,
    reports: replica?.reports,
    replica: replica && (() => replica.seen),
    sections,
    shop: productName(contract),
    network: config.network.name,
    health: () => health.report(),
    facilitators: () =>
      facilitator.states().map(state => (trust.isLiar(state.name) ? distrusted(state) : state)),
    listings: () => verdicts.read(facilitator.names),
    counted: () => ({ since, operations: parts.observation.metrics.counted() }),
    canary: () => parts.canary.newest(),
    ownWallets: config.ownWallets,
    breakers: () => apis.breakers(),
    refund: async (id, tx) => {
      // Loaded when needed, because only a few servers need the chain's libraries for this.
      const { recordRefund } = await import('../operator/record-refund.js');
      await recordRefund(ledger, id, tx, () => [...endpoints.rpcUrls]);
    },
    askRefund: async (id, asked) => (await import('../operator/ask-refund.js')).askRefund(ledger, id, asked),
    cancelRefund: async id => (await import('../operator/ask-refund.js')).cancelRefund(ledger, id),
    refundLink: async refund =>
      (await import('../operator/ask-refund.js')).linkOf(refund, await ledger.identity()),
    explorer: explorerOf(config.explorer, config.network.name),
    retry: payment => orders.retry(payment),
    log,
    signal: parts.closing,
  });
}

/** The state of a facilitator that answers, but is not trusted. */
function distrusted(state: FacilitatorState): FacilitatorState {
  const { status, detail } = state;
  return {
    ...state,
    status: status === 'ok' ? 'degraded' : status,
    detail: `it has reported a settlement that is not on chain, so all of its settlements are checked before the answer (${detail})`,
  };
}
