/** A segment with one parameter and the fixed text around it: `{id}` or `{id}.json`. */
type Slot = { name: string; before: string; after: string };
type Branch<T> = Slot & { node: Node<T> };
type Node<T> = { literals: Map<string, Node<T>>; slots: Branch<T>[]; values: T[] };

/** A path with more segments matches no template. */
const MAX_SEGMENTS = 64;
const PARAMETER = /\{([^{}/]+)\}/g;

/** The names of the path parameters of a template, in order. */
export function parameterNames(template: string): string[] {
  return [...template.matchAll(PARAMETER)].map(match => match[1] ?? '');
}

/** The template without the names of its parameters. Templates with the same form match the same paths. */
export function unnamed(template: string): string {
  return template.replace(PARAMETER, '{}');
}

/** What is wrong with a path template, if anything. */
export function templateFault(template: string): string | undefined {
  if (!template.startsWith('/')) return 'must begin with /';
  if (/[?#\s]/.test(template)) return 'must have no query, fragment or white space';
  const names = parameterNames(template);
  for (const segment of template.split('/')) {
    const fixed = segment.replace(PARAMETER, '');
    if (/[{}]/.test(fixed)) return `has braces that are not a parameter: ${segment}`;
    // Dividing a segment between several parameters needs backtracking, which takes long for a hostile path.
    if (parameterNames(segment).length > 1) return `has more than one parameter in a segment: ${segment}`;
    // openapi-backend would read these characters as part of its regular expression.
    if (names.length > 0 && /[$()*+[\\\]^|]/.test(fixed))
      return `has a character that is not allowed next to parameters: ${segment}`;
  }
  if (template.split('/').length > MAX_SEGMENTS) return `has more than ${MAX_SEGMENTS} segments`;
  const odd = names.find(name => !/^[\w-]+$/.test(name));
  if (odd !== undefined) return `has a parameter whose name is not made of letters, digits, - and _: ${odd}`;
  return new Set(names).size < names.length ? 'names a parameter twice' : undefined;
}

function slotOf(segment: string): Slot | undefined {
  const [name] = parameterNames(segment);
  if (name === undefined) return undefined;
  const [before = '', after = ''] = segment.split(`{${name}}`);
  return { name, before, after };
}

/** The values of a path's parameters as sent, by name. The template must match the path. */
export function rawParameters(template: string, path: string): Record<string, string> {
  if (!template.includes('{')) return {};
  const sent = path.split('/');
  const found = template.split('/').flatMap((segment, index) => {
    const slot = slotOf(segment);
    const text = sent[index] ?? '';
    return slot ? [[slot.name, text.slice(slot.before.length, text.length - slot.after.length)]] : [];
  });
  return Object.fromEntries(found) as Record<string, string>;
}

/**
 * Finds the values whose templates match a raw path, so that the router need not try a thousand templates for each request. Returns all
 * that match. The time grows with the number of segments.
 */
export class PathIndex<T extends { path: string }> {
  readonly #all: readonly T[];
  readonly #exact = new Map<string, T[]>();
  readonly #root: Node<T> = nodeOf();

  /** @param values several may have the same path */
  constructor(values: readonly T[]) {
    this.#all = values;
    for (const value of values) {
      const { path } = value;
      if (parameterNames(path).length > 0) this.#leaf(path).values.push(value);
      else this.#exact.set(path, [...(this.#exact.get(path) ?? []), value]);
    }
    for (const [path, own] of this.#exact) this.#exact.set(path, this.#search(path, own));
  }

  /** The values whose templates match, in the order in which they were given. */
  candidates(path: string): T[] {
    return this.#exact.get(path) ?? this.#search(path, []);
  }

  #leaf(template: string): Node<T> {
    let node = this.#root;
    for (const segment of template.split('/')) node = childOf(node, segment);
    return node;
  }

  #search(path: string, exact: T[]): T[] {
    if (this.#root.literals.size === 0) return exact;
    const found = [...exact];
    const segments = path.split('/', MAX_SEGMENTS + 1);
    if (segments.length <= MAX_SEGMENTS) search(this.#root, segments, 0, found);
    return found.length > 1 ? found.sort((a, b) => this.#all.indexOf(a) - this.#all.indexOf(b)) : found;
  }
}

function nodeOf<T>(): Node<T> {
  return { literals: new Map(), slots: [], values: [] };
}

function childOf<T>(node: Node<T>, segment: string): Node<T> {
  const slot = slotOf(segment);
  if (!slot) {
    const child = node.literals.get(segment) ?? nodeOf<T>();
    node.literals.set(segment, child);
    return child;
  }
  const known = node.slots.find(({ before, after }) => before === slot.before && after === slot.after);
  if (known) return known.node;
  const branch = { ...slot, node: nodeOf<T>() };
  node.slots.push(branch);
  return branch.node;
}

function search<T>(node: Node<T>, segments: string[], at: number, found: T[]): void {
  const segment = segments[at];
  if (segment === undefined) return void found.push(...node.values);
  const literal = node.literals.get(segment);
  if (literal) search(literal, segments, at + 1, found);
  for (const { before, after, node: next } of node.slots) {
    const fits = segment.length > before.length + after.length;
    if (fits && segment.startsWith(before) && segment.endsWith(after)) search(next, segments, at + 1, found);
  }
}
