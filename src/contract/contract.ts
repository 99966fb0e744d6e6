import type { Json } from './json.js';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { LineCounter, parseDocument, type Document } from 'yaml';
import { bodyLimit } from './body-limit.js';
import type { OperationId, PaidOperationId } from './operation.js';
import { toAtomic } from './price.js';

/** The two payment flows of x402: `authorization` works before it settles, `upfront` settles before it works. */
export type PaymentFlow = 'authorization' | 'upfront';

/** An operation that costs money, as the contract describes it. */
export type PricedOperation = {
  id: PaidOperationId;
  path: string;
  tag: string;
  summary: string;
  /** `amount` as written in the contract, `atomic` in units of 10⁻⁶ USDC. */
  price: { mode: 'fixed'; currency: 'USD'; amount: string; atomic: bigint };
  flow: PaymentFlow;
  /** Content type of the 200 answer. */
  mimeType: string;
  requestSchema: Json;
  /** The largest body in bytes (see `bodyLimit`). */
  maxBodyBytes: number;
  requestExample: Json;
  /** An example of a JSON answer; absent if the answer is not JSON. */
  answerExample?: Json;
};

/** A free operation: a GET. */
export type FreeOperation = { id: Exclude<OperationId, PaidOperationId>; path: string };

export type Contract = { document: Json; paid: PricedOperation[]; free: FreeOperation[] };

/** The contract can't be used. `message` lists every fault with its place in the YAML. */
export class ContractFault extends Error {}

const ROOT = new URL('../../../', import.meta.url);
/** The contract that this program serves, and its compiled form. */
export const CONTRACT_FILE = new URL('openapi.yaml', ROOT);
export const COMPILED_FILE = new URL('dist/openapi.json', ROOT);

const PRICE_KEYS = ['mode', 'currency', 'amount', 'flow'];
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/**
 * Reads openapi.yaml into operations with prices.
 * @param compiled its compiled form (see `compileContract`); ignored if the YAML has changed since
 * @throws ContractFault with all faults together: an unknown price key, a number for a string, a paid operation without price.
 */
export function loadContract(file: URL | string, compiled?: URL): Contract {
  const text = readFileSync(file, 'utf8');
  const name = typeof file === 'string' ? file : 'openapi.yaml';
  const document = compiled && compiledFrom(compiled, text);
  return document ? readContract(document, () => name) : parseContract(text, name);
}

/** Like loadContract, from the text of the document; `name` is the file name in faults. */
export function parseContract(text: string, name = 'openapi.yaml'): Contract {
  const lines = new LineCounter();
  const yaml = parseDocument(text, { lineCounter: lines });
  const first = yaml.errors[0];
  if (first) throw new ContractFault(`${name}: ${first.message}`);
  return readContract(yaml.toJS(), path => `${name}:${lineOf(yaml, lines, path)}`);
}

/** A compiled contract and the hash of its source text. */
type Compiled = { sha256: string; document: Json };

/**
 * Compiles the document to JSON, which takes a tenth of the time to parse at the start.
 * @param text of openapi.yaml
 * @throws ContractFault
 */
export function compileContract(text: string): string {
  const { document } = parseContract(text);
  return JSON.stringify({ sha256: hash('sha256', text), document } satisfies Compiled);
}

/** The compiled document; undefined if there is none or the contract has changed since. */
function compiledFrom(file: URL, text: string): Json | undefined {
  try {
    const compiled = JSON.parse(readFileSync(file, 'utf8')) as Compiled;
    return compiled.sha256 === hash('sha256', text) ? compiled.document : undefined;
  } catch {
    return undefined;
  }
}

function readContract(document: unknown, placeOf: (path: string[]) => string): Contract {
  if (!isObject(document))
    throw new ContractFault(`${placeOf([])}: must be an OpenAPI document, which is an object`);
  const faults: string[] = [];
  const fault = (path: string[], message: string): void => {
    faults.push(`${placeOf(path)} ${path.join('.')}: ${message}`);
  };
  const contract: Contract = { document, paid: [], free: [] };
  if (!isObject(document.paths)) fault(['paths'], 'must be an object');
  for (const [path, item] of Object.entries(objectOf(document.paths))) {
    if (!isObject(item)) fault(['paths', path], 'must be an object');
    for (const method of METHODS.filter(m => objectOf(item)[m] !== undefined)) {
      readOperation(contract, path, method, objectOf(item)[method], fault);
    }
  }
  for (const { id, path } of repeated([...contract.paid, ...contract.free])) {
    fault(['paths', path], `repeats the operationId ${id}`);
  }
  if (faults.length) throw new ContractFault(`The contract can't be used:\n  ${faults.join('\n  ')}`);
  return contract;
}

type Fault = (path: string[], message: string) => void;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value if it is an object, else an empty one, so that a wrongly typed document causes faults instead of a crash. */
function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

function repeated<T extends { id: string }>(operations: T[]): T[] {
  return operations.filter(({ id }, index) => operations.findIndex(other => other.id === id) < index);
}

function readOperation(
  contract: Contract,
  path: string,
  method: string,
  operation: unknown,
  fault: Fault,
): void {
  const place = ['paths', path, method];
  if (!isObject(operation)) return fault(place, 'must be an object');
  const responses = objectOf(operation.responses);
  if (typeof operation.operationId !== 'string') return fault(place, 'has no operationId');
  const paid = '402' in responses;
  const hasPrice = 'x-price' in operation;
  if (!paid && hasPrice) return fault(place, 'has an x-price but never answers 402');
  if (!paid) {
    if (method !== 'get') return fault(place, 'is free, so it must be a GET');
    contract.free.push({ id: operation.operationId as FreeOperation['id'], path });
    return;
  }
  if (method !== 'post') fault(place, 'is paid, so it must be a POST');
  if (!hasPrice) fault(place, 'answers 402 but has no x-price');
  const priced = hasPrice ? readPrice(operation['x-price'], [...place, 'x-price'], fault) : undefined;
  const body = readBody(operation, place, fault);
  if (!priced || !body) return;
  contract.paid.push({
    id: operation.operationId as PaidOperationId,
    path,
    tag: String((operation.tags as unknown[] | undefined)?.[0]),
    summary: String(operation.summary),
    ...readAnswer(objectOf(objectOf(responses['200']).content)),
    ...priced,
    ...body,
  });
}

function readAnswer(content: Json): Pick<PricedOperation, 'mimeType' | 'answerExample'> {
  const mimeType = Object.keys(content)[0] ?? 'application/json';
  const { example } = objectOf(content['application/json']);
  return isObject(example) ? { mimeType, answerExample: example } : { mimeType };
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

function readBody(
  operation: Json,
  place: string[],
  fault: Fault,
): Pick<PricedOperation, 'requestSchema' | 'maxBodyBytes' | 'requestExample'> | undefined {
  const { schema, example } = objectOf(objectOf(objectOf(operation.requestBody).content)['application/json']);
  // Discovery crawlers skip the whole document if a requestBody is a $ref.
  if (!isObject(schema) || !isObject(schema.properties)) {
    return void fault(
      [...place, 'requestBody'],
      'must be written inline, with an application/json schema of an object',
    );
  }
  if (!isObject(example)) return void fault([...place, 'requestBody'], 'needs an example');
  return { requestSchema: schema, maxBodyBytes: bodyLimit(schema), requestExample: example };
}

function lineOf(yaml: Document, lines: LineCounter, path: string[]): number {
  for (let length = path.length; length > 0; length--) {
    const node = yaml.getIn(path.slice(0, length), true) as { range?: [number, number, number] } | undefined;
    if (node?.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}
