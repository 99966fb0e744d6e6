import type { Deployed, Deployment } from './deployment.js';
import type { Passing } from './fault-proxy.js';
import type { Services } from './services.js';

/** The faults that tests can inject. docs/how-to/testing.md describes what a buyer gets in each case. */
export type Fault =
  | 'settle-unknown'
  | 'settle-answer-lost'
  | 'rpc-dead'
  | 'facilitator-lies'
  | 'upstream-502'
  | 'price-change'
  | 'respondents-absent';

type Injection = {
  /** What happens to the shop's requests. */
  meets?: (services: Services) => void;
  /** How the shop is deployed during the fault. */
  deployed?: Deployed;
};

/** A well-formed signature that belongs to no transaction: 64 bytes of value 1. */
const NO_TRANSACTION =
  '2AXDGYSE4f2sz7tvMMzyHvUfcoJmxudvdhBcmiUSo6iuCXagjUCKEQF21awZnUGxmwD4m9vGXuC3qieHXJQHAcT';

const FAULTS: Record<Fault, Injection> = {
  'settle-unknown': {
    meets: services => services.meet('facilitator', ({ path }) => (path === '/settle' ? 'cut' : 'pass')),
  },
  'settle-answer-lost': {
    meets: services => services.meet('facilitator', ({ path }) => (path === '/settle' ? 'lose' : 'pass')),
  },
  // What a provider's gateway answers while its nodes are down.
  'rpc-dead': {
    meets: services => services.meet('rpc', () => ({ status: 503, body: { error: 'Service Unavailable' } })),
  },
  'facilitator-lies': {
    meets: services =>
      services.meet('facilitator', request => (request.path === '/settle' ? lie(request) : 'pass')),
  },
  'upstream-502': {
    meets: services => services.meet('upstream', () => ({ status: 502, body: { error: 'Bad Gateway' } })),
  },
  'price-change': { deployed: { prices: 'doubled' } },
  'respondents-absent': { deployed: { respondents: 'absent' } },
};

/** Reports a payment as settled without passing the request on. */
function lie({ body }: Passing): { status: number; body: unknown } {
  const { paymentRequirements } = JSON.parse(body.toString('utf8')) as {
    paymentRequirements: { network: string };
  };
  const { network } = paymentRequirements;
  return { status: 200, body: { success: true, transaction: NO_TRANSACTION, network } };
}

/** Injects and clears faults, one change at a time. */
export function injector(
  services: Services,
  deployment: Deployment,
): { inject(fault: Fault): Promise<void>; clear(): Promise<void> } {
  const injected = new Set<Fault>();
  let changed = Promise.resolve();
  const apply = (change: () => void): Promise<void> => {
    const applied = changed.then(() => {
      change();
      services.clear();
      const injections = [...injected].map(each => FAULTS[each]);
      for (const { meets } of injections) meets?.(services);
      return deployment.become(Object.assign({}, ...injections.map(each => each.deployed)) as Deployed);
    });
    changed = applied.catch(() => undefined);
    return applied;
  };
  return {
    inject: async fault => {
      if (!Object.hasOwn(FAULTS, fault))
        throw new Error(`There is no fault ${fault}. Faults: ${Object.keys(FAULTS).join(', ')}.`);
      await apply(() => injected.add(fault));
    },
    clear: () => apply(() => injected.clear()),
  };
}
