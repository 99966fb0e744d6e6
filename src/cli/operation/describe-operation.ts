import { Document, isScalar, isSeq, Scalar, visit } from 'yaml';
import type { CalledMethod } from '../../contract/called-methods.js';
import type { Json } from '../../contract/json.js';
import { inferSchema } from './infer-schema.js';

/** The operation that `coinslot operation add` is to add. */
export type NewOperation = {
  id: string;
  /** In lower case. */
  method: Lowercase<CalledMethod>;
  path: string;
  summary: string;
  /** The members of `x-price` besides currency and flow (see `readPriceBy`). */
  price: Json;
  flow: 'authorization' | 'upfront';
  tag?: string;
  /** URL of the API that serves it; without one, a handler does. */
  upstream?: string;
  /** An example of a call: a JSON body, or for a GET or DELETE its path and query parameters. */
  request: Json;
  /** An example of its answer. */
  answer: Json;
};

/** Longer strings are written on lines of their own. */
const LONG_TEXT = 80;
const LONG_LIST = 90;
/** Longer parts are not written on one line. The length is measured as JSON. */
const LONG_PART = 160;
/** The yaml package writes spaces inside the brackets of lists, as it does in objects. */
const PADDED_LIST = /^([^'"]*: )\[ (.*) \]$/;
const PADDED_NAMES = /: \[ ([\w, -]+) \]/g;

/** textStats → TextStats: the name of the schema of its answer. */
export function schemaName(id: string): string {
  return `${id.charAt(0).toUpperCase()}${id.slice(1)}`;
}

/** textStats → text-stats */
export function wordsOf(id: string, between: string): string {
  return id.replace(/(?<=[a-z0-9])(?=[A-Z])/g, between).toLowerCase();
}

/**
 * The lines of the operation, indented for a path item.
 * @param whole whether the contract is complete, rather than leaving the common parts of paid operations to the build
 */
export function operationLines(operation: NewOperation, whole: boolean): string[] {
  const { method } = operation;
  return linesOf({ [method]: whole ? wholeOf(operation) : thinOf(operation) }, 4, !whole);
}

function thinOf(operation: NewOperation): Json {
  const { id, price, flow, tag, upstream, summary, answer } = operation;
  const parameters = ownParameters(operation);
  const sold = { schema: inferSchema(answer, 'answer'), example: answer };
  return {
    operationId: id,
    ...(tag === undefined ? {} : { tags: [tag] }),
    summary,
    'x-price': { ...price, currency: 'USD', flow },
    ...(upstream === undefined ? {} : { 'x-upstream': { url: upstream } }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(hasBody(operation) ? { requestBody: bodyOf(operation) } : {}),
    responses: { '200': { content: { 'application/json': sold } } },
  };
}

function wholeOf(operation: NewOperation): Json {
  const { id, price, flow, upstream, summary } = operation;
  return {
    operationId: id,
    tags: [tagOf(operation)],
    summary,
    description: `${summary}. One call, one answer.`,
    'x-price': { ...price, currency: 'USD', flow },
    ...(upstream === undefined ? {} : { 'x-upstream': { url: upstream } }),
    parameters: [...ownParameters(operation), ...paymentParameters(operation)],
    ...(hasBody(operation) ? { requestBody: bodyOf(operation) } : {}),
    responses: {
      '200': {
        description: 'The answer.',
        headers: Object.fromEntries(
          ['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE', 'Answer-Receipt', 'Location', 'X-Request-Id'].map(
            name => [name, reference('headers', name)],
          ),
        ),
        content: {
          'application/json': { schema: reference('schemas', schemaName(id)), example: operation.answer },
        },
      },
      '400': reference('responses', 'InvalidRequest'),
      '402': reference('responses', 'PaymentRequired'),
      '502': reference('responses', 'UpstreamFailed'),
      '503': reference('responses', 'Unavailable'),
    },
  };
}

/** The tag of an operation in a contract that declares its tags. */
export function tagOf({ tag = 'Operations' }: NewOperation): string {
  return tag;
}

/** The lines of the schema of the answer, indented for `components.schemas`. */
export function answerSchemaLines({ answer }: NewOperation): string[] {
  return linesOf(inferSchema(answer, 'answer'), 6);
}

function reference(kind: string, name: string): Json {
  return { $ref: `#/components/${kind}/${name}` };
}

/** The names of path parameters of a template. */
export function pathParameters(path: string): string[] {
  return [...path.matchAll(/\{([^{}/]+)\}/g)].map(([, name = '']) => name);
}

/** Most APIs accept no body with a DELETE, and proxies may drop it. */
function hasBody({ method }: Pick<NewOperation, 'method'>): boolean {
  return method !== 'get' && method !== 'delete';
}

function ownParameters({ method, path, request }: NewOperation): Json[] {
  const inPath = pathParameters(path);
  const own = hasBody({ method }) ? inPath : Object.keys(request);
  return own.map(name => ({
    name,
    in: inPath.includes(name) ? 'path' : 'query',
    required: true,
    description: `${schemaName(wordsOf(name, ' '))}.`,
    schema: inferSchema(request[name], 'request'),
    example: request[name],
  }));
}

function paymentParameters({ flow }: NewOperation): Json[] {
  const names = ['PAYMENT-SIGNATURE', 'X-PAYMENT', 'x402Version', ...(flow === 'upfront' ? ['Prefer'] : [])];
  return names.map(name => reference('parameters', name));
}

function bodyOf({ path, request }: NewOperation): Json {
  const inPath = pathParameters(path);
  const body = Object.fromEntries(Object.entries(request).filter(([name]) => !inPath.includes(name)));
  const schema = inferSchema(body, 'request');
  return { required: true, content: { 'application/json': { schema, example: body } } };
}

/**
 * YAML in the style of this contract: strings plain or in single quotes, long ones on lines of their own,
 * short lists in brackets. @param dense whether short schemas and examples are also written on one line
 */
function linesOf(value: Json, indent: number, dense = false): string[] {
  // YAML 1.1 parsers would read a plain yes as a boolean, so it is quoted.
  const document = new Document(value, { schema: 'yaml-1.1', version: '1.2' });
  visit(document, {
    Scalar: (key, node) => {
      if (typeof node.value !== 'string' || key === 'key') return;
      if (node.value.length > LONG_TEXT && !/\n|^\s|\s$/.test(node.value)) node.type = Scalar.BLOCK_FOLDED;
    },
    Pair: (_key, { key, value: node }) => {
      const name = isScalar(key) ? key.value : undefined;
      const flat = isSeq(node) && node.items.every(item => isScalar(item)) && node.items.length > 0;
      const length = JSON.stringify(node).length;
      const inLine =
        name === 'x-price' || (flat && length < LONG_LIST) || (dense && isDense(name) && length < LONG_PART);
      if (inLine && node) (node as { flow?: boolean }).flow = true;
    },
  });
  const text = document.toString({
    lineWidth: 0,
    singleQuote: true,
    blockQuote: 'folded',
  });
  return text
    .trimEnd()
    .split('\n')
    .map(line => line.replace(PADDED_LIST, '$1[$2]'))
    .map(line => (/['"]/.test(line) ? line : line.replace(PADDED_NAMES, ': [$1]')))
    .map(line => `${' '.repeat(indent)}${line}`.trimEnd());
}

function isDense(name: unknown): boolean {
  return name === 'schema' || name === 'example';
}
