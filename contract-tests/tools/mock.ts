import type { Json } from '../../src/contract/json.js';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadContract, type Contract, type PricedOperation } from '../../src/contract/contract.js';
import { discoveryOf, indexOf, servedContract } from '../../src/payments/discovery.js';
import type { Terms } from '../../src/payments/requirements.js';
import { receiptHeader } from '../../src/payments/wire.js';

/**
 * Writes generated/openapi.mock.json: the contract with an example for every answer and header, so that a mock server says
 * what ours would. Receipts and free documents are rendered by the code that the server runs, which gives the 402s theirs.
 */

const ROOT = new URL('../../../', import.meta.url);
export const MOCK_FILE = new URL('generated/openapi.mock.json', ROOT);

/** Nobody's addresses, on the chain that costs nobody money. */
const TERMS: Terms = {
  network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  v1Network: 'solana-devnet',
  asset: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  payTo: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4',
  publicUrl: 'http://127.0.0.1:4010',
};
const RECEIPT = {
  success: true,
  payer: 'CKPKJWNdJEqa81x7CkZ14BVPiY6y16Sxs7owznqtWYp5',
  transaction: '3AsdoALgZFuq2oUVWrDYhg2pNeaLJKPLf8hU2mQ6U8qJxeJ6hsrPVpMn9ma39DtfYCrDQSvngWRP8NnTpEhezJpE',
};
const RETRY_AFTER_SECONDS = 5;
const ETAG = '"an-etag-of-the-mock"';

type Header = Json & { example?: unknown };
type Response = { headers?: Record<string, Header>; content?: Record<string, Json> };

/** The text of generated/openapi.mock.json for a contract. */
export function renderMock(contract: Contract): string {
  const document = servedContract(contract, TERMS, TERMS.publicUrl) as {
    paths: Record<string, Record<string, { operationId: string; responses: Record<string, Json> }>>;
  };
  const examples = freeExamples(contract);
  for (const item of Object.values(document.paths)) {
    for (const operation of Object.values(item)) {
      const priced = contract.paid.find(({ id }) => id === operation.operationId);
      for (const status of Object.keys(operation.responses)) {
        const response = inline(document, operation.responses[status] ?? {}) as Response;
        operation.responses[status] = response;
        for (const [name, header] of Object.entries(response.headers ?? {})) {
          (response.headers ?? {})[name] = withHeaderExample(document, name, header, priced, status);
        }
        const json = response.content?.['application/json'];
        const example = examples[operation.operationId];
        if (json && example && status === '200') json['example'] = example;
      }
    }
  }
  return `${JSON.stringify(document, null, 1)}\n`;
}

/** A copy of what a reference of the document leads to; shared responses carry the examples of one operation each. */
function inline(document: Json, value: Json): Json {
  const reference = value['$ref'];
  if (typeof reference !== 'string') return value;
  const parts = reference.slice(2).split('/');
  return structuredClone(parts.reduce<unknown>((node, part) => (node as Json)[part], document)) as Json;
}

function withHeaderExample(
  document: Json,
  name: string,
  header: Header,
  priced: PricedOperation | undefined,
  status: string,
): Header {
  const whole = inline(document, header);
  const example = whole['example'] ?? headerExample(name, priced, status);
  return example === undefined ? whole : { ...whole, example };
}

function headerExample(name: string, priced: PricedOperation | undefined, status: string): unknown {
  if (name === 'ETag') return ETAG;
  if (name === 'Retry-After') return RETRY_AFTER_SECONDS;
  if (!priced) return undefined;
  const version = name === 'PAYMENT-RESPONSE' ? 2 : 1;
  const receipt = {
    ...RECEIPT,
    ...(status === '200' ? {} : { success: false, transaction: '', errorReason: 'settle_failed' }),
    network: version === 2 ? TERMS.network : TERMS.v1Network,
  };
  return receiptHeader(version, receipt)[name];
}

/** The documents and health reports that the server makes itself; other free operations have the example of the contract. */
function freeExamples(contract: Contract): Record<string, Json> {
  const listing = (ids: string[]): Json =>
    discoveryOf(
      contract.paid.filter(({ id }) => ids.includes(id)),
      TERMS,
    );
  const health = (names: string[]): Json => ({
    status: 'ok',
    version: (contract.document['info'] as Json)['version'],
    uptimeSeconds: 3600,
    upstreams: Object.fromEntries(names.map(name => [name, { status: 'ok', latencyMs: 3 }])),
  });
  const sections = contract.free.map(({ id, discovery, health: ids }) => {
    if (discovery) return [id, listing(discovery)];
    return [id, ids && health(ids)];
  });
  return {
    getIndex: indexOf(contract, TERMS.publicUrl),
    getDiscovery: discoveryOf(contract.paid, TERMS),
    getOpenapi: servedContract(contract, TERMS, TERMS.publicUrl),
    getHealth: health(['facilitator', 'ledger']),
    ...(Object.fromEntries(sections.filter(([, example]) => example)) as Record<string, Json>),
  };
}

/** The committed file, to be compared with a fresh rendering. */
export function committedMock(): string {
  return readFileSync(MOCK_FILE, 'utf8');
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  writeFileSync(MOCK_FILE, renderMock(loadContract(new URL('openapi.yaml', ROOT))));
}
