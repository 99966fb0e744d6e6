import { expect } from 'chai';
import { callTool, paid, payloadOf } from '../../support/mcp-call.js';
import { TestUpstream, UpstreamShop, VALUE } from '../../support/upstream-shop.js';

const TEXT = { type: 'string' };

describe('The content type that a buyer asks for', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;
  beforeEach(async () => {
    upstream = await TestUpstream.open();
    const at = { upstream: { url: upstream.url, timeoutMs: 2_000 } };
    const content = { 'application/json': VALUE, 'text/csv': TEXT, 'application/xml': TEXT };
    shop = await UpstreamShop.open([
      { id: 'report', path: '/report', ...at, content },
      { id: 'order', path: '/order', ...at, content, flow: 'upfront' },
      { id: 'single', path: '/single', ...at },
    ]);
    upstream.answer = ({ headers }, response) => {
      const [type = ''] = (headers.accept ?? '').split(',');
      const body = type === 'application/json' ? '{"value":1}' : type;
      response.writeHead(200, { 'Content-Type': type }).end(body);
    };
  });
  afterEach(async () => {
    await shop.close();
    upstream.close();
  });

  const typeOf = async (accept: string | undefined, id = 'report'): Promise<unknown> => {
    const answer = await shop.buy(id, `/${id}`, undefined, accept === undefined ? {} : { Accept: accept });
    return [answer.status, answer.headers.get('content-type')?.split(';')[0]];
  };

  it('is sold if the operation declares it; otherwise the first declared type is sold', async () => {
    for (const [accept, type] of [
      ['text/csv', 'text/csv'],
      ['application/json;q=0.5, application/xml', 'application/xml'],
      ['text/*', 'text/csv'],
      ['*/*', 'application/json'],
      ['application/json, text/csv', 'application/json'],
      ['image/png', 'application/json'],
      ['!', 'application/json'],
    ] as const)
      expect(await typeOf(accept), accept).to.deep.equal([200, type]);
    expect(await typeOf('text/csv', 'single')).to.deep.equal([200, 'application/json']);
    expect(upstream.calls[0]?.headers.accept).to.equal(
      'text/csv, application/json;q=0.5, application/xml;q=0.5',
    );
    expect(upstream.calls[3]?.headers.accept).to.equal('application/json, text/csv, application/xml');
    expect(upstream.calls.at(-1)?.headers.accept).to.equal('application/json');
  });

  it('is part of the call, so the same payment does not buy another type', async () => {
    const payment = shop.pay('report');
    const csv = await shop.call('/report', { ...payment, Accept: 'text/csv' });
    expect([csv.status, String(csv.body)]).to.deep.equal([200, 'text/csv']);
    const again = await shop.call('/report', { ...payment, Accept: 'text/csv;q=0.9' });
    expect([again.status, String(again.body)]).to.deep.equal([200, 'text/csv']);
    const other = await shop.call('/report', { ...payment, Accept: 'application/json' });
    expect(other.status).not.to.equal(200);
    expect(upstream.calls).to.have.length(1);
  });

  it('is kept with an order; over MCP, the first declared type is sold', async () => {
    expect(await typeOf('text/csv', 'order')).to.deep.equal([200, 'text/csv']);
    const result = await callTool(shop.url, 'report', {}, paid(payloadOf(shop.pay('report'))));
    expect(result.structuredContent).to.deep.equal({ value: 1 });
  });

  it('is only a preference, so an answer of another declared type can be sold as well', async () => {
    upstream.says(200, '{"value":1}');
    expect(await typeOf('text/csv')).to.deep.equal([200, 'application/json']);
  });
});
