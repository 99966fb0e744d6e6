import { ContractFault, type Contract } from './contract.js';

const INDEX = 'handlers/index.ts';
/** Operations that the server itself answers. */
const OWN = ['getIndex', 'getDiscovery', 'getOpenapi', 'getHealth'];

/**
 * Checks that every operation of the contract is served by exactly one of these: a handler, an `x-upstream`, or the server itself.
 * @param handlers by operationId
 * @throws ContractFault with all faults together
 */
export function checkHandlers(contract: Contract, handlers: object): void {
  const has = (id: string): boolean => Object.hasOwn(handlers, id);
  const known = new Set([...contract.paid, ...contract.given, ...contract.free].map(({ id }) => id));
  const faults = [
    ...contract.paid
      .filter(({ id, upstream }) => !upstream && !has(id))
      .map(
        ({ id, method, path }) =>
          `openapi.yaml sells ${id} (${method} ${path}), but nothing serves it: write handlers/${id}.ts and add it to ${INDEX}, or ` +
          'give the operation an x-upstream.',
      ),
    ...[...contract.paid, ...contract.given]
      .filter(({ id, upstream }) => upstream && has(id))
      .map(
        ({ id }) =>
          `${id} has both a handler in ${INDEX} and an x-upstream in openapi.yaml: remove one of them.`,
      ),
    ...contract.free
      .filter(
        ({ id, discovery, health, answers }) =>
          !OWN.includes(id) && !discovery && !health && !answers && !has(id),
      )
      .map(
        ({ id, path }) =>
          `openapi.yaml has ${id} (GET ${path}), but nothing serves it: add it to ${INDEX}, or give it an x-discovery or x-health.`,
      ),
    ...Object.keys(handlers)
      .filter(id => !known.has(id))
      .map(
        id =>
          `${INDEX} has ${id}, but openapi.yaml has no such operation: remove it and handlers/${id}.ts, or describe the operation ` +
          'in openapi.yaml.',
      ),
  ];
  if (faults.length)
    throw new ContractFault(`The contract and the handlers do not match:\n  ${faults.join('\n  ')}`);
}
