import { bodyLimit } from './body-limit.js';
import { CALLED_METHODS, type CalledMethod } from './called-methods.js';
import type { Json } from './json.js';
import { readAnswers, type AnswerForms } from './read-answers.js';
import { templateFault } from './paths.js';
import { toDecimal } from '../price/amount.js';
import type { Price, PriceKind } from '../price/price.js';
import { fixed } from '../price/fixed.js';
import { PRICES } from '../price/prices.js';
import {
  exampleOf,
  filledPath,
  readParameters,
  type Fault,
  type Parameter,
  type Place,
} from './read-parameters.js';
import { checkOf, readUpstream, type Upstream } from './read-upstream.js';
import { fieldsOf, inlined, isObject, objectOf, ReferenceFault } from './references.js';

/** The two payment flows of x402: `authorization` works before it settles, `upfront` settles before it works. */
export type PaymentFlow = 'authorization' | 'upfront';

/** The JSON object that a call carries. */
export type RequestBody = {
  required: boolean;
  /** As in the document; may contain references into it. `plain` is the same without references. */
  schema: Json;
  plain: Json;
  example: Json;
  /** The largest body in bytes (see `bodyLimit`). */
  maxBytes: number;
};

/** An operation that costs money, as the contract describes it. */
export type PricedOperation = {
  id: string;
  method: CalledMethod;
  /** The path template, for example `/v1/quotes/{symbol}`. */
  path: string;
  /** The path with the examples of its parameters, for example `/v1/quotes/SOL`. */
  examplePath: string;
  tags: string[];
  summary: string;
  /** The price of a call, in decimals and in units of 10⁻⁶ USDC. Where it depends on the body: the most, until `quoted` says more. */
  price: { mode: string; currency: 'USD'; amount: string; atomic: bigint };
  /** How that is found. */
  pricing: Price;
  flow: PaymentFlow;
  /** Path and query parameters, in the order of the document. `x402Version`, which concerns the payment, is not among them. */
  parameters: Parameter[];
  /** Absent if a call carries no body. */
  request?: RequestBody;
  answers: AnswerForms;
  /** `x-listed: false`: the directories of facilitators are not told of it. */
  unlisted?: true;
  /** The API that serves it instead of a handler. */
  upstream?: Upstream;
};

/** The keys of every price. */
const PRICE_KEYS = ['mode', 'currency', 'flow'];
/** What an operation needs to be sold. */
export const PRICE = "x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }";
const OBJECT = '{ application/json: { schema: { type: object } } }';

/** Reads an operation that costs money, or reports everything that is wrong with it. */
export function readPriced(place: Place, report: Fault, prices = PRICES): PricedOperation | undefined {
  let sound = true;
  const at = ['paths', place.path, place.method];
  const fault: Fault = (path, message) => {
    sound = false;
    report(path, message);
  };
  try {
    const read = readParts(place, at, fault, prices);
    return sound ? read : undefined;
  } catch (error) {
    if (!(error instanceof ReferenceFault)) throw error;
    fault(at, error.message);
    return undefined;
  }
}

function readParts(
  place: Place,
  at: string[],
  fault: Fault,
  prices: typeof PRICES,
): PricedOperation | undefined {
  const { document, path, method, operation } = place;
  checkShape(place, at, fault);
  const priced = readPrice(operation['x-price'], [...at, 'x-price'], fault, prices);
  const parameters = readParameters(place, at, fault);
  const request = readRequest(document, method, operation, at, fault);
  const { responses } = operation;
  const answers = isObject(responses)
    ? readAnswers(document, responses, checkOf(operation), [...at, 'responses'], fault)
    : undefined;
  const { operationId: id, tags, summary, 'x-price': price, 'x-listed': listed = true } = operation;
  if (typeof listed !== 'boolean') fault([...at, 'x-listed'], 'must be true or false');
  const called = {
    method: calledMethod(method) ?? 'POST',
    // Also of a price with a fault, so that nothing right is reported below.
    flow: objectOf(price).flow === 'upfront' ? 'upfront' : 'authorization',
    parameters,
    request,
  } as const;
  const upstream =
    'x-upstream' in operation
      ? readUpstream(operation['x-upstream'], called, [...at, 'x-upstream'], fault)
      : undefined;
  if (!priced || !answers) return undefined;
  return {
    id,
    method: called.method,
    path,
    examplePath: filledPath(path, parameters),
    tags: Array.isArray(tags) ? tags.map(String) : [],
    summary: typeof summary === 'string' ? summary : id,
    ...priced,
    parameters,
    ...(request ? { request } : {}),
    answers,
    ...(listed ? {} : { unlisted: true }),
    ...(upstream ? { upstream } : {}),
  };
}

/** @param method in lower case, as a document has it */
function calledMethod(method: string): CalledMethod | undefined {
  return CALLED_METHODS.find(each => each.toLowerCase() === method);
}

/** What every paid operation has in common. */
function checkShape({ path, method, operation }: Place, at: string[], fault: Fault): void {
  if (!calledMethod(method)) fault(at, `is paid, so its method must be one of ${CALLED_METHODS.join(', ')}`);
  const wrong = templateFault(path);
  if (wrong) fault(at.slice(0, 2), wrong);
  const { responses } = operation;
  if (!isObject(responses)) fault([...at, 'responses'], 'must be an object, with answers by status');
}

function readPrice(
  price: unknown,
  place: string[],
  fault: Fault,
  prices: typeof PRICES,
): Pick<PricedOperation, 'price' | 'pricing' | 'flow'> | undefined {
  if (price === undefined) return void fault(place.slice(0, -1), `answers 402 but has no x-price: ${PRICE}`);
  if (!isObject(price)) return void fault(place, `must be an object: ${PRICE}`);
  const { mode, flow } = price;
  const known = typeof mode === 'string' && Object.hasOwn(prices, mode) ? prices[mode] : undefined;
  const faults = known ? [] : [`mode must be ${inQuotes(Object.keys(prices))}`];
  // The other faults of a price without a known mode are those of a fixed one.
  const pricing = readKind(known ?? fixed, price, faults);
  for (const message of faults) fault(place, message);
  if (faults.length || !pricing) return undefined;
  const { atomic } = pricing.most;
  const amount = typeof price.amount === 'string' ? price.amount : toDecimal(atomic);
  return {
    price: { mode: String(mode), currency: 'USD', amount, atomic },
    pricing,
    flow: flow as PaymentFlow,
  };
}

const inQuotes = (names: string[]): string => names.map(each => `'${each}'`).join(' or ');

/** Reads what every price has and what its kind has. */
function readKind(kind: PriceKind, price: Json, faults: string[]): Price | undefined {
  const { currency, flow } = price;
  for (const key of Object.keys(price))
    if (![...PRICE_KEYS, ...kind.keys].includes(key)) faults.push(`unknown key '${key}'`);
  if (currency !== 'USD') faults.push("currency must be 'USD'");
  if (flow !== 'authorization' && flow !== 'upfront')
    faults.push("flow must be 'authorization' or 'upfront'");
  try {
    return kind.read(price);
  } catch (error) {
    faults.push((error as Error).message);
    return undefined;
  }
}

function readRequest(
  document: Json,
  method: string,
  { requestBody }: Json,
  at: string[],
  fault: Fault,
): RequestBody | undefined {
  if (requestBody === undefined) return undefined;
  const place = [...at, 'requestBody'];
  if (method === 'get') return void fault(place, 'must not be there: a GET has no body');
  // Discovery crawlers skip the whole document if a requestBody is a $ref.
  const { content, required = false } = objectOf(requestBody);
  const media = objectOf(objectOf(content)['application/json']);
  const { schema } = media;
  if (!isObject(schema) || !fieldsOf(document, schema))
    return void fault(
      place,
      `must be written inline, with an application/json schema of an object: requestBody: { required: true, content: ${OBJECT} }`,
    );
  const example = exampleOf(document, media);
  if (!isObject(example))
    return void fault(
      [...place, 'content', 'application/json'],
      'needs an example that is an object, and none can be made from its schema: example: { … }',
    );
  return {
    required: required === true,
    schema,
    plain: inlined(document, schema),
    example,
    maxBytes: bodyLimit(document, schema),
  };
}
