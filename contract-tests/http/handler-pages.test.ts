import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { servePages } from '../../src/http/handler-pages.js';
import { PageFault, readForm } from '../../src/pages/form.js';
import { html } from '../../src/pages/page-responses.js';
import type { Pages } from '../../src/shop/pages.js';

const PAGES: Pages = {
  path: '/tea',
  name: 'Tea',
  routes: [
    { method: 'GET', path: '/', serve: ctx => html(ctx, 200, '<p>Tea</p>') },
    { method: 'GET', path: '/cups/:cup', serve: ctx => html(ctx, 200, ctx.params['cup'] ?? '') },
    {
      method: 'POST',
      path: '/cups',
      serve: async ctx => {
        const form = await readForm(ctx);
        if (form.get('cup') === null) throw new PageFault(400, 'Say which cup.');
        if (form.get('cup') === 'broken') throw new Error('a secret of the shop');
        ctx.status = 204;
      },
    },
  ],
};

describe('The pages of an operation', () => {
  const logged: string[] = [];
  const log = {
    info() {},
    warn() {},
    error: ({ error }: { error?: Error }) => void logged.push(error?.message ?? ''),
  };
  let server: Server;
  let url: string;

  before(async () => {
    const app = new Koa();
    app.silent = true;
    app.use((ctx, next) => {
      ctx.set('Access-Control-Allow-Origin', '*');
      return next();
    });
    app.use(servePages(PAGES, log));
    app.use(
      servePages({ ...PAGES, path: '/broken', failed: () => Promise.reject(new Error('no words')) }, log),
    );
    app.use(ctx => void (ctx.body = 'the contract'));
    const handle = app.callback();
    server = createServer((request, response) => void handle(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const send = (fields: Record<string, string>, headers = {}): Promise<Response> =>
    fetch(`${url}/tea/cups`, { method: 'POST', body: new URLSearchParams(fields), headers });

  it('are closed to other sites, and get only requests for their own paths', async () => {
    const page = await fetch(`${url}/tea/`);
    expect([page.status, await page.text()]).to.deep.equal([200, '<p>Tea</p>']);
    expect(page.headers.get('content-security-policy')).to.include("default-src 'none'");
    expect(page.headers.get('x-frame-options')).to.equal('DENY');
    expect(page.headers.get('access-control-allow-origin')).to.equal(null);
    for (const path of ['/', '/teapot', '/tea/unknown'])
      expect(await (await fetch(url + path)).text(), path).to.equal('the contract');
    expect(await (await fetch(`${url}/tea/cups/blue`)).text()).to.equal('blue');
    const { status, headers } = await fetch(`${url}/tea`, { redirect: 'manual' });
    expect([status, headers.get('location')]).to.deep.equal([302, '/tea/']);
  });

  it('accept no form from another site, and none that is too large', async () => {
    expect((await send({ cup: 'blue' })).status).to.equal(204);
    const foreign = await send({ cup: 'blue' }, { origin: 'https://elsewhere.example' });
    expect(foreign.status).to.equal(403);
    expect((await send({ cup: 'x'.repeat(40_000) })).status).to.equal(413);
  });

  it('show the message of a known error, and nothing of an unexpected one', async () => {
    const missing = await send({});
    expect([missing.status, await missing.text()]).to.deep.equal([400, 'Say which cup.\n']);
    const failed = await send({ cup: 'broken' });
    expect([failed.status, failed.headers.get('retry-after')]).to.deep.equal([503, '60']);
    expect(await failed.text()).to.not.include('secret');
    expect(logged).to.deep.equal(['a secret of the shop']);
  });

  it('get our error page if their own also fails, and both errors are logged', async () => {
    logged.length = 0;
    const body = new URLSearchParams({ cup: 'broken' });
    const answer = await fetch(`${url}/broken/cups`, { method: 'POST', body });
    expect([answer.status, await answer.text()]).to.deep.equal([
      503,
      'This page cannot be shown at the moment. Try again in a minute.\n',
    ]);
    expect(logged).to.deep.equal(['a secret of the shop', 'no words']);
  });
});
