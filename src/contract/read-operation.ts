import { bodyLimit } from './body-limit.js';
import type { Json } from './json.js';
import { parameterNames, templateFault } from './paths.js';
import { toAtomic } from './price.js';
import { fieldsOf, follow, inlined, isObject, objectOf, ReferenceFault } from './references.js';

/** The two payment flows of x402: `authorization` works before it settles, `upfront` settles before it works. */
export type PaymentFlow = 'authorization' | 'upfront';

/** A path or query parameter that is part of a call. */
export type Parameter = {
  name: string;
  in: 'path' | 'query';
  required: boolean;
  /** As in the document; may contain references into it. `plain` is the same without references. */
  schema: Json;
  plain: Json;
  /** Whether it is a list, and so may be repeated in a query. */
  list: boolean;
  description?: string;
  /** Every required parameter has one. */
  example?: unknown;
};

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

/** One form of the answer that is sold (status 200). */
export type AnswerForm = {
  mimeType: string;
  kind: 'json' | 'text' | 'binary';
  /** As in the document; absent if any value is right. */
  schema?: Json;
  example?: unknown;
};

/** An operation that costs money, as the contract describes it. */
export type PricedOperation = {
  id: string;
  method: 'GET' | 'POST';
  /** The path template, for example `/v1/quotes/{symbol}`. */
  path: string;
  /** The path with the examples of its parameters, for example `/v1/quotes/SOL`. */
  examplePath: string;
  tags: string[];
  summary: string;
  /** `amount` as written in the contract, `atomic` in units of 10⁻⁶ USDC. */
  price: { mode: 'fixed'; currency: 'USD'; amount: string; atomic: bigint };
  flow: PaymentFlow;
  /** Path and query parameters, in the order of the document. `x402Version`, which concerns the payment, is not among them. */
  parameters: Parameter[];
  /** Absent if a call carries no body. */
  request?: RequestBody;
  /** The forms of the answer; the first is the one that an answer has unless it says otherwise. */
  answers: [AnswerForm, ...AnswerForm[]];
  /** `x-upstream` as written: the API that serves it instead of a handler. */
  upstream?: Json;
};

/** Reports what is wrong with a place in the document. */
export type Fault = (path: string[], message: string) => void;

/** One operation of the document and where it is. `item` is the path item that contains it. */
export type Place = {
  document: Json;
  path: string;
  method: string;
  item: Json;
  operation: Json & { operationId: string };
};

const PRICE_KEYS = ['mode', 'currency', 'amount', 'flow'];
/** The statuses of a paid call, whatever the operation does. */
const STATUSES = ['200', '400', '402', '502', '503'];
/** Headers that concern the payment or the caching, not the call. */
const KNOWN_HEADERS =
  /^(payment-signature|x-payment|prefer|if-none-match|accept|content-type|authorization)$/i;
/** Selects the version of the challenge. */
const PAYMENT_QUERY = 'x402Version';

/** Reads an operation that costs money, or reports everything that is wrong with it. */
export function readPriced(place: Place, report: Fault): PricedOperation | undefined {
  let sound = true;
  const at = ['paths', place.path, place.method];
  const fault: Fault = (path, message) => {
    sound = false;
    report(path, message);
  };
  try {
    const read = readParts(place, at, fault);
    return sound ? read : undefined;
  } catch (error) {
    if (!(error instanceof ReferenceFault)) throw error;
    fault(at, error.message);
    return undefined;
  }
}

function readParts(place: Place, at: string[], fault: Fault): PricedOperation | undefined {
  const { document, path, method, operation } = place;
  if (method !== 'get' && method !== 'post') fault(at, 'is paid, so it must be a GET or a POST');
  const wrong = templateFault(path);
  if (wrong) fault(at.slice(0, 2), wrong);
  const responses = objectOf(operation.responses);
  for (const status of STATUSES.filter(each => !(each in responses)))
    fault([...at, 'responses'], `must declare ${status}, since every paid operation may answer it`);
  if (!('x-price' in operation)) fault(at, 'answers 402 but has no x-price');
  const priced =
    'x-price' in operation ? readPrice(operation['x-price'], [...at, 'x-price'], fault) : undefined;
  const parameters = readParameters(place, at, fault);
  const request = readRequest(document, method, operation, at, fault);
  const upstream = operation['x-upstream'];
  if (upstream !== undefined && !isObject(upstream)) fault([...at, 'x-upstream'], 'must be an object');
  const answers = readAnswers(document, responses['200'], [...at, 'responses', '200'], fault);
  if (!priced || !answers) return undefined;
  return {
    id: operation.operationId,
    method: method === 'get' ? 'GET' : 'POST',
    path,
    examplePath: filledPath(path, parameters),
    tags: Array.isArray(operation.tags) ? operation.tags.map(String) : [],
    summary: String(operation.summary ?? operation.operationId),
    ...priced,
    parameters,
    ...(request ? { request } : {}),
    answers,
    ...(isObject(upstream) ? { upstream } : {}),
  };
}

function readPrice(
  price: unknown,
  place: string[],
  fault: Fault,
): Pick<PricedOperation, 'price' | 'flow'> | undefined {
  if (!isObject(price)) return void fault(place, 'must be an object');
  const { mode, currency, amount, flow } = price;
  const before: string[] = [];
  for (const key of Object.keys(price)) if (!PRICE_KEYS.includes(key)) before.push(`unknown key '${key}'`);
  if (mode !== 'fixed') before.push("mode must be 'fixed'");
  if (currency !== 'USD') before.push("currency must be 'USD'");
  if (flow !== 'authorization' && flow !== 'upfront')
    before.push("flow must be 'authorization' or 'upfront'");
  let atomic = 0n;
  try {
    atomic = toAtomic(amount);
  } catch (error) {
    before.push(`amount ${(error as Error).message}`);
  }
  for (const message of before) fault(place, message);
  if (before.length) return undefined;
  return {
    price: { mode: 'fixed', currency: 'USD', amount: amount as string, atomic },
    flow: flow as PaymentFlow,
  };
}

/** Parameters of the path item and of the operation, whose own take precedence. */
function readParameters({ document, path, item, operation }: Place, at: string[], fault: Fault): Parameter[] {
  const listed = [item.parameters, operation.parameters].flatMap(list =>
    Array.isArray(list) ? (list as unknown[]) : [],
  );
  const byName = new Map<string, Json>();
  for (const each of listed) {
    const parameter = follow(document, each);
    byName.set(`${String(parameter.in)} ${String(parameter.name)}`, parameter);
  }
  const place = [...at, 'parameters'];
  const read = [...byName.values()].flatMap(
    parameter => readParameter(document, parameter, place, fault) ?? [],
  );
  const declared = read.filter(parameter => parameter.in === 'path').map(({ name }) => name);
  const named = parameterNames(path);
  for (const name of named.filter(each => !declared.includes(each)))
    fault(place, `must declare ${name}, which the path has`);
  for (const name of declared.filter(each => !named.includes(each)))
    fault(place, `declares ${name}, which the path does not have`);
  return read;
}

function readParameter(
  document: Json,
  parameter: Json,
  place: string[],
  fault: Fault,
): Parameter | undefined {
  const { name, in: where, required = false, schema, description } = parameter;
  const wrong = (message: string): undefined => void fault(place, `${String(name)} ${message}`);
  if (typeof name !== 'string') return void fault(place, 'has a parameter without a name');
  if (where === 'header' && KNOWN_HEADERS.test(name)) return undefined;
  if (where === 'query' && name === PAYMENT_QUERY) return undefined;
  if (where !== 'path' && where !== 'query')
    return wrong(`is in ${String(where)}, but a call has only path and query parameters`);
  if (!isObject(schema)) return wrong('needs a schema');
  const { type } = follow(document, schema);
  if (type === 'object') return wrong('must not be an object');
  const list = type === 'array';
  if (where === 'path' && list) return wrong('must not be a list, because it is in the path');
  if (where === 'path' && required !== true) return wrong('must be required, because it is in the path');
  const { style = 'form', explode = style === 'form' } = parameter;
  if (where === 'query' && (style !== 'form' || (list && explode !== true)))
    return wrong('must have the style form, exploded (its default)');
  if (where === 'path' && parameter.style !== undefined && parameter.style !== 'simple')
    return wrong('must have the style simple (its default)');
  const example = exampleOf(document, parameter);
  if (required === true && example === undefined) return wrong('needs an example');
  return {
    name,
    in: where,
    required: required === true,
    schema,
    plain: inlined(document, schema),
    list,
    ...(typeof description === 'string' ? { description } : {}),
    ...(example === undefined ? {} : { example }),
  };
}

/** The example of a parameter or media type: its own, the first of several, that of its schema, or a value the schema names. */
function exampleOf(document: Json, { example, examples, schema }: Json): unknown {
  if (example !== undefined) return example;
  for (const each of Object.values(objectOf(examples))) {
    const { value } = follow(document, each);
    if (value !== undefined) return value;
  }
  const described = follow(document, schema);
  const first = (list: unknown): unknown => (Array.isArray(list) ? (list[0] as unknown) : undefined);
  return (
    described.example ??
    first(described.examples) ??
    described.default ??
    described.const ??
    first(described.enum)
  );
}

function filledPath(path: string, parameters: Parameter[]): string {
  const examples = new Map(
    parameters.filter(each => each.in === 'path').map(({ name, example }) => [name, example]),
  );
  return path.replace(/\{([^{}/]+)\}/g, (_braces, name: string) =>
    encodeURIComponent(String(examples.get(name))),
  );
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
    return void fault(place, 'must be written inline, with an application/json schema of an object');
  const example = exampleOf(document, media);
  if (!isObject(example)) return void fault(place, 'needs an example');
  return {
    required: required === true,
    schema,
    plain: inlined(document, schema),
    example,
    maxBytes: bodyLimit(document, schema),
  };
}

function readAnswers(
  document: Json,
  response: unknown,
  place: string[],
  fault: Fault,
): PricedOperation['answers'] | undefined {
  const content = Object.entries(objectOf(follow(document, response).content));
  const forms = content.map(([mimeType, media]): AnswerForm => {
    const { schema } = objectOf(media);
    const example = exampleOf(document, objectOf(media));
    return {
      mimeType,
      kind: kindOf(mimeType),
      ...(isObject(schema) ? { schema } : {}),
      ...(example === undefined ? {} : { example }),
    };
  });
  for (const { mimeType } of forms)
    if (mimeType.includes('*')) fault(place, `must name a content type, not ${mimeType}`);
  const [first, ...others] = forms;
  if (!first) return void fault(place, 'must have content, which is what is sold');
  return [first, ...others];
}

function kindOf(mimeType: string): AnswerForm['kind'] {
  const [type = ''] = mimeType.split(';', 1);
  if (/^application\/(json|[\w.-]+\+json)$/i.test(type.trim())) return 'json';
  return /^text\//i.test(type.trim()) ? 'text' : 'binary';
}
