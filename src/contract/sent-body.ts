import { concreteType, formOfType } from './body-types.js';
import { FORM_TYPE, formText } from './form-body.js';
import type { Json } from './json.js';
import { multipartBody, partsOf, type Part } from './multipart.js';
import { isObject } from './references.js';
import { formsOf, type BodyForm, type RequestBody } from './request-body.js';
import { fileOf } from './sent-file.js';

/**
 * A parsed but unchecked body: JSON, the text of a form, the parts of a multipart form, a string, or bytes. `type`: its content type,
 * without parameters.
 */
export type SentBody = { form: BodyForm; type: string; value: unknown };

type Wrong = { wrong: string };

/**
 * The body for a value that comes from a call, an example, or the arguments of a tool. In the value, files and bytes are base64 or a data
 * URL. The type in a data URL may choose another of the request's types.
 * @param type of the body; default: the first one that the request declares
 * @returns what is wrong, in a sentence, if the value is not a valid body
 */
export function sentBodyOf(request: RequestBody, value: unknown, type?: string): SentBody | Wrong {
  const named = (type === undefined ? undefined : formOfType(formsOf(request), type)) ?? {
    form: request,
    type: concreteType(request.mimeType),
  };
  const { kind, object } = named.form;
  if (kind === 'binary') return sentBytes(request, named, value);
  if (kind === 'text')
    return isText(value) ? { ...named, value } : { wrong: 'body must be a valid Unicode string' };
  if (object && !isObject(value)) return { wrong: 'body must be an object' };
  if (value === null || value === undefined) return { wrong: 'body must not be null' };
  return kind === 'json' ? { ...named, value } : sentForm(named, value as Json);
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && !/\p{Surrogate}/u.test(value);
}

function sentForm(named: Omit<SentBody, 'value'>, value: Json): SentBody | Wrong {
  const { kind, form = [] } = named.form;
  if (kind === 'form') return { ...named, value: formText(form, value) };
  const parts = partsOf(form, value);
  const isLost = ({ name, ...part }: Part): boolean =>
    'text' in part && form.some(field => field.name === name && field.as === 'file');
  const lost = parts.find(isLost);
  return lost
    ? { wrong: `${lost.name} must be a file, as base64 or as a data URL` }
    : { ...named, value: parts };
}

function sentBytes(request: RequestBody, named: Omit<SentBody, 'value'>, value: unknown): SentBody | Wrong {
  const file = typeof value === 'string' ? fileOf(value, named.type) : undefined;
  if (!file || file.bytes.length === 0) return { wrong: 'body must be bytes, as base64 or as a data URL' };
  const found = formOfType(formsOf(request), file.type);
  return found?.form.kind === 'binary'
    ? { ...found, value: file.bytes }
    : { wrong: `body must not be of the type ${file.type}` };
}

/** The parts of a body that is a multipart form. */
export function partsIn({ value }: SentBody): readonly Part[] {
  return Array.isArray(value) ? (value as Part[]) : [];
}

/** A body on the wire. `type`: its Content-Type. */
export type WrittenBody = { type: string; body: string | Buffer };

/** Encodes a body, for requests to an upstream and for examples of calls. */
export function writtenBody(sent: SentBody): WrittenBody {
  const { form, type, value } = sent;
  if (form.kind === 'json') return { type, body: JSON.stringify(value) };
  if (form.kind === 'form') return { type: FORM_TYPE, body: String(value) };
  if (form.kind === 'multipart') return multipartBody(partsIn(sent));
  if (form.kind === 'binary') return { type, body: value as Buffer };
  // Without a charset, some servers would read the text as latin-1.
  return { type: type.startsWith('text/') ? `${type}; charset=utf-8` : type, body: String(value) };
}

/** The encoded example of a body. The build has validated it. */
export function writtenExample(request: RequestBody): WrittenBody {
  const sent = sentBodyOf(request, request.example);
  if ('wrong' in sent) throw new Error(`the example of a body is wrong: ${sent.wrong}`);
  return writtenBody(sent);
}
