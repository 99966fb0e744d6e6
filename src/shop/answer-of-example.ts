import { Routes } from '../contract/routes.js';
import type { PricedOperation } from '../contract/contract.js';
import type { AnyAsked, AnyServed } from '../contract/operation.js';
import type { Backends } from '../upstreams/backends.js';
import { loadShop } from './load-shop.js';

/** An answer of a handler, and what the contract gives as its example. */
export type ExampleAnswer = {
  status: number;
  body: unknown;
  headers: Record<string, string>;
  example: unknown;
};

const DEADLINE_MS = 20_000;

/**
 * Calls a handler with the example of its operation in openapi.yaml, and checks its answer against the contract.
 * For tests: nothing is paid, and no server runs.
 * @param backends those that the handler uses; any other throws
 * @param folder of the shop, compiled
 * @throws Error if the handler does, or if the answer breaks the contract; ContractFault if the shop can't be loaded
 */
export async function answerOfExample(
  operationId: string,
  backends: Partial<Backends> = {},
  folder: string = process.cwd(),
): Promise<ExampleAnswer> {
  const { contract, handlers } = await loadShop(folder);
  const operation = contract.paid.find(({ id }) => id === operationId);
  const create = handlers[operationId];
  if (!operation || !create) throw new Error(`No handler sells ${operationId}.`);
  const served = create(strict(backends)) as AnyServed;
  const asked = exampleOf(operation);
  const order = {
    id: 'example',
    deadline: Date.now() + DEADLINE_MS,
    attempt: 1,
    extend: async () => undefined,
  };
  const upfront = operation.flow === 'upfront';
  const caller = 'example';
  if (upfront) await served.ready?.({ ...asked, caller });
  const {
    status,
    body,
    headers = {},
  } = await served.call({
    ...asked,
    signal: AbortSignal.timeout(DEADLINE_MS),
    caller,
    ...(upfront ? { order } : {}),
  });
  const [form] = operation.answers;
  const routes = await Routes.create(contract);
  const route = routes.routeOf(operationId);
  const fault = route && status === 200 ? routes.checkReply(route, { status, body, headers }) : undefined;
  if (fault !== undefined) throw new Error(`The answer of ${operationId} breaks the contract: ${fault}`);
  return { status, body, headers, example: form.example };
}

function exampleOf({ parameters, request }: PricedOperation): AnyAsked {
  const values = (place: 'path' | 'query'): Record<string, unknown> =>
    Object.fromEntries(
      parameters
        .filter(each => each.in === place && each.example !== undefined)
        .map(({ name, example }) => [name, example]),
    );
  return { params: values('path'), query: values('query'), body: structuredClone(request?.example) };
}

/** Fails where a handler takes a backend that the test did not give. */
function strict(backends: Partial<Backends>): Backends {
  return new Proxy(backends, {
    get: (target, name) => {
      if (name in target) return target[name as keyof Backends];
      throw new Error(`The handler uses the backend ${String(name)}: give answerOfExample one.`);
    },
  }) as Backends;
}
