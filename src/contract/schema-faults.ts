import { absolute, createAjv } from './ajv.js';
import type { Contract, PricedOperation } from './contract.js';
import { valueFault } from './fault-words.js';
import type { Json } from './json.js';
import { Routes } from './routes.js';

/** What is wrong with a value, or undefined. */
type Check = (schema: Json, value: unknown, name?: string) => string | undefined;

/**
 * What is wrong with the schemas of the paid operations: one that does not compile, which would fail the first call, or one that
 * refuses the example beside it, which discovery crawlers and buyers send.
 */
export async function schemaFaults(contract: Contract): Promise<string[]> {
  const ajv = createAjv(contract.document, {});
  const check: Check = (schema, value, name) => {
    const validate = ajv.compile(absolute(schema));
    return value === undefined || validate(value) ? undefined : valueFault(validate.errors, name);
  };
  const faults = contract.paid.flatMap(operation => faultsOf(operation, check));
  if (faults.length > 0) return faults;
  const routes = await Routes.create(contract);
  return contract.paid.flatMap(operation => callFault(routes, operation) ?? []);
}

function faultsOf({ id, request, answers, parameters }: PricedOperation, check: Check): string[] {
  const checks: [string, () => string | undefined][] = [
    ['its body', () => request && check(request.schema, request.example)],
    ...answers.map(({ mimeType, kind, schema, example }): [string, () => string | undefined] => [
      `its answer (${mimeType})`,
      () => schema && check(schema, kind === 'binary' ? undefined : example),
    ]),
    ...parameters.map(({ name, schema, example }): [string, () => string | undefined] => [
      `its parameter ${name}`,
      () => check(schema, example, name),
    ]),
  ];
  return checks.flatMap(([what, fault]) => {
    try {
      const wrong = fault();
      return wrong === undefined ? [] : [`${id}: the example of ${what} is wrong: ${wrong}`];
    } catch (error) {
      return [`${id}: the schema of ${what} can't be used: ${(error as Error).message}`];
    }
  });
}

/** Whether the examples can be sent, as texts in path and query, and reach this operation. */
function callFault(
  routes: Routes,
  { id, method, examplePath, parameters, request }: PricedOperation,
): string | undefined {
  const route = routes.match(method, examplePath);
  const sent = parameters.filter(each => each.in === 'query' && each.example !== undefined);
  const texts = sent.flatMap(({ name, example }) =>
    [example].flat().map((each): [string, string] => [name, String(each)]),
  );
  if (route.kind !== 'operation' || route.id !== id)
    return `${id}: the example of its path, ${examplePath}, is ${route.kind === 'operation' ? `a path of ${route.id}` : 'no path of its own'}`;
  const query = new URLSearchParams(texts).toString();
  const checked = routes.checkAsked(route, query, request && structuredClone(request.example));
  return checked.ok ? undefined : `${id}: the example of its parameters is wrong: ${checked.error}`;
}
