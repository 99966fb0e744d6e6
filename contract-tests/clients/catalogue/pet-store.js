import { once } from 'node:events';
import { createServer } from 'node:http';

/** The API that examples/petstore sells, built from its description. */
export async function openPetStore() {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://pets');
    const [, id] = /^\/pet\/(\d+)$/.exec(pathname) ?? [];
    const pet = id && { id: Number(id), name: 'doggie', photoUrls: [], status: 'available' };
    const answer = pet ?? (pathname === '/store/inventory' ? { available: 3 } : { id: 1, status: 'placed' });
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}`, server };
}
