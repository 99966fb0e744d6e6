import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { describeInCi } from '../support/extent.js';
import { noProxy, openWithOps, type Proxy } from '../support/proxies.js';

/** Longer than the minute that proxies wait by default, and than HOLD_SECONDS. */
const HELD_MS = 75_000;
const NAMES = ['nginx', 'haproxy', 'caddy'] as const;

// The test has to hold a call for longer than proxies wait by default. It does so once, for all three proxies together.
describeInCi('A call that is held for 75 seconds', function () {
  this.timeout(HELD_MS + 45_000);
  let server: Server;
  const proxies = new Map<string, Proxy>();
  const open: ServerResponse[] = [];

  before(async function () {
    if (NAMES.some(noProxy)) return this.skip();
    server = createServer(({ url }, response) => {
      open.push(response);
      // A stream begins immediately, and then stays silent.
      if (url === '/stream')
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const name of NAMES) proxies.set(name, await openWithOps(name, target));
  });
  after(async () => {
    for (const proxy of proxies.values()) await proxy.close();
    server?.closeAllConnections();
    server?.close();
  });

  it('is answered through nginx, HAProxy and Caddy with their files in ops/, and a silent stream continues', async () => {
    const asked = [...proxies].flatMap(([name, { url }]) => [
      { what: `${name}, a call`, answer: bodyOf(`${url}/call`) },
      { what: `${name}, a stream`, answer: bodyOf(`${url}/stream`) },
    ]);
    const ended = Promise.race(asked.map(({ what, answer }) => answer.then(body => `${what}: ${body}`)));
    expect(await Promise.race([ended, sleep(HELD_MS, 'all wait')])).to.equal('all wait');
    expect(open).to.have.length(asked.length);
    for (const response of open) response.end('data: last\n\n');
    for (const { what, answer } of asked)
      expect(await answer, what).to.match(/^200 (data: 1\n\n)?data: last\n\n$/);
  });
});

async function bodyOf(url: string): Promise<string> {
  const sent = get(url);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let body = '';
  for await (const chunk of response) body += String(chunk);
  return `${response.statusCode} ${body}`;
}
