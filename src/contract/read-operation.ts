import { CALLED_METHODS, type CalledMethod } from './called-methods.js';
import type { Json } from './json.js';
import { readAnswers, type AnswerForms } from './read-answers.js';
import { readQuota, type FreeQuota } from './read-quota.js';
import { templateFault } from './paths.js';
import { toDecimal } from '../price/amount.js';
import type { Price, PriceKind, ValueAt } from '../price/price.js';
import { fixed } from '../price/fixed.js';
import { PRICES } from '../price/prices.js';
import { filledPath, readParameters, type Fault, type Parameter, type Place } from './read-parameters.js';
import { checkOf, readUpstream, type Upstream } from './read-upstream.js';
import { isObject, objectOf, ReferenceFault, stepsToReference } from './references.js';
import { valuesOf } from './value-at.js';
import { readBody, type RequestBody } from './request-body.js';

export type { BodyForm, RequestBody } from './request-body.js';

/** The two payment flows of x402: with `authorization`, the work comes before the settlement; with `upfront`, after it. */
export type PaymentFlow = 'authorization' | 'upfront';

/** An operation that can be called, paid or free: its input and its answers. */
export type CalledOperation = {
  id: string;
  method: CalledMethod;
  /** The path template, for example `/v1/quotes/{symbol}`. */
  path: string;
  /** The path with the examples of its parameters, for example `/v1/quotes/SOL`. */
  examplePath: string;
  tags: string[];
  summary: string;
  /** Path and query parameters, in the order of the document. `x402Version`, which concerns the payment, is not among them. */
  parameters: Parameter[];
  /** Absent if a call carries no body. */
  request?: RequestBody;
  answers: AnswerForms;
  /** The API that serves it instead of a handler. */
  upstream?: Upstream;
};

/** An operation that costs money, as the contract describes it. */
export type PricedOperation = CalledOperation & {
  /**
   * The price of a call, in decimals and in units of 10⁻⁶ USDC. If it depends on the call, this is the highest price until `quoted` sets
   * the exact one.
   */
  price: {
    mode: string;
    currency: 'USD';
    amount: string;
    atomic: bigint;
    /** For display: `0.01 USDC`, `0.01 to 0.05 USDC`. */
    shown: string;
  };
  /** How the price is computed. */
  pricing: Price;
  flow: PaymentFlow;
  /** `x-listed: false`: the directories of facilitators are not notified of it. */
  unlisted?: true;
  /** Calls that cost nothing. */
  free?: FreeQuota;
};

/** `x-free-proxy: true`: a free operation that an API serves. */
export type GivenOperation = CalledOperation & { upstream: Upstream };

/** The keys that every price can have. */
const PRICE_KEYS = ['mode', 'currency', 'flow'];
/** An example of the price that an operation needs, for messages. */
export const PRICE = "x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }";
const FOR_NOTHING = 'amount must be more than zero: for a free operation, replace x-price with x-free-proxy';

const NO_HANDLER =
  'mode: handler needs a handler, but this operation has an x-upstream: use mode: tiered, or write a handler';

/** Reads an operation that costs money, or reports everything that is wrong with it. */
export function readPriced(place: Place, report: Fault, prices = PRICES): PricedOperation | undefined {
  return readSound(place, report, (at, fault) => {
    checkShape(place, at, fault, 'paid');
    const { 'x-price': price, 'x-listed': listed = true, 'x-free': given } = place.operation;
    // The flow is read even if the price is faulty, so that correct parts below are not reported.
    const flow = objectOf(price).flow === 'upfront' ? 'upfront' : 'authorization';
    const later: Parameters<Fault>[] = [];
    const called = readCalled(place, at, (...each) => later.push(each), flow);
    const priced = readPrice(price, [...at, 'x-price'], fault, { prices, called });
    for (const each of later) fault(...each);
    if (priced?.pricing.ofHandler && 'x-upstream' in place.operation)
      fault([...at, 'x-price', 'mode'], NO_HANDLER);
    if (typeof listed !== 'boolean') fault([...at, 'x-listed'], 'must be true or false');
    const free = readQuota(given, flow, (key, message) =>
      fault([...at, 'x-free', ...(key === undefined ? [] : [key])], message),
    );
    return (
      priced &&
      called && { ...called, ...priced, ...(listed ? {} : { unlisted: true }), ...(free ? { free } : {}) }
    );
  });
}

const NOTHING_TO_GIVE =
  "makes an API's answers free, but has no x-upstream, which names the API: x-upstream: { url: 'https://api.example.com/…' }";

/** Reads an operation with `x-free-proxy`, or reports everything that is wrong with it. */
export function readGiven(place: Place, report: Fault): GivenOperation | undefined {
  return readSound(place, report, (at, fault) => {
    const { 'x-free-proxy': given } = place.operation;
    if (given !== true) fault([...at, 'x-free-proxy'], 'must be true, or absent');
    if (!('x-upstream' in place.operation)) fault([...at, 'x-free-proxy'], NOTHING_TO_GIVE);
    checkShape(place, at, fault, 'given away');
    const called = readCalled(place, at, fault, 'authorization');
    return called?.upstream && { ...called, upstream: called.upstream };
  });
}

function readSound<T>(
  { document, path, method, operation }: Place,
  report: Fault,
  read: (at: string[], fault: Fault) => T | undefined,
): T | undefined {
  let sound = true;
  const at = ['paths', path, method];
  const fault: Fault = (place, message) => {
    sound = false;
    report(place, message);
  };
  try {
    const result = read(at, fault);
    return sound ? result : undefined;
  } catch (error) {
    if (!(error instanceof ReferenceFault)) throw error;
    const { reference, message } = error;
    const steps = stepsToReference(operation, reference);
    const elsewhere = steps ? undefined : stepsToReference(document, reference);
    fault([...at, ...(steps ?? [])], elsewhere ? `${message} (in ${elsewhere.join('.')})` : message);
    return undefined;
  }
}

function readCalled(
  place: Place,
  at: string[],
  fault: Fault,
  flow: PaymentFlow,
): CalledOperation | undefined {
  const { document, path, method: written, operation } = place;
  const parameters = readParameters(place, at, fault);
  const request = readRequest(document, written, operation, at, fault);
  const { operationId: id, tags, summary, responses } = operation;
  const answers = isObject(responses)
    ? readAnswers(document, responses, checkOf(operation), [...at, 'responses'], fault)
    : undefined;
  const method = calledMethod(written) ?? 'POST';
  const upstream =
    'x-upstream' in operation
      ? readUpstream(
          operation['x-upstream'],
          { method, flow, parameters, request },
          [...at, 'x-upstream'],
          fault,
        )
      : undefined;
  if (!answers) return undefined;
  return {
    id,
    method,
    path,
    examplePath: filledPath(path, parameters),
    tags: Array.isArray(tags) ? tags.map(String) : [],
    summary: typeof summary === 'string' ? summary : id,
    parameters,
    ...(request ? { request } : {}),
    answers,
    ...(upstream ? { upstream } : {}),
  };
}

/** @param method in lower case, as a document has it */
function calledMethod(method: string): CalledMethod | undefined {
  return CALLED_METHODS.find(each => each.toLowerCase() === method);
}

/** Checks what all operations that can be called, paid or free, have in common. */
function checkShape({ path, method, operation }: Place, at: string[], fault: Fault, what: string): void {
  if (!calledMethod(method))
    fault(at, `is ${what}, so its method must be one of ${CALLED_METHODS.join(', ')}`);
  const wrong = templateFault(path);
  if (wrong) fault(at.slice(0, 2), wrong);
  const { responses } = operation;
  if (!isObject(responses)) fault([...at, 'responses'], 'must be an object, with answers by status');
}

function readPrice(
  price: unknown,
  place: string[],
  fault: Fault,
  { prices, called }: { prices: typeof PRICES; called: CalledOperation | undefined },
): Pick<PricedOperation, 'price' | 'pricing' | 'flow'> | undefined {
  if (price === undefined) return void fault(place.slice(0, -1), `answers 402 but has no x-price: ${PRICE}`);
  if (!isObject(price)) return void fault(place, `must be an object: ${PRICE}`);
  const { mode, flow } = price;
  const known = typeof mode === 'string' && Object.hasOwn(prices, mode) ? prices[mode] : undefined;
  const faults = known ? [] : [`mode must be ${inQuotes(Object.keys(prices))}`];
  // A price without a known mode is checked as a fixed one.
  const pricing = readKind(known ?? fixed, price, faults, called && valuesOf(called));
  const zero = isZero(price.amount);
  for (const message of faults.filter(each => !zero || !each.startsWith('amount '))) fault(place, message);
  if (zero) return void fault(place, FOR_NOTHING);
  if (faults.length || !pricing) return undefined;
  const { atomic } = pricing.most;
  const amount = typeof price.amount === 'string' ? price.amount : toDecimal(atomic);
  return {
    price: { mode: String(mode), currency: 'USD', amount, atomic, shown: shownPrice(pricing, amount) },
    pricing,
    flow: flow as PaymentFlow,
  };
}

function shownPrice({ least, most }: Price, amount: string): string {
  return least.atomic === most.atomic ? `${amount} USDC` : `${toDecimal(least.atomic)} to ${amount} USDC`;
}

/** Whether the amount is zero, as a string or a number. */
function isZero(amount: unknown): boolean {
  return amount === 0 || (typeof amount === 'string' && /^0+(?:\.0*)?$/.test(amount));
}

const inQuotes = (names: string[]): string => names.map(each => `'${each}'`).join(' or ');

/** Reads the common keys of a price and those of its kind. */
function readKind(
  kind: PriceKind,
  price: Json,
  faults: string[],
  valueAt: ValueAt | undefined,
): Price | undefined {
  const { currency, flow } = price;
  const known = [...PRICE_KEYS, ...kind.keys];
  for (const key of Object.keys(price))
    if (!known.includes(key)) faults.push(`unknown key '${key}': a price has only ${known.join(', ')}`);
  if (currency !== 'USD') faults.push("currency must be 'USD'");
  if (flow !== 'authorization' && flow !== 'upfront')
    faults.push("flow must be 'authorization' or 'upfront'");
  try {
    return kind.read(price, valueAt);
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
  if (method === 'get') return void fault(place, 'must be absent: a GET has no body');
  return readBody(document, requestBody, place, fault);
}
