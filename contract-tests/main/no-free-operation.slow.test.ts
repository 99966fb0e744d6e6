import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { compileContract } from '../../src/contract/compile-contract.js';
import { documentOf, TestUpstream } from '../support/upstream-shop.js';
import { call, challengeOf, openWorld, receiptOf, signFor, type World } from '../support/world.js';

const PATH = '/items/a';

describe('A shop of one paid operation and no free one', function () {
  this.timeout(60_000);
  let folder: string;
  let upstream: TestUpstream;
  let world: World;

  before(async () => {
    upstream = await TestUpstream.open();
    const sold = {
      id: 'getItem',
      path: '/items/{id}',
      parameters: [{ name: 'id', in: 'path' as const }],
      upstream: { url: `${upstream.url}/{id}` },
    };
    const text = JSON.stringify(documentOf([sold]));
    folder = await mkdtemp(join(tmpdir(), 'coinslot-no-free-'));
    await mkdir(join(folder, 'dist'));
    await writeFile(join(folder, 'openapi.yaml'), text);
    await writeFile(join(folder, 'dist', 'openapi.json'), await compileContract(text));
    world = await openWorld({ SHOP_DIR: folder, ALLOW_PRIVATE_UPSTREAMS: 'true' });
  });
  after(async () => {
    await world?.close();
    upstream.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('starts, answers 402 and sells', async () => {
    const unpaid = await call(world.url + PATH);
    expect(unpaid.status).to.equal(402);
    expect(challengeOf(unpaid).accepts[0]).to.have.property('amount', '10000');
    const sold = await call(world.url + PATH, { headers: await signFor(world, PATH, 2, unpaid) });
    expect([sold.status, sold.json(), receiptOf(sold).success]).to.deep.equal([200, { value: 1 }, true]);
  });

  it('has no path of an operation that its contract does not declare', async () => {
    for (const path of ['/health', '/openapi.json', '/.well-known/x402'])
      expect((await call(world.url + path)).status, path).to.equal(404);
  });
});
