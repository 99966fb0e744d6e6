import type { PricedOperation, RequestBody } from '../../src/contract/contract.js';

/** A call of an operation at its `examplePath`, with the examples of the contract, without payment. */
export function exampleCall({ method, parameters, request }: PricedOperation): {
  query: string;
  init: RequestInit;
} {
  const query = parameters
    .filter(each => each.in === 'query' && each.required)
    .map(({ name, example }) => `${name}=${encodeURIComponent(String(example))}`);
  const headers = Object.fromEntries(
    parameters
      .filter(each => each.in === 'header' && each.required)
      .map(({ name, example }) => [name, String(example)]),
  );
  const body = request && bodyOf(request);
  return {
    query: query.length ? `?${query.join('&')}` : '',
    init: { method, headers: { ...headers, ...body?.type }, ...(body ? { body: body.text } : {}) },
  };
}

/** JSON, or a form of single values. */
function bodyOf({ form, example }: RequestBody): { type: Record<string, string>; text: string } {
  if (!form) return { type: { 'content-type': 'application/json' }, text: JSON.stringify(example) };
  const fields = Object.entries(example).map(([name, value]): [string, string] => [name, String(value)]);
  return {
    type: { 'content-type': 'application/x-www-form-urlencoded' },
    text: new URLSearchParams(fields).toString(),
  };
}
