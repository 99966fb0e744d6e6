import { expect } from 'chai';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkShop } from '../../../src/cli/conformance/check-shop.js';
import type { Finding } from '../../../src/cli/conformance/findings.js';
import { openWorld, type World } from '../../support/world.js';
import { priceOf } from '../../support/sold.js';

type Reply = { status: number; headers: Record<string, string>; body: Buffer };
type Harm = (path: string, method: string, reply: Reply, headers: IncomingHttpHeaders) => void;

/** A proxy that breaks what passes through it. It poses as the shop, so it replaces the server's own address in every body. */
async function harmfulFront(
  upstream: string,
  harm: Harm,
  tellsHangUps = true,
): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), 20_000);
    response.once('close', () => {
      clearTimeout(timer);
      if (tellsHangUps) over.abort();
    });
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = 'GET', url: path = '/', headers } = request;
      const passed = Object.entries(headers).filter(
        ([name]) => !/^(host|connection|content-length)$/.test(name),
      );
      const answer = await fetch(upstream + path, {
        method,
        headers: passed as [string, string][],
        ...(chunks.length ? { body: Buffer.concat(chunks) } : {}),
        signal: over.signal,
      });
      if (answer.body && answer.headers.get('content-type')?.startsWith('text/event-stream')) {
        response.writeHead(answer.status, { 'Content-Type': 'text/event-stream' });
        for await (const event of answer.body) response.write(event);
        return void response.end();
      }
      const reply: Reply = {
        status: answer.status,
        headers: Object.fromEntries(answer.headers),
        body: Buffer.from(await answer.arrayBuffer()),
      };
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      reply.body = Buffer.from(reply.body.toString('latin1').replaceAll(upstream, address), 'latin1');
      if (reply.headers['payment-required'])
        reply.headers['payment-required'] = reply.body.toString('base64');
      harm(path, method, reply, headers);
      // `fetch` has already decompressed the body.
      delete reply.headers['content-encoding'];
      delete reply.headers['content-length'];
      delete reply.headers.connection;
      response.writeHead(reply.status, reply.headers).end(reply.body);
    })().catch(() => response.destroy());
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

/** The errors, except for the missing contact: this repository's contract names none, because each operator has their own. */
const faults = (findings: Finding[]): string[] =>
  findings
    .filter(({ promise, fault }) => fault !== undefined && !promise.startsWith('info.contact.email'))
    .map(({ promise, fault }) => `${promise}: ${fault}`);

describe('The conformance report', function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());

  it('finds no error in our own server, and pays nothing unless asked', async () => {
    const earned = await world.earned();
    const findings = await checkShop(world.url);
    expect(faults(findings)).to.deep.equal([]);
    expect(findings).to.have.length.above(25);
    expect(await world.earned()).to.equal(earned);
  });

  it('buys the cheapest operation once if it has a key and a limit', async () => {
    const earned = await world.earned();
    const purse = { keypair: world.buyer, maxPrice: priceOf('summarize'), rpcUrl: world.sandbox.rpc.url };
    expect(faults(await checkShop(world.url, purse))).to.deep.equal([]);
    expect((await world.earned()) - earned).to.equal(priceOf('summarize'));
  });

  it('does not pay more than the limit', async () => {
    const earned = await world.earned();
    const purse = { keypair: world.buyer, maxPrice: 9_000n, rpcUrl: world.sandbox.rpc.url };
    const found = faults(await checkShop(world.url, purse));
    expect(found).to.have.length(1);
    expect(found[0]).to.contain('--max-price is 0.009');
    expect(await world.earned()).to.equal(earned);
  });

  it('reports that nothing answers at an address', async () => {
    const found = faults(await checkShop('http://127.0.0.1:1'));
    expect(found).to.have.length(1);
    expect(found[0]).to.contain('http://127.0.0.1:1').and.to.contain('fetch failed');
  });

  const paidHarms: [string, string, Harm][] = [
    [
      'a shop that charges for a call it refuses',
      'it was charged and answered with 400',
      (_path, _method, { status, headers }) => {
        if (status === 400) headers['payment-response'] = btoa('{"success":true,"transaction":"1"}');
      },
    ],
    [
      'a shop that gives another answer to a payment that it has seen',
      'got two different answers',
      (_path, _method, reply, headers) => {
        if (headers['payment-signature'] && reply.status === 200)
          reply.body = Buffer.from(JSON.stringify({ at: process.hrtime.bigint().toString() }));
      },
    ],
  ];
  for (const [name, fault, harm] of paidHarms) {
    it(`finds ${name}`, async () => {
      const { url, server } = await harmfulFront(world.url, harm);
      try {
        const purse = { keypair: world.buyer, maxPrice: priceOf('summarize'), rpcUrl: world.sandbox.rpc.url };
        const all = faults(await checkShop(url, purse));
        // The signed receipts name the server behind the proxy, whose address is private.
        const found = all.filter(each => !each.includes('/.well-known/did.json has a private address'));
        expect(found).to.have.length(1);
        expect(found[0]).to.contain(fault);
      } finally {
        server.closeAllConnections();
        await new Promise(resolve => server.close(resolve));
      }
    });
  }

  const edit = (reply: Reply, from: string | RegExp, to: string): void => {
    reply.body = Buffer.from(reply.body.toString('utf8').replace(from, to));
    if (reply.headers['payment-required']) reply.headers['payment-required'] = reply.body.toString('base64');
  };
  const harms: [string, string, Harm][] = [
    [
      'a proxy that drops the challenge header',
      'no PAYMENT-REQUIRED header',
      (_path, _method, { headers }) => {
        delete headers['payment-required'];
      },
    ],
    [
      'a challenge header that differs from the body',
      'not the base64 of the body',
      (_path, _method, { headers }) => {
        const header = headers['payment-required'];
        if (header) headers['payment-required'] = Buffer.from(`${atob(header)} `).toString('base64');
      },
    ],
    [
      'a header that is too large for proxies',
      'nginx passes on only 4096',
      (_path, _method, reply) => {
        if (reply.status === 402) edit(reply, '"accepts"', `"filler":"${'x'.repeat(3000)}","accepts"`);
      },
    ],
    [
      'another price than in the description',
      'the price of 0.50 USD is 500000',
      (path, _method, reply) => {
        if (path.startsWith('/brand-feedback')) edit(reply, /"500000"/g, '"50000"');
      },
    ],
    [
      'another receiver on one path',
      'the money goes to',
      (path, _method, reply) => {
        if (path.startsWith('/v1/tts')) edit(reply, /"payTo":"[^"]+"/g, `"payTo":"${'1'.repeat(32)}"`);
      },
    ],
    [
      'a cached challenge',
      'cache-control is public',
      (_path, _method, { status, headers }) => {
        if (status === 402) headers['cache-control'] = 'public, max-age=60';
      },
    ],
    [
      'a paid operation that answers without payment',
      'status 200 instead of 402',
      (path, method, reply) => {
        if (path.startsWith('/v1/summarize') && method === 'POST') reply.status = 200;
      },
    ],
    [
      'a v2 challenge for first-generation clients',
      'no PAYMENT-REQUIRED header',
      (path, _method, reply) => {
        if (path.includes('x402Version=1')) edit(reply, '"x402Version":1', '"x402Version":2');
      },
    ],
    [
      'a v2 challenge that names the v1 network',
      'this is not an x402 challenge: accepts.0.network',
      (path, _method, reply) => {
        if (reply.status === 402 && !path.includes('x402Version=1'))
          edit(reply, /"network":"solana:[^"]+"/, '"network":"solana-devnet"');
      },
    ],
    [
      'a document that does not match its own schema',
      'does not match its schema',
      (path, _method, reply) => {
        if (path === '/') edit(reply, '"service":', '"servant":');
      },
    ],
    [
      'a proxy that accepts no large body',
      'status 413',
      (_path, _method, reply, headers) => {
        if (Number(headers['content-length']) > 100_000) reply.status = 413;
      },
    ],
    [
      'documents that are never revalidated',
      'instead of 304',
      (_path, _method, reply) => {
        if (reply.status === 304) reply.status = 200;
      },
    ],
    [
      'a preflight without the payment headers',
      'access-control-allow-headers is content-type: it lacks',
      (_path, method, { headers }) => {
        if (method === 'OPTIONS') headers['access-control-allow-headers'] = 'content-type';
      },
    ],
    [
      'a 404 page of another program',
      'not JSON',
      (_path, _method, reply) => {
        if (reply.status === 404) reply.headers['content-type'] = 'text/html';
      },
    ],
    [
      'a 405 that does not say what is allowed',
      'no allow header',
      (_path, _method, reply) => {
        delete reply.headers.allow;
      },
    ],
    [
      'a proxy that limits request headers to 8 KB',
      'status 431',
      (_path, _method, reply, headers) => {
        if (JSON.stringify(headers).length > 8192) reply.status = 431;
      },
    ],
    [
      'a wrong price in the index',
      'the price of POST /brand-feedback is 0.05 USDC',
      (path, _method, reply) => {
        if (path === '/') edit(reply, '0.50 USDC', '0.05 USDC');
      },
    ],
    [
      'a discovery document that lacks an operation',
      'lists nothing',
      (path, _method, reply) => {
        if (path === '/tts/.well-known/x402') edit(reply, /"resources":\[[^\]]*\]/, '"resources":[]');
      },
    ],
    [
      'a degraded backend',
      'it says degraded',
      (path, _method, reply) => {
        if (path === '/health') edit(reply, '"status":"ok"', '"status":"degraded"');
      },
    ],
  ];
  it("finds a proxy that hides a caller's hang-up, without buying", async () => {
    const { url, server } = await harmfulFront(world.url, () => undefined, false);
    try {
      expect(faults(await checkShop(url)).join('\n')).to.match(
        /^the server notices a caller that hangs up[^\n]*ops\/$/,
      );
    } finally {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    }
  });

  for (const [name, fault, harm] of harms) {
    it(`finds ${name}`, async () => {
      const { url, server } = await harmfulFront(world.url, harm);
      try {
        const found = faults(await checkShop(url));
        expect(found.join('\n')).to.contain(fault);
        // The proxy itself breaks nothing: the finding comes from this fault alone.
        for (const line of found) expect(line).to.contain(fault);
      } finally {
        server.closeAllConnections();
        await new Promise(resolve => server.close(resolve));
      }
    });
  }
});
