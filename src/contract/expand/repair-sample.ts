import type { ErrorObject, ValidateFunction } from 'ajv';
import { isObject, objectOf } from '../references.js';
import { textMatching } from './pattern-sample.js';

const MAX_REPAIRS = 50;

/**
 * Replaces the values in a sample that its schema refuses: strings that must match a pattern, which
 * openapi-sampler does not generate, and values for which the schema allows only a few choices. Undefined if
 * the schema still refuses it.
 */
export function repaired(sample: unknown, validate: ValidateFunction): unknown {
  let value = sample;
  for (let repairs = 0; repairs < MAX_REPAIRS; repairs++) {
    if (validate(value)) return value;
    const [error] = validate.errors ?? [];
    const better = error && betterThan(error);
    if (error === undefined || better === undefined) return undefined;
    value = withValueAt(value, error.instancePath.split('/').slice(1), better);
  }
  return undefined;
}

function betterThan({ keyword, params, parentSchema, data }: ErrorObject): unknown {
  const { pattern, minLength, maxLength } = objectOf(parentSchema);
  if (typeof pattern === 'string' && ['pattern', 'minLength', 'maxLength'].includes(keyword))
    return textMatching(pattern, { minLength, maxLength });
  if (keyword === 'maxLength') return String(data).slice(0, Number((params as { limit: unknown }).limit));
  const { allowedValue, allowedValues } = params as { allowedValue?: unknown; allowedValues?: unknown[] };
  return keyword === 'const' ? allowedValue : keyword === 'enum' ? allowedValues?.[0] : undefined;
}

/** @param path keys of a JSON pointer */
function withValueAt(node: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value;
  if (Array.isArray(node))
    return node.map((each: unknown, index) =>
      String(index) === key ? withValueAt(each, rest, value) : each,
    );
  if (!isObject(node)) return node;
  const name = key.replaceAll('~1', '/').replaceAll('~0', '~');
  return { ...node, [name]: withValueAt(node[name], rest, value) };
}
