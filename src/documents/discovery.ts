import type { Json } from '../contract/json.js';
import type { Contract, FreeOperation, PricedOperation } from '../contract/contract.js';
import { follow, isObject, objectOf } from '../contract/references.js';
import { MCP_PATH } from '../contract/reserved-names.js';
import { callShape } from '../methods/x402/describe-call.js';
import { exampleChallenge } from '../methods/x402/challenge.js';
import { resourceUrl, type Terms } from '../methods/x402/requirements.js';
import { SCHEMATHESIS_PATH } from './schemathesis-config.js';

const INTRO =
  'A call without payment returns a 402 descriptor: the challenge, in the ' +
  'JSON body and base64-encoded in the PAYMENT-REQUIRED header, with price, asset, network and payTo. Pay with the x402 scheme ' +
  'exact in USDC on Solana: sign the payment with an x402 client and repeat the same call with it in the PAYMENT-SIGNATURE ' +
  '(v2) or X-PAYMENT (v1) header. Clients that know only x402 v1 add ?x402Version=1 to the URL. The same payment sent again with the same call returns the same answer and is not charged again.';

/** The discovery document of the given operations (`getDiscovery` in openapi.yaml). */
export function discoveryOf(operations: PricedOperation[], terms: Terms): Json {
  return {
    version: 1,
    resources: operations.map(operation => resourceUrl(operation, terms)),
    instructions: [
      `${howToCall(operations)} ${INTRO} Agents that speak MCP find the same operations as tools at ${terms.publicUrl}${MCP_PATH}.`,
      ...operations.map(sentenceOf),
    ].join('\n'),
  };
}

function howToCall(operations: PricedOperation[]): string {
  return operations.every(({ method, request }) => method === 'POST' && request)
    ? 'Each resource is called with POST and a JSON body.'
    : 'Each resource is called with the method, parameters and JSON body listed below.';
}

function sentenceOf(operation: PricedOperation): string {
  const { price, summary, flow, answers } = operation;
  const [{ kind, mimeType }] = answers;
  const answer = kind === 'json' ? '' : ` The answer is ${mimeType}.`;
  const upfront =
    flow === 'upfront' ? ' Paid before the work; send the same payment again to pick the answer up.' : '';
  return `${callShape(operation)} costs ${price.amount} USDC. ${summary}.${answer}${upfront}`;
}

type Response = Json & { headers?: Record<string, Json>; content?: Record<string, Json> };

/**
 * The OpenAPI document as served: the contract with this server's address, `x-payment-info`, guidance for crawlers, and an example
 * 402 for each paid operation that a client of a mock server can pay.
 */
export function servedContract(contract: Contract, terms: Terms, siteUrl: string): Json {
  const document = structuredClone(contract.document) as {
    info: Json & { contact?: Json };
    servers: Json[];
    paths: Record<string, Record<string, Json>>;
  };
  document.servers = [{ url: terms.publicUrl }];
  document.info.contact = { ...document.info.contact, url: siteUrl };
  document.info['x-guidance'] = discoveryOf(contract.paid, terms).instructions;
  document.info['x-schemathesis'] = terms.publicUrl + SCHEMATHESIS_PATH;
  for (const [path, example] of freeExamples(contract, terms, siteUrl)) showExample(document, path, example);
  for (const operation of contract.paid) {
    const { mode, currency, amount } = operation.price;
    const described = document.paths[operation.path]?.[operation.method.toLowerCase()];
    if (!described) continue;
    // How the seller gets the answer is no business of the buyer.
    delete described['x-upstream'];
    described['x-payment-info'] = { price: { mode, currency, amount }, protocols: [{ x402: {} }] };
    const { description } = described;
    const text = typeof description === 'string' ? `${description.trim()} ` : '';
    described.description = `${text}${priceNote(operation)}`;
    const { request } = operation;
    if (request) showLimit(described.requestBody, request.maxBytes);
    const responses = described.responses as Record<string, Json>;
    const response = follow(document, responses['402'] ?? {}) as Response;
    responses['402'] = withChallenge(document, response, exampleChallenge(operation, terms));
  }
  return document;
}

/** Says how large a body may be, unless the contract says something about it. */
function showLimit(body: unknown, maxBytes: number): void {
  if (isObject(body) && !body.$ref) body.description ??= `JSON, at most ${maxBytes} bytes.`;
}

/** What this server answers at the paths of its own documents. */
function freeExamples(contract: Contract, terms: Terms, siteUrl: string): [path: string, example: Json][] {
  return contract.free.flatMap(({ id, path, discovery }): [string, Json][] => {
    if (id === 'getIndex') return [[path, indexOf(contract, siteUrl)]];
    if (id === 'getDiscovery') return [[path, discoveryOf(contract.paid, terms)]];
    if (!discovery) return [];
    return [
      [
        path,
        discoveryOf(
          contract.paid.filter(each => discovery.includes(each.id)),
          terms,
        ),
      ],
    ];
  });
}

/** Adds the example of an answer, unless the contract has one. */
function showExample(
  document: { paths: Record<string, Record<string, Json>> },
  path: string,
  example: Json,
): void {
  const answer = objectOf(objectOf(document.paths[path]?.get?.responses)['200']);
  const form = objectOf(objectOf(answer.content)['application/json']);
  if (form.schema && form.example === undefined && form.examples === undefined) form.example = example;
}

/** A copy of a 402 response with its challenge in body and header. */
function withChallenge(document: Json, response: Response, challenge: { body: Json; header: string }): Json {
  const name = 'PAYMENT-REQUIRED';
  const json = 'application/json';
  return {
    ...response,
    headers: {
      ...response.headers,
      [name]: { ...follow(document, response.headers?.[name]), example: challenge.header },
    },
    content: { ...response.content, [json]: { ...response.content?.[json], example: challenge.body } },
  };
}

/** The price as text, because renderers do not show `x-price`. */
export function priceNote({ price, flow }: PricedOperation): string {
  const when = flow === 'upfront' ? 'paid before the work' : 'charged only for an answer';
  return `Price: ${price.amount} USDC a call, ${when}, by x402 on Solana.`;
}

/** The service index (`getIndex` in openapi.yaml), with paths relative to this server. */
export function indexOf(contract: Contract, siteUrl: string): Json {
  const pathsOf = (which: (operation: FreeOperation) => boolean): string[] =>
    contract.free.filter(which).map(({ path }) => path);
  return {
    service: 'coinslot',
    endpoints: Object.fromEntries(
      contract.paid.map(({ method, path, price }) => [`${method} ${path}`, `${price.amount} USDC`]),
    ),
    discovery: pathsOf(({ id }) => id === 'getDiscovery' || id === 'getOpenapi'),
    upstreamDiscovery: pathsOf(({ id, discovery }) => discovery !== undefined && id !== 'getDiscovery'),
    mcp: MCP_PATH,
    health: pathsOf(({ id, health }) => id === 'getHealth' || health !== undefined),
    site: siteUrl,
  };
}
