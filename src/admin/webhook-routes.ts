import type { Context } from 'koa';
import { EVENT_KINDS } from '../config/event-kinds.js';
import { events } from '../pages/page-responses.js';
import type { Webhooks } from '../webhooks/open-webhooks.js';
import type { MachineRoute } from './admin-server.js';

/** For `coinslot webhooks`: events as they happen, and samples. */
export function webhookRoutes({ listen, tellSamples, targets }: Webhooks): MachineRoute[] {
  return [
    {
      path: '/webhooks/events',
      withoutToken: 'refused',
      serve: async ctx => {
        if (ctx.method === 'HEAD') return void (ctx.status = 204);
        const stream = await listen();
        if (stream) return events(ctx, stream);
        answer(ctx, 503, { error: 'There are too many listeners, or the server is stopping.' });
      },
    },
    {
      path: '/webhooks/samples',
      method: 'POST',
      withoutToken: 'refused',
      serve: async ctx => {
        const kinds = new URLSearchParams(ctx.querystring).getAll('kind');
        const unknown = kinds.find(kind => !Object.hasOwn(EVENT_KINDS, kind));
        if (unknown !== undefined)
          return answer(ctx, 400, {
            error: `There is no event '${unknown}'. The events are ${Object.keys(EVENT_KINDS).join(', ')}.`,
          });
        const samples = await tellSamples(kinds);
        answer(ctx, 200, { samples, targets: targets.map(({ name }) => name) });
      },
    },
  ];
}

function answer(ctx: Context, status: number, body: object): void {
  ctx.status = status;
  ctx.body = body;
}
