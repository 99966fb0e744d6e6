import { discoveryOf, indexOf, servedContract, type Selling } from '../../documents/discovery.js';
import { NETWORKS } from '../../rails/solana/networks.js';
import type { Contract } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import { follow, isObject } from '../../contract/references.js';
import { serviceOf } from '../../methods/x402/service.js';
import type { Methods } from '../../methods/methods.js';
import { shopMethods } from '../../methods/shop-methods.js';
import type { Terms } from '../../methods/x402/requirements.js';

/** The path at which a mock answers the RPC requests that a buyer makes before it signs. No contract may use it (see `isMockPath`). */
export const MOCK_RPC_PATH = '/.mock/rpc';

const RETRY_AFTER_SECONDS = 5;
const ETAG = '"an-etag-of-the-mock"';
const EXAMPLE_URL = 'https://shop.example';

type Header = Json & { example?: unknown };
type Response = { headers?: Record<string, Header>; content?: Record<string, Json> };
type Described = { operationId: string; responses: Record<string, Json> };
type Paths = { paths: Record<string, Record<string, unknown>> };

/** How a mock sells. */
export type MockSelling = { terms: Terms; methods: Methods };

/** A mock asks for payment to an address without a known key, on a test network. */
export function mockSelling(contract: Contract, publicUrl: string): MockSelling {
  const { caip2: network, v1: v1Network, usdcMint: asset } = NETWORKS.devnet;
  const payTo = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';
  const service = serviceOf(contract, publicUrl);
  const terms = { network, v1Network, asset, payTo, publicUrl, service };
  return { terms, methods: shopMethods(terms) };
}

/**
 * The contract with an example for every answer and header, so that Prism answers like the server. The free documents are rendered by
 * the code that the server runs. The result names only the mock's network and the mock's address.
 */
export function mockDocument(contract: Contract, { terms, methods }: MockSelling): Json {
  const selling = { publicUrl: terms.publicUrl, methods };
  const document = servedContract(contract, selling, terms.publicUrl) as Json & Paths;
  const examples = freeExamples(contract, selling);
  for (const operation of operationsOf(document)) {
    for (const [status, declared] of Object.entries(operation.responses)) {
      const response = structuredClone(follow(document, declared)) as Response;
      operation.responses[status] = response;
      for (const [name, header] of Object.entries(response.headers ?? {}))
        (response.headers ?? {})[name] = withExample(document, name, header);
      const json = response.content?.['application/json'];
      const example = examples[operation.operationId];
      if (json && example && status === '200') json.example = example;
    }
  }
  return onOneNetwork(document, terms);
}

function operationsOf({ paths }: Paths): Described[] {
  return Object.values(paths)
    .flatMap(item => Object.values(item))
    .filter((each): each is Described => isObject(each) && isObject(each.responses));
}

function withExample(document: Json, name: string, header: Header): Header {
  const whole = structuredClone(follow(document, header)) as Header;
  const example = whole.example ?? { ETag: ETAG, 'Retry-After': RETRY_AFTER_SECONDS }[name];
  return example === undefined ? whole : { ...whole, example };
}

/** Replaces mainnet, its USDC and the example URL, which the contract's examples name, with those of the mock. */
function onOneNetwork(document: Json, { network, asset, publicUrl }: Terms): Json {
  const text = JSON.stringify(document)
    .replaceAll(NETWORKS.mainnet.caip2, network)
    .replaceAll(NETWORKS.mainnet.usdcMint, asset)
    .replaceAll(EXAMPLE_URL, publicUrl);
  return JSON.parse(text) as Json;
}

/** The documents and health reports that the server itself builds. Other free operations return the contract's examples. */
function freeExamples(contract: Contract, selling: Selling): Record<string, Json> {
  const listing = (ids: string[]): Json =>
    discoveryOf(
      contract.paid.filter(({ id }) => ids.includes(id)),
      selling,
    );
  const health = (names: string[]): Json => ({
    status: 'ok',
    version: (contract.document.info as Json).version,
    uptimeSeconds: 3600,
    upstreams: Object.fromEntries(names.map(name => [name, { status: 'ok', latencyMs: 3 }])),
  });
  const sections = contract.free.flatMap(({ id, discovery, health: ids }): [string, Json][] => {
    if (discovery) return [[id, listing(discovery)]];
    return ids ? [[id, health(ids)]] : [];
  });
  return {
    getIndex: indexOf(contract, selling.publicUrl),
    getDiscovery: discoveryOf(contract.paid, selling),
    getOpenapi: asMock(servedContract(contract, selling, selling.publicUrl), selling),
    getHealth: health(['facilitator', 'ledger']),
    ...Object.fromEntries(sections),
  };
}

/** Adds to `info` that this is a mock, and the URL of the RPC server for its buyers. `coinslot buy` reads both. */
function asMock(document: Json, { publicUrl }: Selling): Json {
  return {
    ...document,
    info: { ...(document.info as Json), 'x-mock': { rpcUrl: publicUrl + MOCK_RPC_PATH } },
  };
}
