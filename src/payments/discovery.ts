import type { Json } from '../contract/json.js';
import type { Contract, PricedOperation } from '../contract/contract.js';
import { exampleChallenge } from './challenge.js';
import { resourceUrl, type Terms } from './requirements.js';

const INTRO =
  'Each resource is called with POST and a JSON body. A call without payment returns a 402 descriptor: the challenge, in the ' +
  'JSON body and base64-encoded in the PAYMENT-REQUIRED header, with price, asset, network and payTo. Pay with the x402 scheme ' +
  'exact in USDC on Solana: sign the payment with an x402 client and repeat the same call with it in the PAYMENT-SIGNATURE ' +
  '(v2) or X-PAYMENT (v1) header. The same payment sent again with the same body returns the same answer and is not charged again.';

/** The discovery document of the given operations (`getDiscovery` in openapi.yaml). */
export function discoveryOf(operations: PricedOperation[], terms: Terms): Json {
  return {
    version: 1,
    resources: operations.map(operation => resourceUrl(operation, terms)),
    instructions: [INTRO, ...operations.map(callShape)].join('\n'),
  };
}

function callShape(operation: PricedOperation): string {
  const schema = operation.requestSchema as { properties: Record<string, Json>; required?: string[] };
  const fields = Object.entries(schema.properties).map(([name, field]) => {
    const optional = schema.required?.includes(name) ? '' : '?';
    return `"${name}"${optional}: ${String(field.type)}`;
  });
  const upfront =
    operation.flow === 'upfront'
      ? ' Paid before the work; send the same payment again to pick the answer up.'
      : '';
  return `POST ${operation.path} {${fields.join(', ')}} costs ${operation.price.amount} USDC. ${operation.summary}.${upfront}`;
}

type Response = Json & { headers: Record<string, Json>; content: Record<string, Json> };

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
  for (const operation of contract.paid) {
    const { mode, currency, amount } = operation.price;
    const post = document.paths[operation.path]?.post;
    if (!post) continue;
    post['x-payment-info'] = { price: { mode, currency, amount }, protocols: [{ x402: {} }] };
    post.description = `${String(post.description).trim()} ${priceNote(operation)}`;
    const responses = post.responses as Record<string, Json>;
    const response = follow(document, responses['402'] ?? {}) as Response;
    responses['402'] = withChallenge(document, response, exampleChallenge(operation, terms));
  }
  return document;
}

/** Resolves a `$ref` within the document; any other value is returned as it is. */
function follow(document: Json, value: Json): Json {
  const reference = value.$ref;
  if (typeof reference !== 'string') return value;
  const keys = reference.slice('#/'.length).split('/');
  return keys.reduce<unknown>((node, key) => (node as Json)[key], document) as Json;
}

/** A copy of a 402 response with its challenge in body and header. */
function withChallenge(document: Json, response: Response, challenge: { body: Json; header: string }): Json {
  const name = 'PAYMENT-REQUIRED';
  const json = 'application/json';
  return {
    ...response,
    headers: {
      ...response.headers,
      [name]: { ...follow(document, response.headers[name] ?? {}), example: challenge.header },
    },
    content: { ...response.content, [json]: { ...response.content[json], example: challenge.body } },
  };
}

/** The price as text, because renderers do not show `x-price`. */
function priceNote({ price, flow }: PricedOperation): string {
  const when = flow === 'upfront' ? 'paid before the work' : 'charged only for an answer';
  return `Price: ${price.amount} USDC a call, ${when}, by x402 on Solana.`;
}

/** The service index (`getIndex` in openapi.yaml), with paths relative to this server. */
export function indexOf(contract: Contract, siteUrl: string): Json {
  const paths = contract.free.map(operation => operation.path);
  const wellKnown = paths.filter(path => path.endsWith('/.well-known/x402'));
  return {
    service: 'coinslot',
    endpoints: Object.fromEntries(
      contract.paid.map(operation => [`POST ${operation.path}`, `${operation.price.amount} USDC`]),
    ),
    discovery: ['/.well-known/x402', '/openapi.json'],
    upstreamDiscovery: wellKnown.filter(path => path !== '/.well-known/x402'),
    health: paths.filter(path => path.endsWith('/health')),
    site: siteUrl,
  };
}
