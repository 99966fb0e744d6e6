/** A value at a path, with the raw text of its path parameters, in order. */
export type Found<T> = { value: T; raw: string[] };

/** A segment with one parameter and the fixed text around it: `{id}` or `{id}.json`. */
type Slot<T> = { before: string; after: string; node: Node<T> };
type Node<T> = { literals: Map<string, Node<T>>; slots: Slot<T>[]; value?: T };

/** A path with more of them matches no template. */
const MAX_SEGMENTS = 64;
const PARAMETER = /\{([^{}/]+)\}/g;

/** The names of the path parameters of a template, in order. */
export function parameterNames(template: string): string[] {
  return [...template.matchAll(PARAMETER)].map(match => match[1] ?? '');
}

/** What is wrong with a path template, if anything. */
export function templateFault(template: string): string | undefined {
  if (!template.startsWith('/')) return 'must begin with /';
  if (/[?#\s]/.test(template)) return 'must have no query, fragment or white space';
  for (const segment of template.split('/')) {
    const fixed = segment.replace(PARAMETER, '');
    if (/[{}]/.test(fixed)) return `has braces that are no parameter: ${segment}`;
    // Several would have to be told apart by trial, which takes a hostile path a long time.
    if (parameterNames(segment).length > 1) return `has more than one parameter in a segment: ${segment}`;
  }
  if (template.split('/').length > MAX_SEGMENTS) return `has more than ${MAX_SEGMENTS} segments`;
  const names = parameterNames(template);
  return new Set(names).size < names.length ? 'names a parameter twice' : undefined;
}

/**
 * Values by path template, found by raw path: no decoding, no trailing slash, no case folding. Fixed text takes precedence over
 * parameters, as OpenAPI demands. A parameter is never empty and never contains a slash. The time grows with the number of segments,
 * not with that of templates.
 */
export class PathIndex<T> {
  readonly #exact = new Map<string, T>();
  readonly #root: Node<T> = { literals: new Map(), slots: [] };

  /** The value of a template, which is created if there is none yet. Templates that differ only in names of parameters are one. */
  at(template: string, create: () => T): T {
    if (parameterNames(template).length === 0) {
      let value = this.#exact.get(template);
      if (value === undefined) this.#exact.set(template, (value = create()));
      return value;
    }
    let node = this.#root;
    for (const segment of template.split('/')) node = childOf(node, segment);
    return (node.value ??= create());
  }

  find(path: string): Found<T> | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) return { value: exact, raw: [] };
    if (this.#root.literals.size === 0) return undefined;
    const raw: string[] = [];
    const segments = path.split('/', MAX_SEGMENTS + 1);
    if (segments.length > MAX_SEGMENTS) return undefined;
    const value = search(this.#root, segments, 0, raw);
    return value === undefined ? undefined : { value, raw };
  }
}

function childOf<T>(node: Node<T>, segment: string): Node<T> {
  const [name] = parameterNames(segment);
  if (name === undefined) {
    let child = node.literals.get(segment);
    if (!child) node.literals.set(segment, (child = { literals: new Map(), slots: [] }));
    return child;
  }
  const [before = '', after = ''] = segment.split(`{${name}}`);
  const known = node.slots.find(slot => slot.before === before && slot.after === after);
  if (known) return known.node;
  const slot: Slot<T> = { before, after, node: { literals: new Map(), slots: [] } };
  node.slots.push(slot);
  // More fixed text first.
  node.slots.sort((a, b) => b.before.length + b.after.length - (a.before.length + a.after.length));
  return slot.node;
}

function search<T>(node: Node<T>, segments: string[], at: number, raw: string[]): T | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.value;
  const literal = node.literals.get(segment);
  const found = literal && search(literal, segments, at + 1, raw);
  if (found !== undefined) return found;
  for (const { before, after, node: next } of node.slots) {
    if (segment.length <= before.length + after.length) continue;
    if (!segment.startsWith(before) || !segment.endsWith(after)) continue;
    raw.push(segment.slice(before.length, segment.length - after.length));
    const value = search(next, segments, at + 1, raw);
    if (value !== undefined) return value;
    raw.pop();
  }
  return undefined;
}
