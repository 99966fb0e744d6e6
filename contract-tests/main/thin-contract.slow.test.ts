import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { callTool, mcp, paid, payloadOf } from '../support/mcp-call.js';
import { TestUpstream } from '../support/upstream-shop.js';
import {
  call,
  challengeOf,
  openWorld,
  post,
  receiptOf,
  signFor,
  type Answer,
  type World,
} from '../support/world.js';

const PATH = '/v1/words';
const ASKED = { text: 'One coin, one call.' };

/** A seller's contract with one operation. It declares no example, payment parameter, error response or free document. */
const thin = (api: string): string => `openapi: 3.1.0
info: { title: A thin shop }
paths:
  ${PATH}:
    post:
      operationId: countWords
      x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }
      x-upstream: { url: '${api}/words' }
      requestBody:
        required: true
        content:
          application/json:
            schema: { type: object, required: [text], properties: { text: { type: string, maxLength: 200 } } }
      responses:
        '200':
          content: { application/json: { schema: { type: object, properties: { value: { type: number } } } } }
`;

describe('A shop whose contract has only its own operation', function () {
  this.timeout(60_000);
  let folder: string;
  let upstream: TestUpstream;
  let world: World;

  before(async () => {
    upstream = await TestUpstream.open();
    folder = await mkdtemp(join(tmpdir(), 'coinslot-thin-'));
    await writeFile(join(folder, 'openapi.yaml'), thin(upstream.url));
    world = await openWorld({ SHOP_DIR: folder, ALLOW_PRIVATE_UPSTREAMS: 'true' });
  });
  after(async () => {
    await world?.close();
    upstream.close();
    await rm(folder, { recursive: true, force: true });
  });

  const buy = async (): Promise<Answer> => post(world.url + PATH, ASKED, await signFor(world, PATH));

  it('answers an unpaid call with 402 in both versions of x402, and with an example of the call', async () => {
    const unpaid = await post(world.url + PATH, ASKED);
    expect(unpaid.status).to.equal(402);
    const challenge = challengeOf(unpaid);
    expect(challenge.accepts[0]).to.have.property('amount', '10000');
    expect(JSON.stringify(challenge)).to.contain('"body":{"text":"string"}');
    for (const header of ['payment-required', 'access-control-expose-headers'])
      expect(unpaid.headers.get(header), header).to.be.a('string');
    expect((await post(`${world.url}${PATH}?x402Version=1`, ASKED)).json().x402Version).to.equal(1);
  });

  it('sells over HTTP, with a receipt and a link to the answer, once for each payment', async () => {
    const earned = await world.earned();
    const headers = await signFor(world, PATH);
    const sold = await post(world.url + PATH, ASKED, headers);
    expect([sold.status, sold.json(), receiptOf(sold).success]).to.deep.equal([200, { value: 1 }, true]);
    const again = await post(world.url + PATH, ASKED, headers);
    expect([again.status, again.body]).to.deep.equal([200, sold.body]);
    const location = sold.headers.get('location') ?? '';
    expect(location).to.match(new RegExp(`^${world.url}/answers/`));
    const fetched = await call(location);
    expect([fetched.status, fetched.body]).to.deep.equal([200, sold.body]);
    expect((await world.earned()) - earned).to.equal(10_000n);
  });

  it('rejects a body that violates its schema, without a charge', async () => {
    const earned = await world.earned();
    const refused = await post(world.url + PATH, { text: 7 }, await signFor(world, PATH));
    expect(refused.status).to.equal(400);
    expect(refused.json().error).to.match(/^text must be a string\. You were not charged/);
    expect(await world.earned()).to.equal(earned);
  });

  it('sells over MCP, with a receipt and a link to the answer', async () => {
    const { message } = await mcp(world.url, 'tools/list');
    expect(JSON.stringify(message.result)).to.contain('"countWords"').and.to.contain('"pick_up"');
    const headers = await signFor(world, PATH);
    const sold = await callTool(world.url, 'countWords', ASKED, paid(payloadOf(headers)));
    expect(sold.content[0]?.text).to.equal('{"value":1}');
    expect(sold._meta).to.have.property('coinslot/pick-up');
    expect(sold._meta).to.have.nested.property('x402/payment-response.success', true);
  });

  it('publishes the same documents as any shop, and serves the whole contract', async () => {
    for (const path of ['/', '/health', '/.well-known/x402'])
      expect((await call(world.url + path)).status, path).to.equal(200);
    const served = (await call(`${world.url}/openapi.json`)).json() as unknown as {
      paths: Record<string, Record<string, { responses: object }>>;
    };
    expect(served.paths).to.have.all.keys(
      ...[PATH, '/', '/.well-known/x402', '/openapi.json', '/health', '/answers/{key}'],
    );
    expect(served.paths[PATH]?.post?.responses).to.have.all.keys('200', '400', '402', '502', '503');
  });

  it('answers 502 if its API fails, without a charge', async () => {
    const earned = await world.earned();
    upstream.says(500, '{}');
    expect((await buy()).status).to.equal(502);
    expect(await world.earned()).to.equal(earned);
  });
});
