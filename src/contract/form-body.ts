import type { Json } from './json.js';
import { encodedQuery, QueryFault, queryStyleOf, queryTextOf, shapeOf } from './query-styles.js';
import type { QueryStyle, Text } from './query-styles.js';
import { fieldsOf, objectOf } from './references.js';

export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** The content type of the requests of an operation: JSON, or a form where it takes no JSON. @param content as the document has it */
export function requestTypeOf(content: unknown): string {
  const types = objectOf(content);
  return !('application/json' in types) && FORM_TYPE in types ? FORM_TYPE : 'application/json';
}

/** A field of a form, and how it is written if it is a list or an object. */
export type FormField = { name: string; list: boolean; style?: QueryStyle };

/** As JSON: no form needs more. */
const MAX_FIELDS = 1_000;

/** The fields that a form declares, as its schema and its `encoding` say; `wrong`: why it can't be written. */
export function formFields(
  document: Json,
  { schema, encoding }: Json,
): { fields: FormField[]; wrong?: string } {
  const fields: FormField[] = [];
  for (const [name, each] of Object.entries(fieldsOf(document, schema)?.properties ?? {})) {
    const { style: named, explode } = objectOf(objectOf(encoding)[name]);
    const shape = shapeOf(document, each);
    // OpenAPI leaves this open; servers of most languages read it.
    const usual = shape === 'object' || shape === 'mixed' ? 'deepObject' : 'form';
    const { style, wrong } = queryStyleOf(document, { style: named ?? usual, explode, schema: each });
    if (wrong !== undefined) return { fields, wrong: `its field ${name} ${wrong}` };
    fields.push({ name, list: shape === 'list', ...(style ? { style } : {}) });
  }
  return { fields };
}

/** A form as it is sent. @throws URIError for a text that is no valid Unicode */
export function formText(fields: readonly FormField[], value: Json): string {
  return Object.entries(value)
    .flatMap(([name, each]) => encodedQuery(fields.find(field => field.name === name) ?? { name }, each))
    .join('&');
}

/** The fields of a form, those among them that it does not declare, as texts. @throws QueryFault */
export function formTexts(fields: readonly FormField[], sent: string): Record<string, Text> {
  const form = new URLSearchParams(sent);
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
