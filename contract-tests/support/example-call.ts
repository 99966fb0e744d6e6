import type { PricedOperation } from '../../src/contract/contract.js';
import { writtenExample } from '../../src/contract/sent-body.js';

/** An unpaid call of an operation at its `examplePath`, with the examples of the contract. */
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
  const sent = request && writtenExample(request);
  return {
    query: query.length ? `?${query.join('&')}` : '',
    init: {
      method,
      headers: { ...headers, ...(sent ? { 'content-type': sent.type } : {}) },
      ...(sent ? { body: sent.body } : {}),
    },
  };
}
