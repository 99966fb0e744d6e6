import { METHODS } from '../contract.js';
import type { Json } from '../json.js';
import { isObject, objectOf } from '../references.js';

/** A part that the build added to the contract; `why` states the reason. */
export type Added = { path: string[]; why: string };

/** A part that the seller wrote and that the build can't add to. */
export type Conflict = { path: string[]; message: string };

/** A contract that is being completed. */
export type Draft = { document: Json; added: Added[]; conflicts: Conflict[] };

/** An operation of a draft and its place. */
export type DraftOperation = { path: string; method: string; at: string[]; item: Json; operation: Json };

/** Adds those members that the object lacks. @param at the object's place */
export function fill(draft: Draft, target: Json, at: string[], members: Json, why: string): void {
  for (const [key, value] of Object.entries(members)) {
    if (Object.hasOwn(target, key)) continue;
    target[key] = copied(value);
    draft.added.push({ path: [...at, key], why });
  }
}

/** The operations of a document, in their order. */
export function operationsOf({ document }: { document: Json }): DraftOperation[] {
  return Object.entries(objectOf(document.paths)).flatMap(([path, item]) =>
    METHODS.flatMap(method => {
      const operation = objectOf(item)[method];
      if (!isObject(operation)) return [];
      return [{ path, method, at: ['paths', path, method], item: objectOf(item), operation }];
    }),
  );
}

/** The operations that have a price, even a faulty one. */
export function pricedOf(draft: Draft): DraftOperation[] {
  return operationsOf(draft).filter(({ operation }) => 'x-price' in operation);
}

/** The free operations that an API serves. */
export function givenOf(draft: Draft): DraftOperation[] {
  return operationsOf(draft).filter(
    ({ operation }) => 'x-free-proxy' in operation && !('x-price' in operation),
  );
}

/** A deep copy in which no object occurs twice. In a document with YAML aliases, the same object occurs in several places. */
export function copied(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copied);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copied(member)]));
}
