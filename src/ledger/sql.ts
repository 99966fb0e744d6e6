/**
 * SQL as tagged templates: `${…}` is either a value, sent as a parameter, or another query, which becomes part of the text. The text is
 * PostgreSQL's SQL with `?` for values; `spell` in engine.ts translates it for each engine.
 */

export type Value = string | number | null | Uint8Array;

/** A statement with its values, ready for an engine. `Row` is the shape of a row it returns. */
export type Query<Row = unknown> = {
  readonly sql: string;
  readonly parameters: readonly Value[];
  /** The statement returns at most one row, which a driver can fetch more cheaply. */
  readonly single?: boolean;
  /** The statement may take longer than the usual timeout. */
  readonly slow?: boolean;
  /** The last write of its operation. The engine may commit in the same round trip, so the later queries of the operation may only read. */
  readonly last?: boolean;
  /** Never present; carries the row type. */
  readonly row?: Row;
};

type Part = Value | Query;

/** The last text built from each template, and the text of each query inside it. */
const texts = new WeakMap<TemplateStringsArray, { text: string; inner: (string | undefined)[] }>();

export function sql<Row = unknown>(strings: TemplateStringsArray, ...parts: Part[]): Query<Row> {
  return { sql: textOf(strings, parts), parameters: valuesOf(parts) };
}

/** A statement that returns at most one row. */
export function one<Row = unknown>(strings: TemplateStringsArray, ...parts: Part[]): Query<Row> {
  return { sql: textOf(strings, parts), parameters: valuesOf(parts), single: true };
}

/** SQL text, such as a table name. Never pass user input. */
export function raw(text: string): Query {
  return { sql: text, parameters: [] };
}

/** A list, separated by commas. */
export function list(parts: readonly Part[]): Query {
  return { sql: parts.map(part => (isQuery(part) ? part.sql : '?')).join(', '), parameters: valuesOf(parts) };
}

function valuesOf(parts: readonly Part[]): Value[] {
  const values: Value[] = [];
  for (const part of parts) {
    if (!isQuery(part)) values.push(part);
    else for (const value of part.parameters) values.push(value);
  }
  return values;
}

function isQuery(part: Part): part is Query {
  return typeof part === 'object' && part !== null && !(part instanceof Uint8Array);
}

function textOf(strings: TemplateStringsArray, parts: readonly Part[]): string {
  const known = texts.get(strings);
  if (known && isUnchanged(known.inner, parts)) return known.text;
  const inner = parts.map(part => (isQuery(part) ? part.sql : undefined));
  const text = strings.reduce((made, next, index) => `${made}${inner[index - 1] ?? '?'}${next}`);
  texts.set(strings, { text, inner });
  return text;
}

function isUnchanged(inner: readonly (string | undefined)[], parts: readonly Part[]): boolean {
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] as Part;
    if (inner[index] !== (isQuery(part) ? part.sql : undefined)) return false;
  }
  return true;
}
