import { absolute } from './ajv.js';
import type { Contract, FreeOperation, CalledOperation } from './contract.js';
import type { Json } from './json.js';
import type { Parameter } from './read-parameters.js';
import { follow, isObject, objectOf } from './references.js';
import { SOLD_STATUSES } from './sold-status.js';

/** A response that the contract declares, with its own references resolved. */
export type DeclaredResponse = { content: Json; headers: Record<string, { required?: boolean }> };

/** The responses that an operation declares, by status. */
export function responsesOf(
  { document }: Contract,
  { path, method }: { path: string; method: string },
): Record<string, DeclaredResponse> {
  const { responses } = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
  const all = Object.entries(objectOf(responses));
  return Object.fromEntries(
    all.map(([status, response]) => {
      const { content, headers } = follow(document, response);
      const resolved = Object.entries(objectOf(headers)).map(([name, each]) => [
        name,
        follow(document, each),
      ]);
      return [
        status,
        { content: objectOf(content), headers: Object.fromEntries(resolved) as DeclaredResponse['headers'] },
      ];
    }),
  );
}

/** The schema of the answer sold with a status: that of its first JSON form. */
export function jsonSchemaOf({ answers }: CalledOperation, status: number): Json | undefined {
  return answers.find(form => form.status === status && form.kind === 'json' && form.schema)?.schema;
}

/**
 * The contract as openapi-backend routes and validates it. References to parameters and responses are resolved; schemas keep theirs, which
 * ajv follows (`createAjv`): openapi-backend's own resolver drops members alongside a reference and never ends on a schema that contains
 * itself. Bodies are checked separately (`BodyCheck`), because openapi-backend knows only JSON. The payment is left out: the price, its
 * headers, and 402. So are the other errors of paid operations: they share one schema, which openapi-backend would compile again for each
 * of them.
 */
export function definitionOf(contract: Contract): Json {
  const paths: Record<string, Json> = {};
  const add = (path: string, method: string, operation: Json): void => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation };
  };
  for (const operation of [...contract.paid, ...contract.given])
    add(operation.path, operation.method, calledOperation(contract, operation));
  for (const operation of contract.free) add(operation.path, 'GET', freeOperation(contract, operation));
  return { openapi: '3.1.0', info: contract.document.info, paths };
}

function calledOperation(contract: Contract, operation: CalledOperation): Json {
  const { id, parameters } = operation;
  const sold = SOLD_STATUSES.flatMap(status => {
    const schema = jsonSchemaOf(operation, status);
    return schema ? [[status, jsonContent(schema)] as const] : [];
  });
  return {
    operationId: id,
    parameters: parameters.map(each => parameterOf(contract, each)),
    responses: Object.fromEntries(sold),
  };
}

function freeOperation(contract: Contract, { id, path }: FreeOperation): Json {
  return { operationId: id, responses: jsonResponses(responsesOf(contract, { path, method: 'get' })) };
}

/** Strings are converted by the type in a schema or, if it has none, by the type of the values that it lists. */
function parameterOf({ document }: Contract, { name, in: where, required, schema }: Parameter): Json {
  const described = follow(document, schema);
  const { enum: values, const: only } = described;
  const listed = Array.isArray(values) ? (values as unknown[]) : only === undefined ? [] : [only];
  const types = [...new Set(listed.map(value => typeof value))];
  const typed = types.length === 0 || 'type' in described ? {} : { type: types };
  return { name, in: where, required, schema: absolute({ ...typed, ...described }) };
}

function jsonResponses(responses: Record<string, DeclaredResponse>): Json {
  const checked = Object.entries(responses).flatMap(([status, { content }]) => {
    const { schema } = objectOf(content['application/json']);
    return isObject(schema) ? [[status, jsonContent(schema)] as const] : [];
  });
  return Object.fromEntries(checked);
}

function jsonContent(schema: Json): Json {
  return { content: { 'application/json': { schema: absolute(schema) } } };
}
