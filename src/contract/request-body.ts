import { bodyLimit, MAX_BODY_BYTES } from './body-limit.js';
import { brokenPart } from './broken-schema.js';
import { bareType, bodyKindOf, requestTypesOf, type BodyKind } from './body-types.js';
import { formFields, multipartFields, type FormField } from './form-body.js';
import type { Json } from './json.js';
import { shapeOf } from './query-styles.js';
import { isStream } from './read-answers.js';
import { exampleOf, type Fault } from './read-parameters.js';
import { fieldsOf, inlined, isObject, objectOf, resolved } from './references.js';
import { dataUrl, fileOf, fileText, withFilesAsText } from './sent-file.js';

/** One type of body that a call may carry. A call always holds it as JSON: bytes and files are strings (see `dataUrl`). */
export type BodyForm = {
  /** In lower case, without parameters. May be a range, such as image/*. */
  mimeType: string;
  kind: BodyKind;
  /**
   * As in the document; may contain references into it. `plain` is the same without references, and with
   * bytes as strings.
   */
  schema: Json;
  plain: Json;
  /** Whether the schema allows only objects. */
  object: boolean;
  /** Whether the members of the body are a tool's arguments. Otherwise, the body is one argument. */
  objectArguments: boolean;
  /** An example of the body; the first type always has one. */
  example: unknown;
  /** The largest body in bytes (see `bodyLimit`). */
  maxBytes: number;
  /** The fields, if the body is a form or a multipart form. */
  form?: readonly FormField[];
};

/** The body of a call: of the first type unless its Content-Type names another one. */
export type RequestBody = BodyForm & { required: boolean; others: readonly BodyForm[] };

const OBJECT = '{ application/json: { schema: { type: object } } }';
const ANY_TEXT = { type: 'string' };
const BASE64 = 'Bytes, as base64.';
/** A PNG image of 1 × 1 pixel, in base64. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const MOST_EXAMPLE_BYTES = 1_000;

/** All types of a request; the default one comes first. */
export function formsOf(request: RequestBody): readonly BodyForm[] {
  return [request, ...request.others];
}

/**
 * Reads the body of an operation, or reports what is wrong with its first type. Other types that can't be read are skipped.
 * @param place the path of the body in the document
 */
export function readBody(
  document: Json,
  requestBody: unknown,
  place: string[],
  fault: Fault,
): RequestBody | undefined {
  const { content, required = false } = objectOf(requestBody);
  const types = requestTypesOf(content);
  const [first] = types;
  if (first === undefined)
    return void fault(place, `must have content: requestBody: { required: true, content: ${OBJECT} }`);
  const read = types.map(type => readForm(document, type, objectOf(objectOf(content)[type])));
  const [form, ...others] = read;
  if (!form) return undefined;
  const wrong = 'wrong' in form ? form.wrong : form.example === undefined ? noExample(form) : undefined;
  const broken =
    wrong === undefined ? undefined : brokenPart(document, objectOf(objectOf(content)[first]).schema);
  if (broken) return void fault([...place, 'content', first, 'schema', ...broken.at], broken.message);
  if ('wrong' in form || wrong !== undefined) return void fault([...place, 'content', first], wrong ?? '');
  return {
    ...form,
    required: required === true,
    others: others.filter((each): each is BodyForm => !('wrong' in each)),
  };
}

/** A type of request, or the reason why it can't be sent. */
function readForm(document: Json, type: string, media: Json): BodyForm | { wrong: string } {
  const mimeType = bareType(type);
  const kind = bodyKindOf(mimeType);
  const wrong = wrongWith(document, mimeType, kind, media);
  if (wrong !== undefined) return { wrong };
  const own = isObject(media.schema) ? media.schema : {};
  const isText = kind === 'text' || kind === 'binary';
  // XML may be described as an object, but it is passed on as text.
  const schema = isText && resolved(document, own).type !== 'string' ? ANY_TEXT : own;
  const { fields, wrong: unwritable } = fieldsOfKind(document, kind, media);
  if (unwritable !== undefined) return { wrong: unwritable };
  const form = { mimeType, kind, schema, ...(fields ? { form: fields } : {}) };
  const object = fields !== undefined || (kind === 'json' && shapeOf(document, schema) === 'object');
  const example = exampleOfForm(document, media, { ...form, object });
  return {
    ...form,
    plain: plainOf(document, form),
    object,
    objectArguments: object || (kind === 'json' && fieldsOf(document, schema) !== undefined),
    example,
    maxBytes: limitOf(document, kind, schema),
  };
}

function wrongWith(document: Json, mimeType: string, kind: BodyKind, { schema }: Json): string | undefined {
  if (isStream(mimeType) || (mimeType.startsWith('multipart/') && kind !== 'multipart'))
    return 'is a stream, which a call cannot have: take the body as a whole, such as application/json or multipart/form-data, or leave the operation out';
  const isForm = kind === 'form' || kind === 'multipart';
  if (isForm && !(isObject(schema) && fieldsOf(document, schema)))
    return `must have the schema of an object: { schema: { type: object, properties: { … } } }`;
  return undefined;
}

function fieldsOfKind(document: Json, kind: BodyKind, media: Json): { fields?: FormField[]; wrong?: string } {
  if (kind === 'form') return formFields(document, media);
  return kind === 'multipart' ? { fields: multipartFields(document, media) } : {};
}

function plainOf(
  document: Json,
  { kind, schema, mimeType }: Pick<BodyForm, 'kind' | 'schema' | 'mimeType'>,
): Json {
  const plain = inlined(document, schema);
  if (kind === 'multipart') return withFilesAsText(plain);
  if (kind !== 'binary') return plain;
  const typed = mimeType.includes('*') ? {} : { contentMediaType: mimeType };
  const words = mimeType.includes('*')
    ? `${BASE64} Or as a data URL (data:image/png;base64,…), which also says their type.`
    : BASE64;
  return { ...fileText(plain, words), ...typed };
}

function limitOf(document: Json, kind: BodyKind, schema: Json): number {
  const { maxLength } = resolved(document, schema);
  if (kind !== 'binary') return bodyLimit(document, schema);
  return typeof maxLength === 'number' ? Math.min(maxLength, MAX_BODY_BYTES) : MAX_BODY_BYTES;
}

const EXAMPLES: Record<BodyKind, string> = {
  json: 'example: { … }',
  form: 'example: { … }',
  multipart: 'example: { … }',
  text: 'example: a text',
  binary: 'example: a text',
};

function noExample({ kind, object }: BodyForm): string {
  const what = object ? 'an object' : kind === 'json' ? 'JSON other than null' : 'a text';
  return `needs an example that is ${what}, and none can be made from its schema: ${EXAMPLES[kind]}`;
}

type Described = Pick<BodyForm, 'mimeType' | 'kind' | 'schema' | 'form' | 'object'>;

function exampleOfForm(
  document: Json,
  media: Json,
  { mimeType, kind, schema, form, object }: Described,
): unknown {
  const own = exampleOf(document, { ...media, schema });
  if (kind === 'binary') return sampleBytes(own, mimeType, resolved(document, schema));
  if (kind === 'text') return typeof own === 'string' && own !== '' ? own : undefined;
  if (own === null || (object && !isObject(own))) return undefined;
  return kind === 'multipart' ? withFiles(objectOf(own), form ?? []) : own;
}

/** In base64. */
function sampleBytes(own: unknown, mimeType: string, { minLength }: Json): string {
  if (typeof own === 'string' && own !== '') return bytesOf(own).toString('base64');
  if (/^image\/(png|\*)$/.test(mimeType)) return PNG;
  const least = typeof minLength === 'number' ? Math.min(minLength, MOST_EXAMPLE_BYTES) : 0;
  return Buffer.from('Coinslot'.padEnd(least, '.')).toString('base64');
}

/** An example of bytes is base64 or plain text. */
function bytesOf(text: string): Buffer {
  return fileOf(text)?.bytes ?? Buffer.from(text);
}

function withFiles(value: Json, fields: readonly FormField[]): Json {
  const files = new Set(fields.filter(({ as }) => as === 'file').map(({ name }) => name));
  const asFile = (each: unknown): unknown => {
    if (typeof each !== 'string') return each;
    const {
      bytes,
      type,
      name = 'file',
    } = fileOf(each) ?? { bytes: Buffer.from(each), type: 'application/octet-stream' };
    return dataUrl({ bytes, type, name });
  };
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      if (!files.has(name)) return [name, each];
      return [name, Array.isArray(each) ? each.map(asFile) : asFile(each)];
    }),
  );
}
