import { expect } from 'chai';
import { callTool, mcp, paid, payloadOf } from '../../support/mcp-call.js';
import { TestUpstream, UpstreamShop, type OperationForSale } from '../../support/upstream-shop.js';

const KEY = 'sk-live/7f3a9b2c+4d5e6f71=';
const OFF = '{"value":"high"}';

describe('An x-upstream whose answers are checked less', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;
  beforeEach(async () => {
    upstream = await TestUpstream.open();
    const upstreams = (check?: string): object => ({
      url: upstream.url,
      timeoutMs: 500,
      maxMembers: 20,
      headers: { 'X-Key': '${SHOP_KEY}' },
      ...(check === undefined ? {} : { check }),
    });
    const operation = (
      id: string,
      check?: string,
      more: Partial<OperationForSale> = {},
    ): OperationForSale => ({
      id,
      path: `/${id}`,
      upstream: upstreams(check),
      ...more,
    });
    shop = await UpstreamShop.open(
      [
        operation('bySchema'),
        operation('byType', 'type', { headers: ['X-Width'] }),
        operation('asItIs', 'none'),
        operation('ofAnyKind', 'none', { content: { '*/*': { type: 'object' } } }),
      ],
      { SHOP_KEY: KEY },
    );
  });
  afterEach(async () => {
    await shop.close();
    upstream.close();
  });

  const sell = async (id: string): Promise<unknown[]> => {
    const { status, headers, body } = await shop.buy(id, `/${id}`);
    return status === 200 ? [status, headers.get('content-type'), String(body)] : [status];
  };

  it('sells JSON that violates its schema, if only the type or nothing is checked, and stores it for its payment', async () => {
    upstream.says(200, OFF);
    expect(await sell('bySchema')).to.deep.equal([502]);
    for (const id of ['byType', 'asItIs', 'ofAnyKind']) {
      const payment = shop.pay(id);
      const answer = await shop.call(`/${id}`, payment);
      expect([answer.status, String(answer.body)], id).to.deep.equal([200, OFF]);
      expect(answer.headers.get('payment-response')).to.be.a('string');
      expect(String((await shop.call(`/${id}`, payment)).body)).to.equal(OFF);
    }
    expect(upstream.calls).to.have.length(4);
    expect(await shop.states()).to.include.members(['delivered', 'delivered', 'delivered']);
  });

  it('sells JSON that violates its schema over MCP, too', async () => {
    upstream.says(200, OFF);
    for (const id of ['byType', 'asItIs']) {
      const result = await callTool(shop.url, id, {}, paid(payloadOf(shop.pay(id))));
      expect([result.isError, result.structuredContent], id).to.deep.equal([undefined, { value: 'high' }]);
    }
  });

  it('check by type: another content type, invalid JSON, or JSON with too many members is not charged', async () => {
    const rows: [string, Record<string, string>?][] = [
      ['<p>', { 'Content-Type': 'text/html' }],
      ['{"value":'],
      [''],
      [JSON.stringify(Array.from({ length: 30 }, () => 0))],
    ];
    for (const [body, headers] of rows) {
      upstream.says(200, body, headers);
      expect(await sell('byType'), body).to.deep.equal([502]);
      expect((await sell('asItIs'))[0], body).to.equal(200);
    }
    expect((await shop.states()).filter(state => state === 'delivered')).to.have.length(rows.length);
  });

  it('no check: the answer is sold with its own content type, or as bytes if it names none', async () => {
    upstream.says(200, '<p>', { 'Content-Type': 'text/html; charset=utf-8' });
    expect(await sell('ofAnyKind')).to.deep.equal([200, 'text/html; charset=utf-8', '<p>']);
    upstream.answer = (_request, response) => void response.writeHead(200).end('a');
    expect(await sell('asItIs')).to.deep.equal([200, 'application/octet-stream', 'a']);
    expect(upstream.calls.at(-1)?.headers.accept).to.equal('*/*');
  });

  it('no check: an error from the API, an answer that is too large or too late, or one with a secret of the seller is still not sold', async () => {
    const escaped = KEY.replaceAll('+', '\\u002B').replaceAll('/', '\\/');
    const rows: [number, string, number][] = [
      [500, OFF, 502],
      [404, OFF, 400],
      [204, '', 502],
      [200, ' '.repeat(5_000_000), 502],
      [200, `{"key":"${KEY}"}`, 502],
      [200, `[${' '.repeat(600_000)}"${escaped}"`, 502],
    ];
    for (const [status, body, answered] of rows) {
      upstream.says(status, body);
      expect(await sell('asItIs'), `${status} ${body.slice(0, 20)}`).to.deep.equal([answered]);
    }
    upstream.says(200, `{"key":"${escaped}"}`, { 'Content-Type': 'text/html' });
    expect(await sell('asItIs'), 'JSON that is called a page').to.deep.equal([502]);
    upstream.answer = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      const drip = setInterval(() => response.write('data: 1\n\n'), 50);
      response.on('close', () => clearInterval(drip));
    };
    expect(await sell('asItIs')).to.deep.equal([502]);
    expect(await shop.states()).not.to.include('delivered');
  });

  it('says how its answers are checked wherever the operation is described', async () => {
    const { message } = await mcp(shop.url, 'tools/list');
    const tools = (message.result as { tools: { name: string; description: string }[] }).tools;
    const { paths } = JSON.parse(shop.openapi) as { paths: Record<string, { get: { description: string } }> };
    for (const [id, said] of [
      ['byType', 'Only the content type of the answer is checked before it is charged'],
      ['asItIs', 'The answer is not checked before it is charged'],
    ] as const) {
      expect(tools.find(({ name }) => name === id)?.description).to.contain(said);
      expect(paths[`/${id}`]?.get.description).to.contain(said);
    }
    expect(paths['/bySchema']?.get.description).not.to.contain('checked');
    expect(shop.openapi).not.to.contain('x-upstream');
  });
});
