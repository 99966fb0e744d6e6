import { isMap, isScalar, parseDocument, type Document } from 'yaml';
import { operationsOf } from '../../contract/expand/draft.js';
import type { Json } from '../../contract/json.js';

/** The contract can't be edited as requested; `message` says why and what to do. */
export class OperationFault extends Error {}

/** The kinds of components that operations can refer to. */
const KINDS = ['parameters', 'headers', 'responses', 'schemas'] as const;

const REFERENCE = /#\/components\/[\w-]+\/[\w.-]+/g;

/** An operation and its place in the document. */
export type Found = { path: string; method: string; operation: Json };

/**
 * The text of an openapi.yaml, edited in place: a change adds or removes whole lines, and every other byte stays, comments and order
 * included. The yaml package gives the position of a node; indentation determines its end.
 */
export class ContractText {
  #text: string;
  #yaml: Document;

  /** @throws OperationFault if the text is not YAML */
  constructor(text: string) {
    this.#text = text.endsWith('\n') ? text : `${text}\n`;
    this.#yaml = this.#parse();
  }

  get text(): string {
    return this.#text;
  }

  get document(): Json {
    return this.#yaml.toJS() as Json;
  }

  find(operationId: string): Found | undefined {
    return this.operations().find(({ operation }) => operation['operationId'] === operationId);
  }

  operations(): Found[] {
    return operationsOf(this);
  }

  has(keys: string[]): boolean {
    return this.#yaml.hasIn(keys);
  }

  /**
   * Adds an operation: to its path if the contract already has that path, otherwise after the last paid operation. `lines` are indented for
   * a path item.
   */
  addOperation(path: string, lines: string[]): void {
    if (this.has(['paths', path])) return this.#insert(this.#endOf(['paths', path]), lines);
    const paid = this.operations().filter(({ operation }) => 'x-price' in operation);
    const last = paid.at(-1)?.path;
    const at = last === undefined ? this.#lineOf(['paths']) + 1 : this.#endOf(['paths', last]);
    this.#insert(at, [`  ${keyText(path)}:`, ...lines]);
  }

  /**
   * Adds a component at the end of its kind, unless one with that name exists. `lines` must have the right
   * indentation.
   */
  addComponent(kind: (typeof KINDS)[number], name: string, lines: string[]): void {
    if (this.has(['components', kind, name])) return;
    if (!this.has(['components'])) this.#insert(this.#lines().length, ['components:']);
    if (!this.has(['components', kind])) this.#insert(this.#endOf(['components']), [`  ${kind}:`]);
    this.#insert(this.#endOf(['components', kind]), [`    ${name}:`, ...lines]);
  }

  /** Adds a tag at the end of the list, unless it exists. */
  addTag(name: string, description: string): void {
    if (this.#tags().includes(name)) return;
    if (!this.has(['tags'])) this.#insert(this.#lineOf(['paths']), ['tags:']);
    const lines = [`  - name: ${name}`, `    description: ${description}`];
    this.#insert(this.#endOf(['tags']), lines);
  }

  /**
   * Removes an operation and everything that only it needed: its tag, its components, and section documents that list only it. @returns the
   * ids of all removed operations
   */
  removeOperation(operationId: string): string[] {
    const unused = new Set(this.#unused());
    this.#cutOperation(operationId);
    const emptied = this.#emptied(operationId);
    for (const document of emptied) this.#cutOperation(document);
    // The next round removes what only a removed component needed.
    for (let more = true; more;) {
      const [gone] = this.#unused().filter(each => !unused.has(each));
      more = gone !== undefined;
      if (gone) this.#cutUnused(gone);
    }
    return [operationId, ...emptied];
  }

  /** Copies from `other` the components that this contract refers to but does not have. */
  copyMissing(other: ContractText): void {
    for (let more = true; more;) {
      const [missing] = this.#missing().filter(([kind, name]) => other.has(['components', kind, name]));
      more = missing !== undefined;
      if (missing) this.addComponent(...missing, other.#linesBelow(['components', ...missing]));
    }
  }

  #missing(): [(typeof KINDS)[number], string][] {
    const referred = new Set(JSON.stringify(this.document).match(REFERENCE));
    return [...referred].flatMap((reference): [(typeof KINDS)[number], string][] => {
      const [, , kind = '', name = ''] = reference.split('/');
      const known = KINDS.find(each => each === kind);
      return known && !this.has(['components', known, name]) ? [[known, name]] : [];
    });
  }

  #linesBelow(keys: string[]): string[] {
    return this.#lines().slice(this.#lineOf(keys) + 1, this.#endOf(keys));
  }

  #cutOperation(operationId: string): void {
    const found = this.find(operationId);
    if (!found)
      throw new OperationFault(`openapi.yaml has no operation ${operationId}. Nothing was changed.`);
    const { path, method } = found;
    const others = this.operations().some(other => other.path === path && other.method !== method);
    this.#cut(others ? ['paths', path, method] : ['paths', path]);
  }

  /** Removes an operation from the sections that list it by name. @returns the documents that list nothing any longer */
  #emptied(operationId: string): string[] {
    const emptied: string[] = [];
    for (const { path, method, operation } of this.operations()) {
      for (const key of ['x-discovery', 'x-health']) {
        const section = operation[key] as { tags?: string[]; operations?: string[] } | undefined;
        if (!section) continue;
        if (section.operations?.includes(operationId))
          this.#setList(
            ['paths', path, method, key, 'operations'],
            section.operations.filter(id => id !== operationId),
          );
        if (!this.#lists(section, operationId)) emptied.push(String(operation['operationId']));
      }
    }
    return emptied;
  }

  #lists(
    { tags = [], operations = [] }: { tags?: string[]; operations?: string[] },
    without: string,
  ): boolean {
    return this.operations()
      .filter(({ operation }) => 'x-price' in operation && operation['operationId'] !== without)
      .some(
        ({ operation }) =>
          operations.includes(String(operation['operationId'])) ||
          ((operation['tags'] ?? []) as string[]).some(tag => tags.includes(tag)),
      );
  }

  /** Components and tags that nothing refers to, as `schemas/Summary` and `tags/Text`. */
  #unused(): string[] {
    const document = this.document;
    const components = (document['components'] ?? {}) as Record<string, Json>;
    const referred = new Set(JSON.stringify(document).match(REFERENCE));
    const used = new Set(this.operations().flatMap(({ operation }) => (operation['tags'] ?? []) as string[]));
    return [
      ...KINDS.flatMap(kind =>
        Object.keys(components[kind] ?? {})
          .filter(name => !referred.has(`#/components/${kind}/${name}`))
          .map(name => `${kind}/${name}`),
      ),
      ...this.#tags()
        .filter(tag => !used.has(tag))
        .map(tag => `tags/${tag}`),
    ];
  }

  #cutUnused(named: string): void {
    const [kind = '', ...rest] = named.split('/');
    const name = rest.join('/');
    if (kind === 'tags') return this.#cut(['tags', this.#tags().indexOf(name)]);
    const alone = Object.keys((this.document['components'] as Record<string, Json>)[kind] ?? {}).length === 1;
    this.#cut(alone ? ['components', kind] : ['components', kind, name]);
  }

  #tags(): string[] {
    return ((this.document['tags'] ?? []) as { name: string }[]).map(({ name }) => name);
  }

  #parse(): Document {
    const yaml = parseDocument(this.#text);
    const [error] = yaml.errors;
    if (error) throw new OperationFault(`openapi.yaml is not valid YAML: ${error.message}`);
    return yaml;
  }

  #lines(): string[] {
    return this.#text.slice(0, -1).split('\n');
  }

  #replace(lines: string[]): void {
    this.#text = `${lines.join('\n')}\n`;
    this.#yaml = this.#parse();
  }

  #insert(at: number, lines: string[]): void {
    this.#replace(this.#lines().toSpliced(at, 0, ...lines));
  }

  /** Removes a node with the comment lines directly above it. */
  #cut(keys: (string | number)[]): void {
    const lines = this.#lines();
    const [first, end] = [this.#lineOf(keys), this.#endOf(keys)];
    let start = first;
    const indent = indentOf(lines[first] ?? '');
    while (isCommentAt(lines[start - 1] ?? '', indent)) start -= 1;
    this.#replace(lines.toSpliced(start, end - start));
  }

  #setList(keys: string[], values: string[]): void {
    const node = this.#yaml.getIn(keys, true) as { range?: [number, number, number] } | undefined;
    if (!node?.range || this.#text[node.range[0]] !== '[')
      throw new OperationFault(
        `openapi.yaml: ${keys.join('.')} must be written as a list in brackets: [a, b]`,
      );
    const [start, end] = node.range;
    this.#text = `${this.#text.slice(0, start)}[${values.join(', ')}]${this.#text.slice(end)}`;
    this.#yaml = this.#parse();
  }

  /** The line on which a key, or an item of a list, begins. */
  #lineOf(keys: (string | number)[]): number {
    const key = keys.at(-1);
    const parent: unknown = keys.length > 1 ? this.#yaml.getIn(keys.slice(0, -1), true) : this.#yaml.contents;
    let node = this.#yaml.getIn(keys, true) as { range?: [number, number, number] } | undefined;
    if (isMap(parent)) {
      if (parent.flow)
        throw new OperationFault(`openapi.yaml: ${keys.slice(0, -1).join('.')} must be in block style`);
      const pair = parent.items.find(({ key: each }) => isScalar(each) && String(each.value) === key);
      node = pair?.key as typeof node;
    }
    if (!node?.range) throw new OperationFault(`openapi.yaml has no ${keys.join('.')}`);
    return this.#text.slice(0, node.range[0]).split('\n').length - 1;
  }

  /**
   * The line after the last one that belongs to a node: the next line that is not indented deeper, without the blank lines and comments
   * before it.
   */
  #endOf(keys: (string | number)[]): number {
    const lines = this.#lines();
    const first = this.#lineOf(keys);
    const indent = indentOf(lines[first] ?? '');
    let end = first + 1;
    for (let at = end; at < lines.length; at++) {
      const line = lines[at] ?? '';
      if (!line.trim() || line.trimStart().startsWith('#')) continue;
      // The items of a list may have the same indentation as their key.
      const item = line.slice(indent).startsWith('- ') && !lines[first]?.slice(indent).startsWith('- ');
      if (indentOf(line) <= indent && !item) break;
      end = at + 1;
    }
    return end;
  }
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function isCommentAt(line: string, indent: number): boolean {
  return line.trimStart().startsWith('#') && indentOf(line) === indent;
}

/** Only characters that YAML reads as part of a plain key. */
function keyText(path: string): string {
  return /^\/[\w./{}~-]*$/.test(path) ? path : `'${path.replaceAll("'", "''")}'`;
}
