import { FORM_TYPE } from './form-body.js';
import { objectOf } from './references.js';

/** How a request body is written. `form` has fields like a query, `multipart` has fields and files. */
export type BodyKind = 'json' | 'form' | 'multipart' | 'text' | 'binary';

export const JSON_TYPE = 'application/json';
export const MULTIPART_TYPE = 'multipart/form-data';

const TEXT =
  /^(?:text\/.+|application\/(?:xml|xml-dtd|yaml|x-yaml|toml|graphql|sql|javascript)|.+\+(?:xml|yaml))$/;
const JSON_TYPES = /^application\/(?:json|[a-z0-9.-]+\+json)$/;

/** How a body of this type is written: as bytes if it is neither JSON, a form nor text. @param type in lower case, without parameters */
export function bodyKindOf(type: string): BodyKind {
  if (JSON_TYPES.test(type)) return 'json';
  if (type === FORM_TYPE) return 'form';
  if (type === MULTIPART_TYPE) return 'multipart';
  return TEXT.test(type) ? 'text' : 'binary';
}

/** A content type without its parameters, in lower case. */
export function bareType(type: string): string {
  return (type.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/**
 * The content types of an operation's requests, as the document writes them. The first is the default: JSON comes first, then a form,
 * then the others in document order.
 */
export function requestTypesOf(content: unknown): string[] {
  const types = Object.keys(objectOf(content));
  const rank = (type: string): number => {
    const bare = bareType(type);
    if (bare === JSON_TYPE) return 0;
    if (bare === FORM_TYPE) return 1;
    return bodyKindOf(bare) === 'json' ? 2 : 3;
  };
  return types
    .map((type, index) => ({ type, index }))
    .sort((a, b) => rank(a.type) - rank(b.type) || a.index - b.index)
    .map(({ type }) => type);
}

/** Whether a declared type, which may be a range such as `image/*`, matches that of a body. A range never matches a form. */
function covers(declared: string, type: string): boolean {
  if (declared === type) return true;
  if (!declared.includes('*') || /^multipart\//.test(type) || type === FORM_TYPE) return false;
  return declared === '*/*'
    ? type.includes('/')
    : type.startsWith(declared.slice(0, declared.indexOf('/') + 1));
}

/**
 * The form of a request for a content type. Where application/json is declared, other JSON types match it.
 * @returns the form and the type of the call
 */
export function formOfType<F extends { mimeType: string }>(
  all: readonly F[],
  type: string,
): { form: F; type: string } | undefined {
  const form =
    all.find(({ mimeType }) => mimeType === type) ?? all.find(({ mimeType }) => covers(mimeType, type));
  if (form) return { form, type };
  const json = JSON_TYPES.test(type) ? all.find(({ mimeType }) => mimeType === JSON_TYPE) : undefined;
  return json && { form: json, type: JSON_TYPE };
}

const SAMPLES: Record<string, string | undefined> = {
  'image/*': 'image/png',
  'audio/*': 'audio/wav',
  'video/*': 'video/mp4',
  'text/*': 'text/plain',
};

/** A concrete type for a range such as image/*. */
export function concreteType(type: string): string {
  return type.includes('*') ? (SAMPLES[type] ?? 'application/octet-stream') : type;
}
