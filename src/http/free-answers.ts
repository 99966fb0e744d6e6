import type { Contract, FreeOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import type { Serving, ServingFree } from '../contract/operation.js';
import type { OperationHandler } from '../contract/routes.js';
import { agentFiles } from './agent-files.js';
import { documentOf, type StaticDocument, type StaticDocuments } from './documents.js';
import { discoveryOf, indexOf, servedContract, type Selling } from '../documents/discovery.js';
import type { Health } from './health.js';

/** The functions that build an answer for each request, by operationId. */
type LiveAnswers = Record<string, OperationHandler>;

/** The answers of free operations: some are constant while the server runs, others are built for each request. */
export type FreeAnswers = { documents: StaticDocuments; live: LiveAnswers };

export type FreeParts = {
  contract: Contract;
  selling: Selling;
  /** The URL of the site for human visitors. */
  siteUrl: string;
  health: Health;
  /** The paid operations, whose backends the health check reports on. */
  handlers: Serving;
  /** The free operations that the shop's own handlers serve. */
  free: ServingFree;
  /** The paths of operations' pages, which robots.txt closes to crawlers. */
  pages: readonly { path: string }[];
  /** The headers that a page of another origin may read. */
  exposed: string;
};

/** Builds the answers of the free operations. */
export function freeAnswers(parts: FreeParts): FreeAnswers {
  const { contract, selling, siteUrl, health, handlers, free, exposed, pages } = parts;
  const fixed = (value: Json): StaticDocument => documentOf(value, exposed);
  const sections = (key: 'discovery' | 'health'): [string, string[]][] =>
    contract.free.flatMap((operation: FreeOperation) => {
      const ids = operation[key];
      return ids ? [[operation.id, ids] as [string, string[]]] : [];
    });
  const listing = (ids: string[]): StaticDocument =>
    fixed(
      discoveryOf(
        contract.paid.filter(({ id }) => ids.includes(id)),
        selling,
      ),
    );
  const documents: Partial<Record<string, StaticDocument>> = {
    // Browsers get a page at this path.
    getIndex: documentOf(indexOf(contract, siteUrl), exposed, { Vary: 'Accept' }),
    getDiscovery: fixed(discoveryOf(contract.paid, selling)),
    getOpenapi: fixed(servedContract(contract, selling, siteUrl)),
    ...mapped(sections('discovery'), listing),
  };
  const live: LiveAnswers = {
    getHealth: answering(async () => health.report()),
    ...mapped(sections('health'), ids => {
      const backends = new Set(ids.flatMap(id => handlers[id]?.backend ?? []));
      return answering(async () => health.report([...backends]));
    }),
    ...mapped(Object.entries(free), operation => answering(() => operation.call())),
  };
  return {
    documents: new Map([...agentFiles(contract, selling, exposed, pages), ...declared(contract, documents)]),
    live: Object.fromEntries(declared(contract, live)),
  };
}

function answering(build: () => Promise<unknown>): OperationHandler {
  return { call: async () => ({ status: 200, body: await build() }) };
}

function mapped<A, B>(entries: [string, A][], map: (value: A) => B): Record<string, B> {
  return Object.fromEntries(entries.map(([id, value]) => [id, map(value)]));
}

/**
 * Keeps only the answers of operations in the contract, because a shop need not have a health check or an
 * index.
 */
function declared<T>({ free }: Contract, answers: Partial<Record<string, T>>): [string, T][] {
  return free.flatMap(({ id }): [string, T][] => {
    const answer = answers[id];
    return answer ? [[id, answer]] : [];
  });
}
