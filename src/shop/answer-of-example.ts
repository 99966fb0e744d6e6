import { Routes } from '../contract/routes.js';
import type { Parameter, PricedOperation } from '../contract/contract.js';
import type { AnyAsked, AnyServed } from '../contract/operation.js';
import { isSoldStatus } from '../contract/sold-status.js';
import type { HandlerContext } from './handler-context.js';
import { SettingReader } from '../config/setting-reader.js';
import { contexts, type ContextParts } from './open-handlers.js';
import { readSettings } from './settings.js';
import { loadShop, type HandlerTable } from './load-shop.js';

/** A handler's answer, and the contract's example of it. */
export type ExampleAnswer = {
  status: number;
  body: unknown;
  headers: Record<string, string>;
  example: unknown;
};

/** `env`: the variables that the operation's settings are read from. */
type Given = Partial<ContextParts> & { env?: Readonly<Record<string, string>> };

const DEADLINE_MS = 20_000;

/**
 * Calls a handler with the example of its operation in openapi.yaml, and checks its answer against the contract. For tests: nothing is
 * paid, and no server runs.
 * @param given the parts of the context that the handler uses; `chain`, `network` and `panel` must be given if used; `env`: the
 * variables that set its settings
 * @param folder the folder of the shop, which must be compiled
 * @throws Error if the handler throws, or if its answer breaks the contract; ContractFault if the shop can't be loaded
 */
export async function answerOfExample(
  operationId: string,
  given: Given = {},
  folder: string = process.cwd(),
): Promise<ExampleAnswer> {
  const { contract, handlers } = await loadShop(folder);
  const operation = contract.paid.find(({ id }) => id === operationId);
  const create = handlers[operationId];
  if (!operation || !create) throw new Error(`No handler sells ${operationId}.`);
  const served = await openWith(operationId, create, given);
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
  const call = { ...asked, signal: AbortSignal.timeout(DEADLINE_MS), caller, ...(upfront ? { order } : {}) };
  const { status, body, headers = {} } = await served.call(call).finally(() => served.close?.());
  const [form] = operation.answers;
  const routes = await Routes.create(contract);
  const route = routes.routeOf(operationId);
  const fault =
    route && isSoldStatus(status) ? routes.checkReply(route, { status, body, headers }) : undefined;
  if (fault !== undefined) throw new Error(`The answer of ${operationId} breaks the contract: ${fault}`);
  return { status, body, headers, example: form.example };
}

/** Creates the handler of an operation with the settings and context parts that the test gave. */
async function openWith(
  id: string,
  create: HandlerTable[string],
  { env = {}, ...parts }: Given,
): Promise<AnyServed> {
  const reader = new SettingReader(env);
  const { [id]: values = {} } = readSettings({ [id]: create }, reader, parts.network?.name ?? 'sandbox');
  reader.finish();
  return (await create(contextFrom(id, parts, values))) as AnyServed;
}

function exampleOf({ parameters, request }: PricedOperation): AnyAsked {
  const values = (place: Parameter['in']): Record<string, unknown> =>
    Object.fromEntries(
      parameters
        .filter(each => each.in === place && each.example !== undefined)
        .map(({ name, example }) => [name, example]),
    );
  const headers = parameters.some(each => each.in === 'header') ? { headers: values('header') } : {};
  const body: unknown = structuredClone(request?.example);
  return { params: values('path'), query: values('query'), body, ...headers };
}

/** The parts of the context that need not be given. */
const UNUSED: Pick<ContextParts, 'log' | 'publicUrl' | 'sandboxServices'> = {
  log: { info: () => {}, warn: () => {}, error: () => {} },
  publicUrl: 'https://shop.example',
  sandboxServices: undefined,
};

/** A context whose members throw if a handler uses one that the test did not give. */
function contextFrom(id: string, given: Partial<ContextParts>, values: object): HandlerContext {
  const parts: Partial<HandlerContext> = contexts({ ...UNUSED, ...given } as ContextParts)(id, values);
  return new Proxy(parts, {
    get: (target, name) => {
      if (name in target) return target[name as keyof HandlerContext];
      throw new Error(`The handler uses ${String(name)} of its context: pass it to answerOfExample.`);
    },
  }) as HandlerContext;
}
