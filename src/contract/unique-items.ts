import type { KeywordDefinition } from 'ajv';

/**
 * ajv's own uniqueItems compares every object of an array with every other, which takes minutes for an array of 20 000. This one compares
 * strings that are identical for equal items.
 */
export const uniqueItems: KeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  validate: (wanted: boolean, items: unknown[]) =>
    !wanted || new Set(items.map(textOf)).size === items.length,
  error: { message: 'must NOT have duplicate items' },
};

function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  if (Array.isArray(value)) return `[${value.map(textOf).join(',')}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`).join(',')}}`;
}
