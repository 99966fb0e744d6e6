import type { Log } from '../net/log.js';
import type { Config } from '../config.js';
import type { Endpoints } from '../endpoints/endpoints.js';
import type { Terms } from '../methods/x402/requirements.js';
import type { Methods } from '../methods/methods.js';
import type { Observation } from '../observe/observation.js';
import type { HttpOperations } from '../upstreams/http-operations/http-operations.js';
import type { Shop } from '../shop/load-shop.js';

export type Disposer = () => Promise<unknown>;

/** What all other parts of the server share. */
export type Base = Shop & {
  config: Config;
  /** The entries of the operations, by operationId. */
  settings: Readonly<Record<string, object>>;
  /** Operations sold through `x-upstream`. */
  apis: HttpOperations;
  endpoints: Endpoints;
  terms: Terms;
  methods: Methods;
  log: Log;
  observation: Observation;
  /** Aborts when the server is asked to stop; it keeps selling until load balancers have noticed. */
  leaving: AbortSignal;
  /** Aborts when the server shuts down and accepts no new payments. */
  closing: AbortSignal;
  /** Functions called in reverse order when the server closes. */
  disposers: Disposer[];
};

export function isSandbox({ network }: Config): boolean {
  return network.name === 'sandbox';
}
