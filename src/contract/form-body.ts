import type { Json } from './json.js';
import { encodedQuery, QueryFault, queryStyleOf, queryTextOf, shapeOf } from './query-styles.js';
import type { QueryStyle, Text } from './query-styles.js';
import { fieldsOf, objectOf, resolved } from './references.js';
import { isFile } from './sent-file.js';

export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** A field of a form, and how it is written if it is a list or an object. In a multipart form it may be a file, or JSON. */
export type FormField = { name: string; list: boolean; style?: QueryStyle; as?: 'file' | 'json' };

/** The maximum number of fields in a form, the same as in a JSON body. */
const MAX_FIELDS = 1_000;

/** The fields of a form, from its schema and its `encoding`; `wrong`: why it can't be written. */
export function formFields(
  document: Json,
  { schema, encoding }: Json,
): { fields: FormField[]; wrong?: string } {
  const fields: FormField[] = [];
  for (const [name, each] of Object.entries(fieldsOf(document, schema)?.properties ?? {})) {
    const { style: named, explode } = objectOf(objectOf(encoding)[name]);
    const shape = shapeOf(document, each);
    // OpenAPI does not define a style for this; servers in most languages accept this one.
    const usual = shape === 'object' || shape === 'mixed' ? 'deepObject' : 'form';
    const { style, wrong } = queryStyleOf(document, { style: named ?? usual, explode, schema: each });
    if (wrong !== undefined) return { fields, wrong: `its field ${name} ${wrong}` };
    fields.push({ name, list: shape === 'list', ...(style ? { style } : {}) });
  }
  return { fields };
}

/**
 * The fields that a multipart form declares: objects are JSON, lists are repeated, and each item of a list may be a file or JSON, too.
 */
export function multipartFields(document: Json, { schema }: Json): FormField[] {
  return Object.entries(fieldsOf(document, schema)?.properties ?? {}).map(([name, each]) => {
    const list = shapeOf(document, each) === 'list';
    const item = list ? itemsOf(document, each) : each;
    const json = ['object', 'list'].includes(shapeOf(document, item));
    const as = isFile(document, item) ? ('file' as const) : json ? ('json' as const) : undefined;
    return { name, list, ...(as ? { as } : {}) };
  });
}

/** The schema of a list's items. The list itself may be nullable. */
function itemsOf(document: Json, schema: unknown): unknown {
  const { items, anyOf, oneOf } = resolved(document, schema);
  if (items !== undefined) return items;
  const parts = [anyOf, oneOf].flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []));
  return parts.map(part => resolved(document, part).items).find(each => each !== undefined) ?? {};
}

/** A form as it is sent. @throws URIError for a string that is not valid Unicode */
export function formText(fields: readonly FormField[], value: Json): string {
  return Object.entries(value)
    .flatMap(([name, each]) => encodedQuery(fields.find(field => field.name === name) ?? { name }, each))
    .join('&');
}

/** The fields of a form as strings, including undeclared ones. @throws QueryFault */
export function formTexts(fields: readonly FormField[], form: URLSearchParams): Record<string, Text> {
  if (form.size > MAX_FIELDS) throw new QueryFault('the form has too many fields');
  const texts = new Map<string, Text>();
  for (const field of fields) {
    const text = queryTextOf(field, form);
    if (text !== undefined) texts.set(field.name, text);
  }
  const known = new Set(fields.flatMap(({ name, style }) => [name, ...membersOf(style)]));
  for (const name of new Set(form.keys())) {
    if (known.has(name) || known.has(name.split('[', 1)[0] ?? '')) continue;
    const all = form.getAll(name);
    texts.set(name, all.length > 1 ? all : (all[0] ?? ''));
  }
  return Object.fromEntries(texts);
}

function membersOf(style: QueryStyle | undefined): string[] {
  return style?.kind === 'members' ? Object.keys(style.lists) : [];
}
