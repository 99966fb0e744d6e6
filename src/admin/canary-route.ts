import { readCanaryRun, type CanaryRuns } from '../operator/canary-runs.js';
import type { MachineRoute } from './admin-server.js';

/** The route for the reports of `coinslot canary`. */
export function canaryRoute(runs: Pick<CanaryRuns, 'keep'>): MachineRoute {
  return {
    path: '/canary/runs',
    method: 'POST',
    withoutToken: 'refused',
    serve: async ctx => {
      const run = readCanaryRun(new URLSearchParams(ctx.querystring).get('run') ?? '');
      ctx.status = run ? 200 : 400;
      ctx.body = run
        ? { kept: run.id }
        : { error: 'The parameter `run` is not a report that `coinslot canary` made.' };
      if (run) await runs.keep(run);
    },
  };
}
