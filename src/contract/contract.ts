import type { Json } from './json.js';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parameterNames, unnamed } from './paths.js';
import { MCP_PATH, PICK_UP } from './reserved-names.js';
import { PRICE, readGiven, readPriced, type GivenOperation, type PricedOperation } from './read-operation.js';
import type { Fault, Place } from './read-parameters.js';
import { PRICES } from '../price/prices.js';
import { isObject, objectOf } from './references.js';

export type { AnswerForm, Form } from './read-answers.js';
export type {
  BodyForm,
  CalledOperation,
  GivenOperation,
  PaymentFlow,
  PricedOperation,
  RequestBody,
} from './read-operation.js';
export type { Parameter } from './read-parameters.js';

/** A free operation: a GET. */
export type FreeOperation = {
  id: string;
  path: string;
  /** `x-discovery`: the ids of the paid operations that this discovery document lists. */
  discovery?: string[];
  /** `x-health`: the ids of the paid operations whose backends this health document lists. */
  health?: string[];
  /** `x-answers: true`: callers fetch a paid answer here without the payment. The path has one parameter, the key of the answer. */
  answers?: true;
  /** `x-mcp: true`: it is offered as an MCP tool, too. */
  mcp?: { summary: string; description: string };
};

/** `given`: free operations served by an API. `free`: documents served by the server itself or by handlers. */
export type Contract = {
  document: Json;
  paid: PricedOperation[];
  given: GivenOperation[];
  free: FreeOperation[];
};

/** The contract can't be used. `message` lists every fault with its place in the YAML. */
export class ContractFault extends Error {}

/** The methods that a path in a document may have. */
export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/**
 * A compiled contract, the hash of its source text, and the hashes of the further files it was made from, by path. `by`: the version of
 * this program that compiled it; absent if that was 1.1.0 or earlier.
 */
export type Compiled = { sha256: string; document: Json; files?: Record<string, string>; by?: string };

/**
 * The contract that was compiled from a file (see compile-contract.ts); undefined if it is missing or unreadable, or the file has changed
 * since.
 * @throws ContractFault with all faults together
 */
export function compiledContract(file: URL | string, compiled: URL): Contract | undefined {
  const built = readCompiled(compiled);
  if (built?.sha256 !== hash('sha256', readFileSync(file))) return undefined;
  if (!Object.entries(built.files ?? {}).every(([path, sha256]) => hashOf(path) === sha256)) return undefined;
  const { faults, fault } = faultsAt(() => 'openapi.yaml');
  const contract = readContract(built.document, fault);
  throwAll(faults);
  return contract;
}

function hashOf(file: string): string | undefined {
  try {
    return hash('sha256', readFileSync(file));
  } catch {
    return undefined;
  }
}

/** Reads a compiled contract; undefined if the file is missing or unreadable. */
export function readCompiled(file: URL): Compiled | undefined {
  try {
    const { sha256, document, files, by } = objectOf(JSON.parse(readFileSync(file, 'utf8')));
    if (typeof sha256 !== 'string' || !isObject(document)) return undefined;
    return {
      ...{ sha256, document },
      ...(isObject(files) ? { files: files as Record<string, string> } : {}),
      ...(typeof by === 'string' ? { by } : {}),
    };
  } catch {
    return undefined;
  }
}

/** Collects faults, each with its place in the text. */
export function faultsAt(placeOf: (path: string[]) => string): { faults: string[]; fault: Fault } {
  const faults: string[] = [];
  const fault: Fault = (path, message) => {
    faults.push(`${placeOf(path)} ${path.join('.')}: ${message}`);
  };
  return { faults, fault };
}

/** @throws ContractFault that lists them, if there are any */
export function throwAll(faults: readonly string[]): void {
  if (faults.length) throw new ContractFault(`The contract can't be used:\n  ${faults.join('\n  ')}`);
}

/** Reads a whole document into operations with prices. */
export function readContract(document: Json, fault: Fault, prices = PRICES): Contract {
  const contract: Contract = { document, paid: [], given: [], free: [] };
  if (!isObject(document.paths)) fault(['paths'], 'must be an object with the paths of the operations');
  for (const [path, item] of Object.entries(objectOf(document.paths))) {
    if (!isObject(item)) fault(['paths', path], 'must be an object');
    for (const method of METHODS.filter(m => objectOf(item)[m] !== undefined)) {
      const operation = objectOf(item)[method] as Place['operation'];
      readOperation(contract, { document, path, method, item: objectOf(item), operation }, fault, prices);
    }
  }
  repeatedIds(document, fault);
  clashes(contract, fault);
  reserved(contract, fault);
  readSections(contract, fault);
  return contract;
}

function repeatedIds({ paths }: Json, fault: Fault): void {
  const first = new Map<string, string>();
  for (const [path, item] of Object.entries(objectOf(paths)))
    for (const method of METHODS) {
      const { operationId: id } = objectOf(objectOf(item)[method]);
      if (typeof id !== 'string') continue;
      const other = first.get(id);
      if (other === undefined) first.set(id, `${method.toUpperCase()} ${path}`);
      else
        fault(
          ['paths', path, method, 'operationId'],
          `repeats the operationId ${id} of ${other}: give each operation its own`,
        );
    }
}

function readOperation(contract: Contract, place: Place, fault: Fault, prices: typeof PRICES): void {
  const { path, method, operation } = place;
  const at = ['paths', path, method];
  if (!isObject(operation)) return fault(at, 'must be an object');
  if (typeof operation.operationId !== 'string')
    return fault(
      at,
      `has no operationId, which buyers and handlers use as its name: operationId: ${idOf(method, path)}`,
    );
  const given = 'x-free-proxy' in operation;
  if ('x-free' in operation && given)
    return fault(
      [...at, 'x-free'],
      'limits free calls, but x-free-proxy makes all calls free: remove one of the two',
    );
  if ('x-price' in operation && given)
    return fault([...at, 'x-free-proxy'], 'makes a priced operation free: remove one of the two');
  if (given) {
    const read = readGiven(place, fault);
    if (read) contract.given.push(read);
    return;
  }
  if ('x-price' in operation || '402' in objectOf(operation.responses)) {
    const priced = readPriced(place, fault, prices);
    if (priced) contract.paid.push(priced);
    return;
  }
  if ('x-free' in operation)
    return fault(
      [...at, 'x-free'],
      `needs a price, because it makes some calls of a paid operation free: ${PRICE}`,
    );
  if ('x-upstream' in operation)
    return fault(
      at,
      `has an x-upstream but neither a price nor x-free-proxy. If it is sold: ${PRICE}; if it is free: x-free-proxy: true`,
    );
  readFree(contract, place, fault);
}

/** get /pets/{petId} → getPetsPetId */
function idOf(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter(Boolean);
  return method + words.map(word => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function readFree({ free }: Contract, { path, method, operation }: Place, fault: Fault): void {
  const at = ['paths', path, method];
  if (method !== 'get') return fault(at, `is free, so it must be a GET; if it is sold: ${PRICE}`);
  const answers = operation['x-answers'] === true;
  if ('x-answers' in operation && (!answers || parameterNames(path).length !== 1))
    return fault([...at, 'x-answers'], 'must be true, and its path must have one parameter, the key');
  if (path.includes('{') && !answers)
    return fault(at, `is free, so its path must have no parameters; if it is sold: ${PRICE}`);
  const { operationId: id, summary = id, description = summary, 'x-mcp': mcp } = operation;
  if (mcp !== undefined && typeof mcp !== 'boolean') return fault([...at, 'x-mcp'], 'must be true or false');
  const tool = mcp === true ? { mcp: { summary: String(summary), description: String(description) } } : {};
  free.push({ id, path, ...(answers ? { answers } : {}), ...tool });
}

/** Reads the documents about sections of the service. They name paid operations, so all of those are read first. */
function readSections({ document, paid, free }: Contract, fault: Fault): void {
  for (const operation of free) {
    const described = objectOf(objectOf(objectOf(document.paths)[operation.path]).get);
    for (const [key, name] of [
      ['x-discovery', 'discovery'],
      ['x-health', 'health'],
    ] as const) {
      if (!(key in described)) continue;
      const place = ['paths', operation.path, 'get', key];
      const ids = sectionOf(described[key], paid, message => fault(place, message));
      if (ids) operation[name] = ids;
    }
  }
}

/** `{ tags: […], operations: […] }`: the ids of the paid operations that have one of the tags or ids. */
function sectionOf(
  section: unknown,
  paid: PricedOperation[],
  fault: (message: string) => void,
): string[] | undefined {
  const { tags = [], operations = [], ...others } = objectOf(section);
  const names = (list: unknown): list is string[] =>
    Array.isArray(list) && list.every(each => typeof each === 'string');
  if (!isObject(section) || Object.keys(others).length > 0 || !names(tags) || !names(operations))
    return void fault('must be { tags: [names of tags] } or { operations: [operationIds] }');
  for (const id of operations.filter(each => !paid.some(operation => operation.id === each)))
    fault(`lists ${id}, which is not a paid operation`);
  return paid
    .filter(({ id, tags: own }) => operations.includes(id) || own.some(tag => tags.includes(tag)))
    .map(({ id }) => id);
}

/** Reports operations that would match the same call. */
function clashes({ paid, given, free }: Contract, fault: Fault): void {
  const seen = new Map<string, string>();
  const all = [...paid, ...given, ...free.map(operation => ({ ...operation, method: 'GET' }))];
  for (const { path, method } of all) {
    const key = `${method} ${unnamed(path)}`;
    const other = seen.get(key);
    if (other !== undefined) fault(['paths', path], `is the same path as ${other}`);
    seen.set(key, path);
  }
}

/** Rejects paths and names that the server uses itself, because calls to them would never reach the operation. */
function reserved({ paid, given, free }: Contract, fault: Fault): void {
  for (const { id, path } of [...paid, ...given, ...free]) {
    if (path === MCP_PATH)
      fault(['paths', path], 'the server itself answers MCP clients at this path: choose another one');
    if (id === PICK_UP)
      fault(['paths', path], `${PICK_UP} is an MCP tool of the server itself: choose another operationId`);
  }
}
