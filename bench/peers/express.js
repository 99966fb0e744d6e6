import express from 'express';
import { paymentMiddleware } from '@x402/express';
import { port, resourceServer, routes, signal, work } from './operations.js';

const { path, handle } = await work();
const app = express();
app.use(paymentMiddleware(routes, resourceServer()));
app.post(path, express.json({ limit: '2mb' }), async (request, response) => {
  const { status, body, headers } = await handle({ body: request.body, signal });
  response.status(status).set(headers ?? {});
  if (body instanceof Uint8Array) response.type('audio/wav').send(Buffer.from(body));
  else response.json(body);
});
app.listen(port, '127.0.0.1', 1024);
