import { compilerOf, ONCE } from './ajv.js';
import { brokenPart } from './broken-schema.js';
import type { CalledOperation, Contract } from './contract.js';
import { valueFault } from './fault-words.js';
import type { Json } from './json.js';
import { PatternFault } from './pattern.js';
import { reportPatterns } from './pattern-faults.js';
import { queryPairs } from './query-styles.js';
import type { Fault } from './read-parameters.js';
import { follow, isObject, objectOf } from './references.js';
import { formsOf, type RequestBody } from './request-body.js';
import { Routes } from './routes.js';
import { sentBodyOf } from './sent-body.js';

/** The fault of a value, or undefined. @throws Error for a schema that does not compile */
type Check = (schema: Json, value: unknown, name?: string) => string | undefined;

/** A schema, a value that it must accept, and where both are in the contract. */
type Pair = { what: string; at: string[]; schema: Json | undefined; value: unknown; name?: string };

/**
 * Reports faulty schemas of the operations that are called. A schema is faulty if it does not compile (the first call would fail), refuses
 * the example beside it (which discovery crawlers and buyers send), or refuses what the server itself answers.
 */
export async function reportSchemas(contract: Contract, fault: Fault): Promise<void> {
  let sound = true;
  const report: Fault = (path, message) => {
    sound = false;
    fault(path, message);
  };
  const compiled = compilerOf(contract.document);
  const check: Check = (schema, value, name) => {
    const validate = compiled(schema);
    if (validate instanceof Error) throw validate;
    return value === undefined || validate(value) ? undefined : valueFault(validate.errors, name);
  };
  reportPatterns(contract, report);
  const called = [...contract.paid, ...contract.given];
  for (const operation of called)
    for (const pair of pairsOf(operation)) reportPair(contract.document, pair, check, report);
  reportOwnAnswers(contract, check, report);
  if (!sound) return;
  const routes = await Routes.create(contract, ONCE);
  for (const operation of called) reportCall(routes, operation, report);
}

function placeOf({ path, method }: CalledOperation): string[] {
  return ['paths', path, method.toLowerCase()];
}

function pairsOf(operation: CalledOperation): Pair[] {
  const at = placeOf(operation);
  const { request, answers, parameters } = operation;
  return [
    ...(request ? bodyPairs(at, request) : []),
    ...answers.map(({ status, mimeType, kind, schema, example }) => ({
      what: `its answer (${mimeType})`,
      at: [...at, 'responses', String(status), 'content', mimeType],
      schema,
      value: kind === 'binary' ? undefined : example,
    })),
    ...parameters.map(({ name, schema, example }) => ({
      what: `its parameter ${name}`,
      at: [...at, 'parameters'],
      ...{ schema, name },
      value: example,
    })),
  ];
}

/** Files and bytes don't match the text type of their schema. */
function bodyPairs(at: string[], request: RequestBody): Pair[] {
  return formsOf(request).map(({ mimeType, kind, schema, example }) => ({
    what: 'its body',
    at: [...at, 'requestBody', 'content', mimeType],
    schema,
    value: kind === 'binary' || kind === 'multipart' ? undefined : example,
  }));
}

function reportPair(
  document: Json,
  { what, at, schema, value, name }: Pair,
  check: Check,
  fault: Fault,
): void {
  if (!schema) return;
  try {
    const wrong = check(schema, value, name);
    if (wrong !== undefined) fault([...at, 'example'], `the example of ${what} is wrong: ${wrong}`);
  } catch (error) {
    // This fault is reported where the pattern is.
    if (error instanceof PatternFault) return;
    const { at: steps, message } = brokenPart(document, schema) ?? {
      at: [],
      message: (error as Error).message,
    };
    fault([...at, 'schema', ...steps], `the schema of ${what} can't be used: ${message}`);
  }
}

/** The body of an error answer that the server itself sends. */
const ERROR = { error: 'What is wrong. You were not charged.' };
const CHALLENGE = {
  x402Version: 2,
  error: 'Payment required',
  resource: { url: 'https://shop.example/v1/call', description: 'A call', mimeType: 'application/json' },
  accepts: [
    {
      scheme: 'exact',
      network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      amount: '10000',
      maxAmountRequired: '10000',
      payTo: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4',
      asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
      maxTimeoutSeconds: 60,
      extra: { feePayer: 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb', decimals: 6 },
    },
  ],
  extensions: {},
};
const OWN_ANSWERS = { 400: ERROR, 402: CHALLENGE, 502: ERROR, 503: ERROR };

/** A seller may describe these answers differently, but the schema must accept them. Shared components are checked once. */
function reportOwnAnswers({ document, paid }: Contract, check: Check, fault: Fault): void {
  const checked = new Set<unknown>();
  for (const operation of paid) {
    const { path, method } = operation;
    const { responses } = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
    for (const [status, answer] of Object.entries(OWN_ANSWERS)) {
      const response = objectOf(objectOf(responses)[status]);
      const key = typeof response.$ref === 'string' ? `${status} ${response.$ref}` : response;
      if (checked.has(key)) continue;
      checked.add(key);
      const at = [...placeOf(operation), 'responses', status];
      reportOwnAnswer(document, { at, status, response, answer }, check, fault);
    }
  }
}

type OwnAnswer = { at: string[]; status: string; response: Json; answer: Json };

function reportOwnAnswer(
  document: Json,
  { at, status, response, answer }: OwnAnswer,
  check: Check,
  fault: Fault,
): void {
  try {
    const { schema } = objectOf(objectOf(follow(document, response).content)['application/json']);
    const wrong = isObject(schema) ? check(schema, answer) : undefined;
    if (wrong !== undefined)
      fault(
        at,
        `the server itself answers ${status}, with a body that this schema refuses: ${wrong}. Leave ${status} out, and the build adds it`,
      );
  } catch (error) {
    if (error instanceof PatternFault) return;
    fault(at, `its answer ${status} can't be used: ${(error as Error).message}`);
  }
}

/** Reports examples that can't be sent, and an example path that does not lead to this operation. */
function reportCall(routes: Routes, operation: CalledOperation, fault: Fault): void {
  const { id, method, examplePath, parameters, request } = operation;
  const at = [...placeOf(operation), 'parameters'];
  const route = routes.match(method, examplePath);
  const sent = parameters.filter(each => each.in === 'query');
  const texts = sent.flatMap(each => queryPairs(each, each.example));
  if (route.kind !== 'operation' || route.id !== id)
    return fault(
      at,
      `its example path, ${examplePath}, ${route.kind === 'operation' ? `leads to ${route.id} instead` : 'does not lead to it'}: give its parameters other examples`,
    );
  const query = new URLSearchParams(texts).toString();
  const headers = parameters.filter(each => each.in === 'header' && each.example !== undefined);
  const named = headers.map(
    ({ name, example }) => [name.toLowerCase(), [example].flat().join(', ')] as const,
  );
  const body = request && sentBodyOf(request, structuredClone(request.example));
  if (body && 'wrong' in body)
    return fault(
      [...placeOf(operation), 'requestBody', 'content', request.mimeType, 'example'],
      `the example of its body is wrong: ${body.wrong}`,
    );
  const checked = routes.checkAsked(route, query, body, Object.fromEntries(named));
  if (!checked.ok) fault(at, `the example of its parameters is wrong: ${checked.error}`);
}
