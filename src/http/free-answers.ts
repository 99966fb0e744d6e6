import type { Sections } from '../contract/operation.js';
import type { BuiltBackends } from '../upstreams/backends.js';
import type { Contract } from '../contract/contract.js';
import { documentOf, type StaticDocument, type StaticDocuments } from './documents.js';
import type { Health, HealthReport } from './health.js';
import type { OperationId } from '../contract/operation.js';
import { discoveryOf, indexOf, servedContract } from '../payments/discovery.js';
import type { Terms } from '../payments/requirements.js';

/** The answers that are built for each request. */
export type LiveAnswers = Partial<Record<OperationId, () => Promise<HealthReport | object>>>;

/** The answers of free operations: some are constant while the server runs, others are built for each request. */
export type FreeAnswers = { documents: StaticDocuments; live: LiveAnswers };

export type FreeParts = {
  contract: Contract;
  terms: Terms;
  /** The URL of the human site. */
  siteUrl: string;
  health: Health;
  backends: BuiltBackends;
  sections: Sections;
};

/** Builds the answers of the free operations. */
export function freeAnswers(parts: FreeParts): FreeAnswers {
  const { contract, terms, siteUrl, health, backends, sections } = parts;
  const tagged = (tags: readonly string[]) =>
    documentOf(
      discoveryOf(
        contract.paid.filter(operation => tags.includes(operation.tag)),
        terms,
      ),
    );
  const documents: Partial<Record<OperationId, StaticDocument>> = {
    getIndex: documentOf(indexOf(contract, siteUrl)),
    getDiscovery: documentOf(discoveryOf(contract.paid, terms)),
    ...mapped(sections.discovery, tagged),
    getOpenapi: documentOf(servedContract(contract, terms, siteUrl)),
  };
  return {
    documents: byPath(contract, documents),
    live: {
      getHealth: async () => health.report(),
      ...mapped(sections.health, names => async () => health.report(names)),
      listVoices: () => backends.speaker.voices(),
    },
  };
}

function mapped<A, B>(
  entries: Partial<Record<OperationId, A>>,
  map: (value: A) => B,
): Partial<Record<OperationId, B>> {
  return Object.fromEntries(Object.entries(entries).map(([id, value]) => [id, map(value)]));
}

function byPath(
  { free }: Contract,
  documents: Partial<Record<OperationId, StaticDocument>>,
): StaticDocuments {
  return new Map(
    free.flatMap(({ id, path }) => {
      const document = documents[id];
      return document ? [[path, document] as const] : [];
    }),
  );
}
