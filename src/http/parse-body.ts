import { parse as parseType } from 'content-type';
import { formOfType, JSON_TYPE } from '../contract/body-types.js';
import { formsOf, type BodyForm, type RequestBody } from '../contract/request-body.js';
import { BodyFault, parseJson, parseJsonObject, requireUtf8, textOf } from './json-body.js';
import { readMultipart } from './multipart-body.js';

/**
 * The form of a body that its Content-Type names.
 * @throws BodyFault if the operation does not accept that type
 */
export function typeOf(request: RequestBody, header = ''): { form: BodyForm; type: string } {
  if (header === JSON_TYPE && request.mimeType === header) return { form: request, type: header };
  const { type, parameters } = parseType(header);
  const named = type.includes('*') ? undefined : formOfType(formsOf(request), type);
  if (!named) throw new BodyFault(wantedTypes(request));
  const { kind } = named.form;
  if (kind !== 'binary' && kind !== 'multipart') requireUtf8(header, parameters.charset);
  return named;
}

const KINDS = { json: 'JSON', form: 'a form', multipart: 'a form', text: 'text', binary: 'bytes' };

function wantedTypes(request: RequestBody): string {
  if (request.others.length === 0)
    return `the body must be ${KINDS[request.kind]}, sent with Content-Type: ${request.mimeType}`;
  const types = formsOf(request).map(({ mimeType }) => mimeType);
  return `the body must be sent with one of these as its Content-Type: ${types.join(', ')}`;
}

/** Parses a body into the value that `SentBody` describes. @throws BodyFault */
export async function parsedBody(
  { kind, object, form = [] }: BodyForm,
  bytes: Buffer,
  header = '',
): Promise<unknown> {
  if (kind === 'json') return object ? parseJsonObject(bytes) : parseJson(bytes);
  if (kind === 'form') return textOf(bytes);
  if (kind === 'multipart') return readMultipart(bytes, header, form);
  if (bytes.length === 0) throw new BodyFault(`the body is empty; send ${KINDS[kind]}`);
  return kind === 'text' ? textOf(bytes) : bytes;
}
