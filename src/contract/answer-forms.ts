import { headerOf } from './answer-headers.js';
import type { AnswerForm, Form } from './contract.js';
import type { DeclaredResponse } from './definition.js';
import type { AnyReply } from './operation.js';
import { isObject, objectOf } from './references.js';

/** The form of an answer: the one that its content type names, or the first if it has no content type. */
export function formOf<F extends Form>(forms: readonly F[], reply: AnyReply): F | undefined {
  return forms.find(({ mimeType }) => matches(mimeType, contentTypeOf(reply)));
}

/** The forms of an answer that is not sold. */
export function formsOf({ content }: DeclaredResponse): Form[] {
  const { schema } = objectOf(content['application/json']);
  return [{ mimeType: 'application/json', kind: 'json', ...(isObject(schema) ? { schema } : {}) }];
}

/** The name of a form in documents. */
export function formName({ kind, mimeType, status }: AnswerForm): string {
  return kind === 'none' ? `status ${status} without content` : mimeType;
}

export function contentTypeOf({ headers }: AnyReply): string | undefined {
  return headerOf(headers, 'content-type');
}

/** Whether an answer has this form. Ignores parameters of its content type, such as charset. Without a content type, every form matches. */
function matches(mimeType: string, contentType: string | undefined): boolean {
  const bare = (type: string): string => (type.split(';', 1)[0] ?? '').trim().toLowerCase();
  return contentType === undefined || bare(contentType) === bare(mimeType);
}

/** Required headers are checked here, because openapi-backend treats every declared header as required. */
export function missingHeader(
  declared: DeclaredResponse,
  headers: Record<string, string>,
): string | undefined {
  const present = new Set(Object.keys(headers).map(name => name.toLowerCase()));
  for (const [name, header] of Object.entries(declared.headers)) {
    if (header.required && !present.has(name.toLowerCase())) return `header ${name} is missing`;
  }
  return undefined;
}
