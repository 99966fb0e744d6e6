import type { DescribedValue, ValueAt } from '../price/price.js';
import type { Json } from './json.js';
import type { Parameter } from './read-parameters.js';
import { fieldsOf } from './references.js';
import { formsOf, type RequestBody } from './request-body.js';

const IN: Readonly<Record<string, string>> = { params: 'path', query: 'query', headers: 'header' };

/** Finds values in the calls of an operation. If the operation takes several types of body, all of them must have the value. */
export function valuesOf({
  parameters,
  request,
}: {
  parameters: readonly Parameter[];
  request?: RequestBody;
}): ValueAt {
  return ([part = '', ...steps]) => {
    if (part === 'body') return request && ofBody(formsOf(request), request.required, steps);
    const [name, ...within] = steps;
    const parameter = parameters.find(each => each.in === IN[part] && each.name === name);
    return parameter && within.length === 0 ? describe(parameter.plain, parameter.required) : undefined;
  };
}

function ofBody(
  forms: ReturnType<typeof formsOf>,
  required: boolean,
  steps: readonly string[],
): DescribedValue | undefined {
  const found = forms.map(({ plain }) => within(plain, required, steps));
  const [first] = found;
  if (!first || !found.every(each => each !== undefined)) return undefined;
  return {
    types: [...new Set(found.flatMap(({ types }) => types))],
    always: found.every(({ always }) => always) && found.every(({ bytes }) => bytes === first.bytes),
    bytes: first.bytes,
  };
}

/** @param plain a schema without references */
function within(plain: Json, required: boolean, steps: readonly string[]): DescribedValue | undefined {
  const [name, ...rest] = steps;
  if (name === undefined) return describe(plain, required);
  const fields = fieldsOf(plain, plain);
  const field = fields && Object.hasOwn(fields.properties, name) ? fields.properties[name] : undefined;
  return field && fields && within(field, required && fields.required.includes(name), rest);
}

function describe(plain: Json, required: boolean): DescribedValue {
  const { type, contentEncoding } = plain;
  return {
    types: [type].flat().flatMap(each => (typeof each === 'string' ? [each] : [])),
    always: required || 'default' in plain,
    bytes: contentEncoding === 'base64',
  };
}
