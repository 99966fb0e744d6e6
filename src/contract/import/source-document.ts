import { parse } from 'yaml';
import type { Json } from '../json.js';
import { isObject, objectOf } from '../references.js';

/** The document can't be imported. The message says why, and what to do. */
export class ImportFault extends Error {}

/** An operation can't be sold. The message says why. */
export class LeftOut extends Error {}

export const MAX_DOCUMENT_BYTES = 32 << 20;
/** The deepest nesting: no real document is deeper, and the code below recurses into it. */
const MAX_DEPTH = 200;
/** The maximum number of values in all files together, because all of them are held in memory. */
const MAX_VALUES = 4_000_000;
const MAX_FILES = 100;
const MAX_HOPS = 16;

/** Reads a file to which a document refers. Rejects with an error that says why the file can't be read. */
export type Load = (file: URL) => Promise<string>;

/** An OpenAPI document with the files it refers to. References to other files are absolute URLs. */
export class Source {
  readonly document: Json;
  /** The version: 2; 3 for 3.0; 3.1 for 3.1 and later. */
  readonly version: 2 | 3 | 3.1;
  readonly #files: ReadonlyMap<string, unknown>;

  constructor(document: Json, files: ReadonlyMap<string, unknown> = new Map()) {
    this.document = document;
    this.version = versionOf(document);
    this.#files = files;
  }

  /**
   * Resolves a value: follows references to their target, and returns any other value as it is.
   * @throws LeftOut for a reference that leads nowhere
   */
  follow(value: unknown): Json {
    let node = value;
    for (let hops = 0; isObject(node) && typeof node.$ref === 'string'; hops++) {
      if (hops >= MAX_HOPS) throw new LeftOut(`the reference ${node.$ref} is circular`);
      const { $ref: reference, ...beside } = node;
      const target = this.target(reference);
      node = { ...objectOf(target), ...beside };
    }
    return objectOf(node);
  }

  /** The target of a reference. @throws LeftOut */
  target(reference: string): unknown {
    const at = reference.indexOf('#');
    const file = at < 0 ? reference : reference.slice(0, at);
    const root = file === '' ? this.document : this.#files.get(file);
    if (root instanceof Error) throw new LeftOut(`the reference ${reference} can't be read: ${root.message}`);
    const found = keysOf(at < 0 ? '' : reference.slice(at + 1)).reduce<unknown>(
      (node, key) =>
        (isObject(node) || Array.isArray(node)) && Object.hasOwn(node, key)
          ? (node as Record<string, unknown>)[key]
          : undefined,
      root,
    );
    if (found === undefined) throw new LeftOut(`the reference ${reference} leads nowhere`);
    return found;
  }
}

function keysOf(pointer: string): string[] {
  if (pointer === '' || pointer === '/') return [];
  return pointer
    .replace(/^\//, '')
    .split('/')
    .map(key => decoded(key).replaceAll('~1', '/').replaceAll('~0', '~'));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Reads a document and the files to which it refers.
 * @param at its address: a URL of a file or on the web
 * @throws ImportFault
 */
export async function readSource(text: string, at: URL, load: Load): Promise<Source> {
  const document = parsedText(text, at.href);
  return sourceOf(document, at, load);
}

/** Like readSource, for a document that has already been read. @throws ImportFault */
export async function sourceOf(document: Json, at: URL, load: Load): Promise<Source> {
  versionOf(document);
  const files = new Map<string, unknown>();
  const budget = { values: MAX_VALUES, bytes: MAX_DOCUMENT_BYTES };
  const open = referredFrom(document, undefined, at, budget);
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (files.has(file)) continue;
    const read = files.size < MAX_FILES ? await readFile(new URL(file), at, load, budget) : tooMany();
    files.set(file, read);
    if (!(read instanceof Error)) open.push(...referredFrom(read, file, new URL(file), budget));
  }
  return new Source(document, files);
}

const tooMany = (): Error => new Error(`the document refers to more than ${MAX_FILES} files`);

async function readFile(file: URL, from: URL, load: Load, budget: { bytes: number }): Promise<unknown> {
  // A document from the web must not read files of this machine or make it send requests to other hosts.
  const near = file.protocol === 'file:' ? from.protocol === 'file:' : file.origin === from.origin;
  if (!near) return new Error('only files next to the document are read; bundle them into one');
  try {
    const text = await load(file);
    budget.bytes -= text.length;
    return budget.bytes < 0 ? new Error('the files together are too large') : parsedText(text, file.href);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Makes the references of a file absolute, and returns the other files they point to. @param own undefined for the document itself */
function referredFrom(root: unknown, own: string | undefined, at: URL, budget: { values: number }): string[] {
  const found = new Set<string>();
  const open: [unknown, number][] = [[root, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [node, depth] = next;
    if (typeof node !== 'object' || node === null) continue;
    if (depth > MAX_DEPTH) throw new ImportFault(`The document nests more than ${MAX_DEPTH} levels deep.`);
    const values = Object.values(node) as unknown[];
    budget.values -= values.length;
    if (budget.values < 0) throw new ImportFault(`The document has more than ${MAX_VALUES} values.`);
    for (const value of values) open.push([value, depth + 1]);
    const { $ref: reference } = node as { $ref?: unknown };
    if (typeof reference === 'string') (node as Json).$ref = wholeReference(reference, own, at, found);
  }
  return [...found];
}

function wholeReference(reference: string, own: string | undefined, at: URL, found: Set<string>): string {
  const [file = '', pointer = ''] = reference.split('#', 2);
  if (file === '') return own === undefined ? reference : `${own}#${pointer}`;
  if (!URL.canParse(file, at.href)) return reference;
  const whole = new URL(file, at).href;
  if (whole === withoutHash(at) && own === undefined) return `#${pointer}`;
  found.add(whole);
  return `${whole}#${pointer}`;
}

function withoutHash(url: URL): string {
  const copy = new URL(url);
  copy.hash = '';
  return copy.href;
}

/** @throws ImportFault */
export function parsedText(text: string, name: string): Json {
  if (text.length > MAX_DOCUMENT_BYTES)
    throw new ImportFault(`${name} is larger than ${MAX_DOCUMENT_BYTES >> 20} MB.`);
  if (/^\s*<(!doctype|html)/i.test(text.slice(0, 200)))
    throw new ImportFault(
      `${name} is a page in HTML, not an OpenAPI document. Such a page usually links to it, often as openapi.json.`,
    );
  const value = readAny(text.replace(/^\ufeff/, ''), name);
  if (isObject(value)) return value;
  throw new ImportFault(`${name} is not an OpenAPI document (an object in JSON or YAML).`);
}

function readAny(text: string, name: string): unknown {
  if (/^\s*\{/.test(text)) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      // Not JSON: YAML may also begin with a brace.
    }
  }
  try {
    // With a YAML alias, the same object would occur in several places.
    return unshared(parse(text, { logLevel: 'error' }));
  } catch (error) {
    const [line = ''] = (error as Error).message.split('\n', 1);
    throw new ImportFault(`${name} is neither JSON nor YAML: ${line.slice(0, 300)}`);
  }
}

/** A copy in which no object occurs twice and dates are strings, as in JSON. */
function unshared(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}

function versionOf({ swagger, openapi }: Json): Source['version'] {
  const written = openapi ?? swagger;
  const version = typeof written === 'string' || typeof written === 'number' ? String(written) : '';
  if (openapi === undefined && /^2(\.0)?$/.test(version)) return 2;
  if (/^3\.0(\.|$)/.test(version)) return 3;
  if (/^3(\.[1-9]|$)/.test(version)) return 3.1;
  throw new ImportFault(
    version === ''
      ? "It is not an OpenAPI document: it has neither openapi: '3.…' nor swagger: '2.0'."
      : `OpenAPI ${version.slice(0, 20)} is not supported: use Swagger 2.0 or OpenAPI 3.0 to 3.2.`,
  );
}
