import { serve } from '@hono/node-server';
import { paymentMiddleware } from '@x402/hono';
import { Hono } from 'hono';
import { port, resourceServer, routes, signal, work } from './operations.js';

const { path, handle } = await work();
const app = new Hono();
app.use(paymentMiddleware(routes, resourceServer()));
app.post(path, async context => {
  const { status, body, headers } = await handle({ body: await context.req.json(), signal });
  if (body instanceof Uint8Array) {
    return context.body(body, status, { ...headers, 'Content-Type': 'audio/wav' });
  }
  return context.json(body, status, headers);
});
serve({ fetch: app.fetch, port, hostname: '127.0.0.1' });
