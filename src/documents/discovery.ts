import { formName } from '../contract/answer-forms.js';
import type { Json } from '../contract/json.js';
import type {
  Contract,
  FreeOperation,
  GivenOperation,
  PricedOperation,
  RequestBody,
} from '../contract/contract.js';
import { follow, isObject, objectOf } from '../contract/references.js';
import { MCP_PATH } from '../contract/reserved-names.js';
import type { Challenge } from '../methods/method.js';
import { quotaText } from '../contract/read-quota.js';
import { SIGN_IN_HEADER, SIGN_IN_PATH } from '../sign-in/sign-ins.js';
import type { Methods } from '../methods/methods.js';
import { toDecimal } from '../price/amount.js';
import { callShape } from '../methods/x402/describe-call.js';
import { resourceUrl } from '../methods/x402/requirements.js';
import { SCHEMATHESIS_PATH } from './schemathesis-config.js';

const SENT_AGAIN =
  'The same payment sent again with the same call returns the same answer and is not charged again.';

/** What documents need to know about the shop: its public URL and its payment methods. */
export type Selling = { publicUrl: string; methods: Methods };

/** The discovery document of the given operations (`getDiscovery` in openapi.yaml). */
export function discoveryOf(operations: PricedOperation[], selling: Selling): Json {
  const { publicUrl, methods } = selling;
  const howToPay = methods.all.map(method => method.documents().instructions).join(' ');
  return {
    version: 1,
    // Operations with the same path share one URL.
    resources: [...new Set(operations.map(operation => resourceUrl(operation, selling)))],
    instructions: [
      `${howToCall(operations)} ${howToPay} ${SENT_AGAIN} Agents that support MCP find the same operations as tools at ${publicUrl}${MCP_PATH}.`,
      ...operations.map(sentenceOf),
    ].join('\n'),
  };
}

function howToCall(operations: PricedOperation[]): string {
  const kinds = new Set(operations.flatMap(({ request }) => request?.kind ?? []));
  if (operations.every(({ method, request }) => method === 'POST' && request?.kind === 'json'))
    return 'Each resource is called with POST and a JSON body.';
  const others = [...kinds].filter(kind => kind !== 'json');
  const forms = others.every(kind => kind === 'form');
  const body =
    others.length === 0 ? 'JSON body' : `body (JSON, or ${forms ? 'a form' : 'another type'} where noted)`;
  return `Each resource is called with the method, parameters and ${body} listed below.`;
}

function sentenceOf(operation: PricedOperation): string {
  const { price, pricing, summary, flow, answers, free } = operation;
  const [form] = answers;
  const given = free ? ` ${quotaText(free)}` : '';
  const answer = form.kind === 'json' ? '' : ` The answer is ${formName(form)}.`;
  const upfront =
    flow === 'upfront' ? ' Paid before the work; send the same payment again to get the answer.' : '';
  return `${callShape(operation)} costs ${price.shown}${pricing.terms === undefined ? '' : ` (${pricing.terms})`}.${given} ${summary}.${answer}${upfront}`;
}

type Response = Json & { headers?: Record<string, Json>; content?: Record<string, Json> };

/**
 * The OpenAPI document as served: the contract with this server's address, `x-payment-info`, guidance for crawlers and, for each paid operation, an
 * example 402 that a client of a mock server can pay.
 */
export function servedContract(contract: Contract, selling: Selling, siteUrl: string): Json {
  const { publicUrl, methods } = selling;
  const protocols = methods.all.flatMap(method => method.documents().protocol ?? []);
  const document = structuredClone(contract.document) as {
    info: Json & { contact?: Json };
    'x-service-info'?: Json;
    servers: Json[];
    paths: Record<string, Record<string, Json>>;
  };
  document.servers = [{ url: publicUrl }];
  document.info.contact = { ...document.info.contact, url: siteUrl };
  document.info['x-guidance'] = discoveryOf(contract.paid, selling).instructions;
  document['x-service-info'] ??= serviceInfo(contract, publicUrl, siteUrl);
  document.info['x-schemathesis'] = publicUrl + SCHEMATHESIS_PATH;
  for (const [path, example] of freeExamples(contract, selling, siteUrl))
    showExample(document, path, example);
  const replaced = new Set<unknown>();
  for (const operation of contract.paid) {
    const described = document.paths[operation.path]?.[operation.method.toLowerCase()];
    if (!described) continue;
    // Where the answers come from does not concern buyers.
    delete described['x-upstream'];
    delete described['x-listed'];
    const offers = methods.all.flatMap(method => method.documents().offer?.(operation) ?? []);
    const price = pricesOf(operation);
    described['x-payment-info'] = { price, protocols, ...(offers.length > 0 && { offers }) };
    const { description } = described;
    const text = typeof description === 'string' ? `${description.trim()} ` : '';
    described.description = `${text}${noteOf(operation, methods)}`;
    const { request } = operation;
    if (request) showLimit(described.requestBody, request);
    const responses = described.responses as Record<string, Json>;
    replaced.add(responses['402']?.$ref);
    const response = follow(document, responses['402'] ?? {}) as Response;
    responses['402'] = withChallenge(document, response, methods.first.example(operation));
  }
  for (const operation of contract.given) showGift(document, operation);
  dropUnused(document, replaced);
  return document;
}

/** The price of an operation in the form that directories read. */
function pricesOf({ price, pricing }: PricedOperation): Json {
  const { mode, currency, amount } = price;
  if (!pricing.needsBody) return { mode, currency, amount };
  return { mode: 'dynamic', currency, min: toDecimal(pricing.least.atomic), max: amount };
}

const COMPONENT = /"(#\/components\/[^"]+)"/g;

/** Now that each operation has its own 402, drops the components that nothing refers to any more, and then their dependencies. */
function dropUnused(document: Json, replaced: ReadonlySet<unknown>): void {
  const suspects = [...replaced].filter(each => typeof each === 'string');
  for (let at = 0; at < suspects.length; at++) {
    const reference = suspects[at] ?? '';
    const [, , section = '', name = ''] = reference.split('/');
    const components = objectOf(objectOf(document.components)[section]);
    if (!(name in components) || JSON.stringify(document).includes(JSON.stringify(reference))) continue;
    const dropped = JSON.stringify(components[name]);
    delete components[name];
    suspects.push(...[...dropped.matchAll(COMPONENT)].map(([, each = '']) => each));
  }
}

/** The service as payment directories describe it (draft-payment-discovery-00). */
function serviceInfo({ paid }: Contract, publicUrl: string, homepage: string): Json {
  return {
    categories: [...new Set(paid.flatMap(({ tags }) => tags))],
    docs: { homepage, llms: `${publicUrl}/llms.txt` },
  };
}

/** Describes an operation that is free and served by an API. */
function showGift(
  document: { paths: Record<string, Record<string, Json>> },
  operation: GivenOperation,
): void {
  const described = document.paths[operation.path]?.[operation.method.toLowerCase()];
  if (!described) return;
  delete described['x-upstream'];
  const { description } = described;
  const text = typeof description === 'string' ? `${description.trim()} ` : '';
  described.description = `${text}${FREE}${UNCHECKED[operation.upstream.check]}`;
  if (operation.request) showLimit(described.requestBody, operation.request);
}

/** Adds the maximum size of a body, unless the contract describes it. */
function showLimit(body: unknown, { kind, mimeType, maxBytes }: RequestBody): void {
  const what = {
    json: 'JSON',
    form: 'A form',
    multipart: 'A multipart form',
    text: mimeType,
    binary: mimeType,
  }[kind];
  if (isObject(body) && !body.$ref) body.description ??= `${what}, at most ${maxBytes} bytes.`;
}

/** Examples of this server's answers at the paths of its own documents. */
function freeExamples(
  contract: Contract,
  selling: Selling,
  siteUrl: string,
): [path: string, example: Json][] {
  return contract.free.flatMap(({ id, path, discovery }): [string, Json][] => {
    if (id === 'getIndex') return [[path, indexOf(contract, siteUrl)]];
    if (id === 'getDiscovery') return [[path, discoveryOf(contract.paid, selling)]];
    if (!discovery) return [];
    return [
      [
        path,
        discoveryOf(
          contract.paid.filter(each => discovery.includes(each.id)),
          selling,
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

/** A copy of a 402 response with its challenge in body and headers. */
function withChallenge(document: Json, response: Response, { headers, body }: Challenge): Json {
  const json = 'application/json';
  const shown = Object.entries(headers).map(([name, example]) => [
    name,
    { ...follow(document, response.headers?.[name]), example },
  ]);
  return {
    ...response,
    headers: { ...response.headers, ...(Object.fromEntries(shown) as Json) },
    content: {
      ...response.content,
      [json]: { ...response.content?.[json], example: JSON.parse(body.toString('utf8')) as Json },
    },
  };
}

const FREE = 'Free of charge, for a limited number of calls from one address.';

const UNCHECKED = {
  schema: '',
  type: ' Only the content type of the answer is checked before it is charged, not its contents.',
  none: ' The answer is not checked before it is charged: it may have another content type and other contents.',
};

const HOW_TO_SIGN_IN =
  `The statement to sign is at ${SIGN_IN_PATH} (x402's sign-in-with-x, once for each call); the signed statement goes into the header ` +
  `SIGN-IN-WITH-X or, over MCP, into _meta["${SIGN_IN_HEADER}"].`;

/** The note in every description of an operation: its price, and the unchecked parts of its answer. */
export function noteOf(operation: PricedOperation, methods: Methods): string {
  return priceNote(operation, methods) + UNCHECKED[operation.upstream?.check ?? 'schema'];
}

/** The price as text, because renderers do not show `x-price`. */
function priceNote({ price, pricing, flow, free }: PricedOperation, methods: Methods): string {
  const by = methods.all.flatMap(method => method.documents().phrase ?? []).join(' or ');
  const when = flow === 'upfront' ? 'paid before the work' : 'charged only for an answer';
  const terms =
    pricing.terms === undefined ? '' : ` ${pricing.terms[0]?.toUpperCase()}${pricing.terms.slice(1)}.`;
  const given = free ? ` ${quotaText(free)}${free.by === 'wallet' ? ` ${HOW_TO_SIGN_IN}` : ''}` : '';
  return `Price: ${price.shown} a call, ${when}, by ${by}.${terms}${given}`;
}

/** The service index (`getIndex` in openapi.yaml), with paths relative to this server. */
export function indexOf(contract: Contract, siteUrl: string): Json {
  const pathsOf = (which: (operation: FreeOperation) => boolean): string[] =>
    contract.free.filter(which).map(({ path }) => path);
  return {
    service: 'coinslot',
    endpoints: Object.fromEntries(
      // The highest price: the schema of the index has no ranges.
      contract.paid.map(({ method, path, price }) => [`${method} ${path}`, `${price.amount} USDC`]),
    ),
    discovery: pathsOf(({ id }) => id === 'getDiscovery' || id === 'getOpenapi'),
    upstreamDiscovery: pathsOf(({ id, discovery }) => discovery !== undefined && id !== 'getDiscovery'),
    mcp: MCP_PATH,
    health: pathsOf(({ id, health }) => id === 'getHealth' || health !== undefined),
    site: siteUrl,
  };
}
