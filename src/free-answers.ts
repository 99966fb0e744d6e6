import { createHash } from 'node:crypto';
import type { BuiltBackends } from './backends.js';
import type { Contract, Json } from './contract.js';
import type { Health, HealthReport } from './health.js';
import type { OperationId } from './operation.js';
import { discoveryOf, indexOf, servedContract, type StaticDocument } from './payments/discovery.js';
import type { Terms } from './payments/offer.js';

/** The free operations: those that never change while the server runs, and those made anew for each request. */
export type FreeAnswers = {
  documents: Partial<Record<OperationId, StaticDocument>>;
  live: Partial<Record<OperationId, () => Promise<HealthReport | object>>>;
};

export type FreeParts = {
  contract: Contract;
  terms: Terms;
  /** The URL of the human site. */
  siteUrl: string;
  health: Health;
  backends: BuiltBackends;
};

/** What the free operations answer. */
export function freeAnswers({ contract, terms, siteUrl, health, backends }: FreeParts): FreeAnswers {
  const tagged = (...tags: string[]) =>
    documentOf(
      discoveryOf(
        contract.paid.filter(operation => tags.includes(operation.tag)),
        terms,
      ),
    );
  return {
    documents: {
      getIndex: documentOf(indexOf(contract, siteUrl)),
      getDiscovery: documentOf(discoveryOf(contract.paid, terms)),
      getSellerDiscovery: tagged('Text', 'Solana'),
      getBrandDiscovery: tagged('Humans'),
      getTtsDiscovery: tagged('Audio'),
      getOpenapi: documentOf(servedContract(contract, terms, siteUrl)),
    },
    live: {
      getHealth: async () => health.report(),
      getBrandHealth: async () => health.report(['people']),
      getTtsHealth: async () => health.report(['speech']),
      listVoices: () => backends.speaker.voices(),
    },
  };
}

function documentOf(value: Json): StaticDocument {
  const body = Buffer.from(JSON.stringify(value));
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` };
}
