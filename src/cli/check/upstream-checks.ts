import type { Contract } from '../../contract/contract.js';
import { messageOf } from '../../ledger/fault.js';
import { runChecks, type Check, type Finding } from '../../checks/preflight.js';
import { createHttpOperations } from '../../upstreams/http-operations/http-operations.js';
import type { UpstreamSettings } from '../../upstreams/http-operations/upstream-request.js';

/**
 * The APIs that the contract sells through `x-upstream`: whether their environment variables are set, and
 * whether they can be reached now.
 */
export async function lookAtUpstreams(contract: Contract, settings: UpstreamSettings): Promise<Finding[]> {
  const sold = [...contract.paid, ...contract.given].filter(({ upstream }) => upstream);
  if (sold.length === 0) return [];
  const subject = 'x-upstream';
  let apis: ReturnType<typeof createHttpOperations>;
  try {
    apis = createHttpOperations(contract, settings);
  } catch (error) {
    return [{ level: 'error', subject, found: messageOf(error) }];
  }
  try {
    const warnings = apis.warnings.map((found): Finding => ({ level: 'warning', subject, found }));
    return [...warnings, ...(await runChecks(sold.map(({ id }) => reachable(id, apis.probes[id]))))];
  } finally {
    await apis.close();
  }
}

function reachable(id: string, probe: ((signal: AbortSignal) => Promise<unknown>) | undefined): Check {
  const subject = 'x-upstream';
  return {
    subject,
    look: async signal => {
      try {
        await probe?.(signal);
        return [{ level: 'ok', subject, found: `the API of ${id} can be reached` }];
      } catch (error) {
        const found = `the API of ${id} cannot be reached now (${messageOf(error)})`;
        const todo = 'check its url in openapi.yaml and the network; calls fail until it can be reached';
        return [{ level: 'warning', subject, found, todo }];
      }
    },
  };
}
