import { ContractFault, type Contract } from './contract.js';

const INDEX = 'handlers/index.ts';

/**
 * Checks that every paid operation of the contract has a handler and that there are no other handlers. The compiler checks the same
 * against the generated types, but the contract may have been edited since they were generated.
 * @throws ContractFault with all faults together
 */
export function checkHandlers(contract: Contract, handlers: object, readiness: object): void {
  const upfront = contract.paid.filter(({ flow }) => flow === 'upfront');
  const faults = [
    ...contract.paid
      .filter(({ id }) => !Object.hasOwn(handlers, id))
      .map(
        ({ id, path }) =>
          `openapi.yaml sells ${id} (POST ${path}), but it has no handler: write handlers/${id}.ts, add it to createHandlers in ` +
          `${INDEX}, then run make generate and make build.`,
      ),
    ...upfront
      .filter(({ id }) => !Object.hasOwn(readiness, id))
      .map(
        ({ id }) =>
          `openapi.yaml sells ${id} with flow: upfront, but nothing says before payment whether it could be delivered: export such a ` +
          `function from handlers/${id}.ts and add it to createReadiness in ${INDEX}.`,
      ),
    ...namesBeside(handlers, contract.paid).map(
      id =>
        `createHandlers in ${INDEX} has ${id}, but openapi.yaml sells no such operation: remove it and handlers/${id}.ts, or ` +
        'describe the operation in openapi.yaml.',
    ),
    ...namesBeside(readiness, upfront).map(
      id =>
        `createReadiness in ${INDEX} has ${id}, but openapi.yaml sells no such operation with flow: upfront: remove it, since ` +
        'nothing would ask it.',
    ),
  ];
  if (faults.length) throw new ContractFault(`The server can't start:\n  ${faults.join('\n  ')}`);
}

function namesBeside(served: object, operations: { id: string }[]): string[] {
  const ids = new Set(operations.map(({ id }) => id));
  return Object.keys(served).filter(name => !ids.has(name));
}
