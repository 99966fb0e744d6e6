import { readContract } from '../contract.js';
import { expand } from '../expand/expand.js';
import type { Json } from '../json.js';
import { objectOf } from '../references.js';
import { reportSchemas } from '../schema-faults.js';
import { hasNoBody } from './copy-operation.js';
import { ImportFault } from './source-document.js';

/** An operation that may be sold, in the form of the contract. */
export type Candidate = { path: string; method: string; operation: Json; notes: string[] };

type Placed = { path: string[]; message: string };

/** The maximum number of rounds. After a fault in one part of an operation, other parts are not read, so several rounds may be needed. */
const MAX_ROUNDS = 8;
const MAX_REASONS = 2;

/**
 * Leaves out what the contract reader refuses; only that reader knows what can be sold. Optional parts and examples of the operation are
 * removed first.
 * @param documentOf builds the contract that sells the given candidates
 * @returns why each of the rejected candidates can't be sold
 */
export async function settle<T extends Candidate>(
  all: readonly T[],
  documentOf: (candidates: readonly T[]) => Json,
): Promise<Map<T, string>> {
  const refused = new Map<T, string>();
  const mended = new Map<T, Set<string>>();
  for (let round = 0; ; round++) {
    const open = all.filter(each => !refused.has(each));
    if (open.length === 0) return refused;
    const document = documentOf(open);
    const faults = await faultsOf(document);
    if (faults.length === 0) return refused;
    const before = refused.size;
    let changed = false;
    const byPlace = grouped(faults);
    for (const each of open) {
      const own = [...(byPlace.get(each.path) ?? []), ...(byPlace.get(`${each.path} ${each.method}`) ?? [])];
      if (own.length === 0) continue;
      const known = mended.get(each) ?? new Set();
      mended.set(each, known);
      const asked: Asked = { document, parameters: parametersOf(each), known };
      if (round < MAX_ROUNDS && own.every(fault => mend(each, fault, asked))) changed = true;
      else refused.set(each, wordsOf(own));
    }
    if (!changed && refused.size === before)
      throw new ImportFault(
        `The document can't be sold: ${faults.map(({ path, message }) => `${path.join('.')}: ${message}`)[0]}`,
      );
  }
}

async function faultsOf(own: Json): Promise<Placed[]> {
  const { document, conflicts } = expand(own);
  const faults: Placed[] = [...conflicts];
  const fault = (path: string[], message: string): void => void faults.push({ path, message });
  await reportSchemas(readContract(document, fault), fault);
  return faults;
}

/** Faults by path, or by path and method. */
function grouped(faults: readonly Placed[]): Map<string, Placed[]> {
  const groups = new Map<string, Placed[]>();
  for (const fault of faults) {
    const [top, path = '', method] = fault.path;
    if (top !== 'paths') continue;
    const key = method === undefined ? path : `${path} ${method}`;
    groups.set(key, [...(groups.get(key) ?? []), fault]);
  }
  return groups;
}

function wordsOf(faults: readonly Placed[]): string {
  const reasons = new Set(
    faults.map(({ path: [, , , part, status], message }) => {
      // Drops the advice after a message's colon: it is for contracts written by hand, and this one is imported.
      const [fault = ''] = message.replace(/\s+/g, ' ').split(/: (?=[\w'-]+: |- \{)/, 1);
      return [part, part === 'responses' ? status : undefined, fault].filter(Boolean).join(' ');
    }),
  );
  return [...reasons].slice(0, MAX_REASONS).join('; ');
}

/** The document that was read, the parameters of one operation, and the removals already tried, so that none is tried twice. */
type Asked = { document: Json; parameters: readonly Json[]; known: Set<string> };

/** Removes the faulty part if the operation can be sold without it. */
function mend(
  candidate: Candidate,
  { path, message }: Placed,
  { document, parameters, known }: Asked,
): boolean {
  const [, , , part, ...rest] = path;
  const isExample = path.at(-1) === 'example';
  const first = (name: string, change: () => boolean): boolean => {
    if (known.has(name)) return false;
    known.add(name);
    return change();
  };
  const withoutExamples = (described: readonly Json[], name: string): boolean =>
    first(`${name} own`, () => withoutOwnExamples(described)) ||
    (isExample && first(`${name} schema`, () => withoutExamplesOfSchemas(described, document)));
  if (part === 'parameters' && /^\d+$/.test(String(rest[0])))
    return withoutParameter(candidate, parameters[Number(rest[0])]);
  if (part === 'parameters') {
    const named = parameters.filter(({ name }) => message.split(/[\s:]/).includes(String(name)));
    return withoutExamples(
      named.length > 0 ? named : parameters,
      `parameters ${named.map(({ name }) => name).join(' ')}`,
    );
  }
  if (isExample) return withoutExamples([holderAt(candidate.operation, path.slice(3, -1))], path.join(' '));
  if (part === 'requestBody' && rest.length === 0) return first('body', () => withoutBody(candidate));
  return false;
}

function holderAt(operation: Json, path: readonly string[]): Json {
  return path.reduce((node, key) => objectOf(node[key]), operation);
}

function parametersOf({ operation }: Candidate): Json[] {
  return Array.isArray(operation.parameters) ? (operation.parameters as Json[]) : [];
}

/** Removes all examples of the operation itself. The build makes new ones from the schemas. */
function withoutOwnExamples(described: readonly Json[]): boolean {
  for (const holder of described)
    for (const each of [holder, objectOf(holder.schema)]) {
      delete each.example;
      delete each.examples;
      if (each !== holder) delete each.default;
    }
  return true;
}

/** Removes examples from the schemas that an operation refers to. Tried second, because other operations may refer to them, too. */
function withoutExamplesOfSchemas(described: readonly Json[], document: Json): boolean {
  for (const { schema } of described) {
    const target = referred(document, objectOf(schema));
    for (const key of ['example', 'examples', 'default']) delete target[key];
  }
  return true;
}

/** The component that a schema refers to. */
function referred(document: Json, { $ref: reference }: Json): Json {
  const name = typeof reference === 'string' ? reference.split('/').at(-1) : undefined;
  return name === undefined ? {} : objectOf(objectOf(objectOf(document.components).schemas)[name]);
}

function withoutParameter({ operation, notes }: Candidate, wrong: Json | undefined): boolean {
  if (!wrong || wrong.required === true || '$ref' in wrong) return false;
  const list = operation.parameters as Json[];
  if (list.includes(wrong)) notes.push(`without ${String(wrong.in)} ${String(wrong.name)}`);
  operation.parameters = list.filter(each => each !== wrong);
  return true;
}

function withoutBody({ method, operation, notes }: Candidate): boolean {
  if (!hasNoBody(method) || objectOf(operation.requestBody).required === true) return false;
  notes.push('without its body, which is optional');
  delete operation.requestBody;
  return true;
}
