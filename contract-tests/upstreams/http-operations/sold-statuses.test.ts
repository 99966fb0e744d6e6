import { expect } from 'chai';
import { parseContract } from '../../../src/contract/parse-contract.js';
import { callTool, paid, payloadOf } from '../../support/mcp-call.js';
import {
  ANSWERS_URL,
  TestUpstream,
  UpstreamShop,
  VALUE,
  type OperationForSale,
} from '../../support/upstream-shop.js';
import { call } from '../../support/world.js';

const json = (schema: object): object => ({ content: { 'application/json': { schema } } });
const JOB = { type: 'object', required: ['job'], properties: { job: { type: 'string' } } };

describe('Answers that are sold with their own status', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;
  beforeEach(async () => {
    upstream = await TestUpstream.open();
    const operation = (id: string, sold: Record<string, object>, more: object = {}): OperationForSale => ({
      id,
      path: `/${id}`,
      upstream: { url: upstream.url, timeoutMs: 2_000, ...more },
      sold,
    });
    const created = {
      description: 'Made.',
      headers: { 'X-Id': { schema: { type: 'string' } } },
      ...json(VALUE),
    };
    shop = await UpstreamShop.open([
      operation('make', { 201: created, 200: { description: 'There.', ...json(JOB) } }),
      operation('queue', { 202: { description: 'Taken.', ...json(JOB) } }),
      operation('remove', { 204: { description: 'Gone.' } }),
      operation('touch', { 201: { description: 'Made.' } }),
      operation('anyway', { 200: { description: 'Any.' }, 204: { description: 'None.' } }, { check: 'none' }),
      { ...operation('order', { 202: { description: 'Taken.', ...json(JOB) } }), flow: 'upfront' },
    ]);
  });
  afterEach(async () => {
    await shop.close();
    upstream.close();
  });

  const ROWS: [id: string, status: number, body: string][] = [
    ['make', 201, '{"value":1}'],
    ['make', 200, '{"job":"a"}'],
    ['queue', 202, '{"job":"a"}'],
    ['remove', 204, ''],
    ['touch', 201, ''],
    ['anyway', 204, ''],
    ['order', 202, '{"job":"a"}'],
  ];

  for (const [id, status, body] of ROWS) {
    it(`${id}: ${status} is sold, stored and sent again, and fetched by its key`, async () => {
      upstream.says(status, body, { 'X-Id': '7' });
      const payment = shop.pay(id);
      const seen = async (answer: Promise<Response | Awaited<ReturnType<typeof call>>>): Promise<unknown> => {
        const { status: sent, headers, body: bytes } = (await answer) as Awaited<ReturnType<typeof call>>;
        const type = headers.get('content-type');
        return [sent, String(bytes), type?.split(';')[0] ?? null, headers.get('x-id')];
      };
      const expected = [
        status,
        body,
        body === '' ? null : 'application/json',
        id === 'make' && status === 201 ? '7' : null,
      ];
      const first = await shop.call(`/${id}`, payment);
      expect(await seen(Promise.resolve(first))).to.deep.equal(expected);
      expect(first.headers.get('payment-response')).to.be.a('string');
      expect(first.headers.get('content-length')).to.equal(status === 204 ? null : String(body.length));
      expect(await seen(shop.call(`/${id}`, payment))).to.deep.equal(expected);
      const link = first.headers.get('location')?.replace(ANSWERS_URL, `${shop.url}/answers/`) ?? '';
      expect(await seen(call(link))).to.deep.equal(expected);
      expect(upstream.calls).to.have.length(1);
      expect(await shop.states()).to.deep.equal(['delivered']);
    });
  }

  it('have their status in the metadata over MCP, and a text if there is no content', async () => {
    upstream.says(201, '{"value":1}');
    const made = await callTool(shop.url, 'make', {}, paid(payloadOf(shop.pay('make'))));
    expect([made.isError, made.structuredContent]).to.deep.equal([undefined, { value: 1 }]);
    expect(made._meta).to.include({ 'coinslot/status': 201 });
    upstream.says(204, '');
    const removed = await callTool(shop.url, 'remove', {}, paid(payloadOf(shop.pay('remove'))));
    expect(removed.isError).to.equal(undefined);
    expect(removed.content).to.deep.equal([
      { type: 'text', text: 'The call succeeded with status 204. Its answer has no content.' },
    ]);
    expect(removed._meta).to.include({ 'coinslot/status': 204 });
  });

  it("never have an undeclared status, nor a body that only matches another status's schema", async () => {
    const rows: [id: string, status: number, body: string][] = [
      ['make', 202, '{"value":1}'],
      ['make', 203, '{"value":1}'],
      ['make', 201, '{"job":"a"}'],
      ['make', 200, '{"value":1}'],
      ['queue', 200, '{"job":"a"}'],
      ['remove', 200, '{"value":1}'],
      ['touch', 201, '{"value":1}'],
      ['touch', 204, ''],
      ['anyway', 206, 'a'],
    ];
    for (const [id, status, body] of rows) {
      upstream.says(status, body);
      expect((await shop.buy(id, `/${id}`)).status, `${id} ${status}`).to.equal(502);
    }
    expect(await shop.states()).not.to.include('delivered');
    expect(shop.logged).to.contain('the upstream answered 202, which the contract does not declare');
  });

  it('can come from handlers, too', async () => {
    const replies: Record<string, { status: number; body: unknown; headers?: Record<string, string> }> = {
      make: { status: 201, body: { value: 1 }, headers: { 'X-Id': '7' } },
      queue: { status: 202, body: { job: 'a' } },
      remove: { status: 204, body: undefined },
    };
    const handlers = Object.fromEntries(
      Object.keys(replies).map(id => [id, { call: async () => replies[id] ?? { status: 500, body: '' } }]),
    );
    const operations = ['make', 'queue', 'remove'].map((id): OperationForSale => ({
      id,
      path: `/${id}`,
      upstream: { url: upstream.url },
      sold: {
        make: { 201: { description: 'Made.', ...json(VALUE) } },
        queue: { 202: { description: 'Taken.', ...json(JOB) } },
        remove: { 204: { description: 'Gone.' } },
      }[id],
    }));
    const own = await UpstreamShop.open(operations, {}, { handlers });
    try {
      for (const [id, { status, body }] of Object.entries(replies)) {
        const answer = await own.buy(id, `/${id}`);
        const sent = body === undefined ? '' : JSON.stringify(body);
        expect([answer.status, String(answer.body)], id).to.deep.equal([status, sent]);
      }
      replies['remove'] = { status: 204, body: { value: 1 } };
      expect((await own.buy('remove', '/remove')).status).to.equal(502);
      expect((await own.states()).filter(state => state === 'delivered')).to.have.length(3);
    } finally {
      await own.close();
    }
  });
});

describe('What a third-party document declares as success', () => {
  const contract = (responses: string, upstream = ''): ReturnType<typeof parseContract> =>
    parseContract(`
paths:
  /a:
    get:
      operationId: a
      x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }
      x-upstream: { url: 'https://api.example.com/a'${upstream} }
      responses: ${responses}
`);
  const OBJECT = 'content: { application/json: { schema: { type: object } } }';
  const soldBy = (responses: string, upstream = ''): unknown =>
    contract(responses, upstream).paid[0]?.answers.map(({ status, mimeType, kind }) => [
      status,
      mimeType,
      kind,
    ]);

  it('2XX, or default if nothing else is declared, is sold with 200', () => {
    const sold = [[200, 'application/json', 'json']];
    expect(soldBy(`{ 2XX: { ${OBJECT} }, default: { description: Error. } }`)).to.deep.equal(sold);
    expect(soldBy(`{ default: { ${OBJECT} } }`)).to.deep.equal(sold);
    expect(soldBy(`{ '201': { ${OBJECT} }, default: { ${OBJECT} } }`)).to.deep.equal([
      [201, 'application/json', 'json'],
    ]);
  });

  it('a success without content is sold, but a 200 must have content unless answers are not checked', () => {
    expect(soldBy('{ 201: { description: Made. }, 204: { description: Gone. } }')).to.deep.equal([
      [201, '', 'none'],
      [204, '', 'none'],
    ]);
    expect(() => soldBy('{ 200: { description: Yes. } }')).to.throw(
      'responses.200: must have content, which is what is sold: content: { application/json: { schema: { type: object } } }; ' +
        'an operation that sells whatever its API answers has x-upstream: { check: none }',
    );
    expect(() => soldBy(`{ 200: { content: { '*/*': {} } } }`)).to.throw(
      'responses.200: must name a content type, not */*',
    );
    expect(soldBy(`{ 200: { content: { '*/*': {} } } }`, ', check: none')).to.deep.equal([
      [200, 'application/octet-stream', 'binary'],
    ]);
    expect(() => soldBy('{ 206: { description: A part. } }')).to.throw(
      'must declare 200, which is what is sold',
    );
  });

  it('a stream or a websocket is refused with a reason, but a stream declared next to a whole answer is only left out', () => {
    for (const type of ['text/event-stream', 'application/x-ndjson', 'multipart/x-mixed-replace; boundary=a'])
      for (const upstream of ['', ', check: none'])
        expect(() => soldBy(`{ 200: { content: { '${type}': {} } } }`, upstream), type).to.throw(
          `responses.200: answers with a stream (${type}), which can't be sold as one call: declare an answer that is sent as a whole, such as ` +
            'application/json, or leave the operation out',
        );
    expect(soldBy(`{ 200: { content: { text/event-stream: {}, application/json: {} } } }`)).to.deep.equal([
      [200, 'application/json', 'json'],
    ]);
    expect(() => soldBy('{ 101: { description: Upgraded. } }')).to.throw(
      'responses.101: answers a websocket',
    );
    expect(() => contract('{}').paid).to.throw('must declare 200');
  });

  it('every status that is sold declares the headers of its receipt and an example, including on the path where a paid answer is fetched', () => {
    const { document } = contract(`{ 201: { ${OBJECT} }, 204: { description: Gone. } }`);
    const paths = document.paths as Record<
      string,
      { get: { responses: Record<string, Record<string, object>> } }
    >;
    const { responses = {} } = paths['/a']?.get ?? {};
    for (const status of ['201', '204'])
      expect(responses[status]?.headers, status).to.have.keys(
        'Answer-Receipt',
        'PAYMENT-RESPONSE',
        'X-PAYMENT-RESPONSE',
        'Location',
        'X-Request-Id',
      );
    expect(responses[201]?.content).to.have.nested.property('application/json.example');
    expect(paths['/answers/{key}']?.get.responses).to.include.keys('200', '201', '204');
  });
});
