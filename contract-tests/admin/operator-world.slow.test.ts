import { expect } from 'chai';
import { call, openWorld, post, receiptOf, signFor, TEXT, type World } from '../support/world.js';

describe('the admin listener of a whole server', function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await openWorld({ ADMIN_TOKEN: 'a-token-that-nobody-guesses' });
  });
  after(() => world.close());

  it("shows a sale, while the public listener shows only the buyer's receipt, and closes with the server", async () => {
    const paid = await post(
      `${world.url}/v1/summarize`,
      { text: TEXT },
      await signFor(world, '/v1/summarize'),
    );
    expect(paid.status).to.equal(200);
    const key = (paid.headers.get('location') ?? '').split('/').at(-1);
    const receipt = await call(`${world.url}/receipts/${key}`);
    expect([receipt.status, receipt.body.toString()].join(' '))
      .to.match(/^200 /)
      .and.include(receiptOf(paid).transaction);
    const { admin } = world.server;
    const signIn = await fetch(`${admin.url}/login`, {
      method: 'POST',
      body: new URLSearchParams({ token: 'a-token-that-nobody-guesses' }),
      redirect: 'manual',
    });
    const cookie = (signIn.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const page = await (await fetch(admin.url, { headers: { cookie } })).text();
    expect(page).to.include('<code>summarize</code>').and.include('delivered');
    const id = /href="\/payments\/([0-9a-f]{64})"/.exec(page)?.[1] ?? '';
    const details = await (await fetch(`${admin.url}/payments/${id}`, { headers: { cookie } })).text();
    expect(details).to.include(receiptOf(paid).transaction);
    for (const path of ['/metrics', '/ready', '/overview', '/operator.js', `/payments/${id}`])
      expect((await call(`${world.url}${path}`, { headers: { cookie } })).status, path).to.equal(404);
    const live = await fetch(`${admin.url}/live`, { headers: { cookie } });
    expect(live.status).to.equal(200);
    await world.server.stop();
    await live.text();
    expect(await fetch(admin.url).catch((error: unknown) => error)).to.be.instanceOf(TypeError);
  });
});
