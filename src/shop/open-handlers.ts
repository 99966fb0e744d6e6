import { ContractFault, type Contract } from '../contract/contract.js';
import type { AnyServed, Serving, ServingFree } from '../contract/operation.js';
import type { Probe } from '../contract/probe.js';
import type { HandlerContext, OrderInProgress } from './handler-context.js';
import type { AdminSection } from './admin-section.js';
import type { AnyOpened, HandlerTable } from './load-shop.js';
import { pageFaults } from './page-paths.js';
import type { Pages } from './pages.js';

/** The handlers of a shop, as the server calls them. */
export type OpenHandlers = {
  /** The handlers of the paid operations. */
  serving: Serving;
  free: ServingFree;
  /** The probes by their names in /health. */
  probes: Record<string, Probe>;
  pages: readonly Pages[];
  /** By operationId. */
  sections: Readonly<Record<string, AdminSection>>;
  /** Never rejects. */
  close(): Promise<void>;
};

/** The context common to all operations. */
export type ContextParts = Omit<HandlerContext, 'shared' | 'settings' | 'ordersInProgress'> & {
  ordersInProgress: (operation: string) => Promise<OrderInProgress[]>;
};

/**
 * Calls every entry of the table with a context.
 * @param settings the values of the settings that each entry declares, by operationId (`readSettings`)
 * @throws what an entry throws, or a ContractFault if a page's path is taken; entries opened before are closed then
 */
export async function openHandlers(
  contract: Pick<Contract, 'paid' | 'free'>,
  handlers: HandlerTable,
  settings: Readonly<Record<string, object>>,
  parts: ContextParts,
): Promise<OpenHandlers> {
  const contextOf = contexts(parts);
  const opened = await Promise.allSettled(
    Object.entries(handlers).map(
      async ([id, open]) => [id, await open(contextOf(id, settings[id] ?? {}))] as const,
    ),
  );
  const all = opened.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []));
  const close = async (): Promise<void> =>
    void (await Promise.allSettled(all.map(async ([, served]) => served.close?.())));
  const refused = opened.find(each => each.status === 'rejected');
  if (refused) {
    await close();
    throw refused.reason;
  }
  const pages = all.flatMap(([id, served]) => (served.pages ? [{ id, ...served.pages }] : []));
  const faults = [...pageFaults(contract, pages), ...priceFaults(contract, all)];
  if (faults.length > 0) {
    await close();
    throw new ContractFault(faults.join('\n'));
  }
  const paid = new Set(contract.paid.map(({ id }) => id));
  const serving = all
    .filter(([id]) => paid.has(id))
    .map(([id, served]) => [id, named(id, served as AnyServed)]);
  const free = all.filter(([id]) => !paid.has(id));
  return {
    serving: Object.fromEntries(serving) as Serving,
    free: Object.fromEntries(free) as ServingFree,
    probes: probesOf(all),
    pages,
    sections: Object.fromEntries(all.flatMap(([id, { admin }]) => (admin ? [[id, admin]] : []))),
    close,
  };
}

/** Checks that exactly the operations with `mode: handler` have a price function. */
function priceFaults(
  { paid }: Pick<Contract, 'paid'>,
  all: readonly (readonly [string, AnyOpened])[],
): string[] {
  const saying = new Set(all.flatMap(([id, served]) => ('price' in served && served.price ? [id] : [])));
  return paid
    .filter(({ id, pricing }) => saying.has(id) !== (pricing.ofHandler === true))
    .map(({ id }) =>
      saying.has(id)
        ? `The handler of ${id} has a function price that is never called: write mode: handler, min and max in its x-price, or remove the function.`
        : `The x-price of ${id} has mode: handler, but its handler has no function price: add price: asked => '0.02', or change the mode.`,
    );
}

/** The contexts of handlers. Each has settings of its own; the rest is shared. */
export function contexts(parts: ContextParts): (id: string, settings: object) => HandlerContext {
  const made = new Map<unknown, unknown>();
  return (id, settings) => {
    const context: HandlerContext = {
      ...parts,
      ordersInProgress: () => parts.ordersInProgress(id),
      settings,
      shared: <T>(make: (context: HandlerContext) => T): T => {
        if (!made.has(make)) made.set(make, make(context));
        return made.get(make) as T;
      },
    };
    return context;
  };
}

/** A backend without a name is named after its operation. */
function named(id: string, served: AnyServed): AnyServed {
  return served.health && served.backend === undefined ? { ...served, backend: id } : served;
}

function probesOf(all: readonly (readonly [string, AnyOpened])[]): Record<string, Probe> {
  const probes: Record<string, Probe> = {};
  for (const [id, served] of all)
    if (served.health) probes[served.backend ?? id] = async signal => served.health?.(signal);
  return probes;
}
