import { CallParameters } from './call-parameters.js';
import type { Json } from './json.js';
import { parameterNames } from './paths.js';
import type { PricedOperation } from './read-operation.js';
import { Schemas } from './schemas.js';

/**
 * What is wrong with the schemas of the paid operations: one that does not compile, which would fail the first call, or one that
 * refuses the example beside it, which discovery crawlers and buyers send.
 */
export function schemaFaults({ document, paid }: { document: Json; paid: PricedOperation[] }): string[] {
  const schemas = new Schemas(document);
  return paid.flatMap(operation => faultsOf(document, operation, schemas));
}

function faultsOf(document: Json, operation: PricedOperation, schemas: Schemas): string[] {
  const { id, request, answers, parameters } = operation;
  const checks: [string, () => string | undefined][] = [
    ['its parameters', () => parameterFault(document, operation, schemas)],
    [
      'its body',
      () => request && schemas.asked(request.schema, 'the body')(structuredClone(request.example)),
    ],
    ...answers.map(({ mimeType, kind, schema, example }): [string, () => string | undefined] => [
      `its answer (${mimeType})`,
      () => {
        const check = schema && schemas.answered(schema);
        return kind === 'binary' || example === undefined ? undefined : check?.(example);
      },
    ]),
    ...parameters.map(({ name, schema, example }): [string, () => string | undefined] => [
      `its parameter ${name}`,
      () => {
        const check = schemas.asked(schema, name);
        return example === undefined ? undefined : check(example);
      },
    ]),
  ];
  return checks.flatMap(([what, check]) => {
    try {
      const wrong = check();
      return wrong === undefined ? [] : [`${id}: the example of ${what} is wrong: ${wrong}`];
    } catch (error) {
      return [`${id}: the schema of ${what} can't be used: ${(error as Error).message}`];
    }
  });
}

/** Whether the examples can be sent, as texts in path and query. */
function parameterFault(document: Json, operation: PricedOperation, schemas: Schemas): string | undefined {
  const texts = (example: unknown): string[] => (Array.isArray(example) ? example : [example]).map(String);
  const sent = operation.parameters.filter(({ example }) => example !== undefined);
  const inPath = new Map(sent.filter(each => each.in === 'path').map(({ name, example }) => [name, example]));
  const raw = parameterNames(operation.path).map(name => encodeURIComponent(String(inPath.get(name))));
  const query = new URLSearchParams(
    sent
      .filter(each => each.in === 'query')
      .flatMap(({ name, example }) => texts(example).map((text): [string, string] => [name, text])),
  );
  const read = new CallParameters(document, operation, schemas).read(raw, query.toString());
  return read.ok ? undefined : read.error;
}
