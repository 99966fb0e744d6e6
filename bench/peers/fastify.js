import Fastify from 'fastify';
import { fixed, port } from './fixed.js';

const app = Fastify({ keepAliveTimeout: 65_000, bodyLimit: 4 * 1024 * 1024 });
for (const { method, path, status, headers, body } of fixed) {
  const pairs = Object.fromEntries(
    headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]]] : [])),
  );
  // Answers before the body is read, like the other servers.
  const onRequest = (_request, reply) => reply.code(status).headers(pairs).send(body);
  app.route({ method, url: path, onRequest, handler: onRequest });
}
await app.listen({ port, host: '127.0.0.1', backlog: 1024 });
