import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import type { AnyReply, Serving } from '../../src/contract/operation.js';
import type { Ledger } from '../../src/ledger/store.js';
import { ANSWERS_URL, UpstreamShop, VALUE, type OperationForSale } from '../support/upstream-shop.js';
import { call, receiptOf, type Answer } from '../support/world.js';

const UNUSED = { url: 'http://127.0.0.1:1/' };
const FILE = { type: 'string', format: 'binary' };
const TYPES = [
  'text/plain',
  'text/html',
  'text/csv',
  'application/pdf',
  'image/png',
  'image/svg+xml',
  'audio/wav',
  'application/json',
];
const OPERATIONS: OperationForSale[] = [
  { id: 'value', path: '/value', upstream: UNUSED, content: { 'application/json': VALUE } },
  { id: 'order', path: '/order', upstream: UNUSED, flow: 'upfront' },
  {
    id: 'file',
    path: '/file',
    upstream: UNUSED,
    content: Object.fromEntries(TYPES.map(type => [type, type === 'application/json' ? VALUE : FILE])),
  },
];
const SOUND: AnyReply = { status: 200, body: { value: 1 } };

async function until(so: () => Promise<boolean>): Promise<void> {
  while (!(await so())) await new Promise(resolve => setTimeout(resolve, 5));
}

describe('a sold answer over HTTP', () => {
  let shop: UpstreamShop;
  let reply: AnyReply;
  let watch: (response: ServerResponse) => void;
  const serving: Serving = Object.fromEntries(
    OPERATIONS.map(({ id }) => [id, { call: async () => reply, ready: async () => {} }]),
  );

  beforeEach(async () => {
    [reply, watch] = [SOUND, () => {}];
    shop = await UpstreamShop.open(OPERATIONS, {}, { handlers: serving, watch: each => watch(each) });
  });
  afterEach(() => shop.close());

  /** Makes the first attempt to write a sold answer to the response fail. */
  const breakFirst = (): void => {
    let broken = false;
    watch = response => {
      const writeHead = response.writeHead.bind(response);
      response.writeHead = (status: number, ...rest: []) => {
        if (status !== 200 || broken) return writeHead(status, ...rest);
        broken = true;
        throw new Error('no head');
      };
    };
  };
  const rows = () => shop.ledger.list({ limit: 100 });
  const fetched = (answer: Answer, method = 'GET'): Promise<Answer> => {
    const location = answer.headers.get('location') ?? '';
    expect(location.startsWith(ANSWERS_URL)).to.equal(true);
    return call(shop.url + new URL(location).pathname, { method });
  };

  for (const [name, value] of [
    ['X Source', 'a'],
    ['X-Größe', 'a'],
    ['', 'a'],
    ['X-Source', 'a\r\nb: c'],
    ['Trailer', 'X-Checksum'],
    ['Content-Encoding', 'gzip'],
    ['Content-Length', '3'],
    ['transfer-encoding', 'chunked'],
    ['Connection', 'close'],
    ['Set-Cookie', 'a=b'],
    ['PAYMENT-RESPONSE', 'e30='],
    ['Retry-After', '1'],
  ] as const) {
    it(`whose handler sets the header ${JSON.stringify(`${name}: ${value}`)} is not sold: 502, nothing settled`, async () => {
      reply = { ...SOUND, headers: { [name]: value } };
      const answer = await shop.buy('value', '/value');
      expect([answer.status, answer.json().error]).to.deep.equal([
        502,
        'The backend gave an unusable answer. You were not charged; try again.',
      ]);
      expect(shop.facilitator.settles).to.equal(0);
      expect(answer.headers.get('payment-response')).to.equal(null);
      expect(shop.logged).to.contain('violates the contract');
    });
  }

  it("a handler's failure may set Retry-After, but no header that can't be sent", async () => {
    reply = { status: 503, body: { error: 'Busy.' }, headers: { 'Retry-After': '7' } };
    const busy = await shop.buy('value', '/value');
    expect([busy.status, busy.headers.get('retry-after')]).to.deep.equal([503, '7']);
    reply = { status: 503, body: { error: 'Busy.' }, headers: { 'Retry-After': '7\n', Trailer: 'a' } };
    expect((await shop.buy('value', '/value')).status).to.equal(502);
  });

  it('whose writing fails after the money moved is not marked as written; the buyer gets an error, and then the answer for the same payment', async () => {
    breakFirst();
    const payment = shop.pay('value');
    const first = await shop.call('/value', payment);
    expect([first.status, first.json().error]).to.deep.equal([
      503,
      'The answer could not be sent. You paid, and your answer is stored: send the same payment again.',
    ]);
    expect(receiptOf(first).success).to.equal(true);
    expect(first.headers.get('content-type')).to.match(/json/);
    const [row] = await rows();
    expect(row).to.include({ state: 'delivered', writtenTo: null, callerUntil: 0 });
    expect((await fetched(first)).json()).to.deep.equal({ value: 1 });
    const again = await shop.call('/value', payment);
    expect([again.status, again.json()]).to.deep.equal([200, { value: 1 }]);
    expect(receiptOf(again)).to.deep.equal(receiptOf(first));
    expect(shop.facilitator.settles).to.equal(1);
  });

  it("that an earlier version stored with headers that can't be sent is sent without them", async () => {
    const { settle } = shop.ledger;
    const headers = { 'X Source': 'a', Trailer: 'b', 'X-Kept': 'yes', 'content-type': 'application/json' };
    const earlier: Ledger['settle'] = (id, claim, sent) =>
      settle(id, claim, { ...sent, ...(sent.answer && { answer: { ...sent.answer, headers } }) });
    Object.assign(shop.ledger, { settle: earlier });
    const payment = shop.pay('value');
    await shop.call('/value', payment);
    const again = await shop.call('/value', payment);
    expect([again.status, again.json(), again.headers.get('x-kept')]).to.deep.equal([
      200,
      { value: 1 },
      'yes',
    ]);
  });

  it('is never run by a browser, wherever it is fetched from and whatever headers its handler sets', async () => {
    for (const type of TYPES) {
      reply = {
        status: 200,
        body: type === 'application/json' ? { value: 1 } : Buffer.from('<script>alert(1)</script>'),
        headers: {
          'Content-Type': type,
          'content-security-policy': "script-src 'unsafe-inline'",
          'X-Content-Type-Options': 'no',
          'Content-Disposition': 'inline',
          'cache-control': 'public',
          location: 'https://elsewhere.example',
          'X-Robots-Tag': 'all',
          'X-Request-Id': 'mine',
          'Clear-Site-Data': '"*"',
        },
      };
      const shown = /json|plain|png|wav/.test(type);
      const bought = await shop.buy('file', '/file');
      for (const answer of [bought, await fetched(bought), await fetched(bought, 'HEAD')]) {
        const header = (name: string): string | null => answer.headers.get(name);
        expect(answer.status, type).to.equal(200);
        expect(header('content-type')).to.match(new RegExp(`^${type.replace('+', '\\+')}`));
        expect(header('content-security-policy'), type).to.equal("sandbox; default-src 'none'");
        expect(header('x-content-type-options'), type).to.equal('nosniff');
        expect(header('content-disposition'), type).to.equal(shown ? null : 'attachment');
        expect(header('cache-control')).to.equal('no-store');
        expect(header('x-robots-tag')).to.equal('noindex');
        expect(header('x-request-id')).not.to.equal('mine');
        expect(header('clear-site-data')).to.equal(null);
      }
      expect(bought.headers.get('location')).to.match(/^https:\/\/shop\.example\/answers\//);
    }
  });

  it('counts as written once all of it was fetched by its key; a HEAD request does not count', async () => {
    breakFirst();
    const first = await shop.buy('value', '/value');
    const writtenTo = async (): Promise<number | null | undefined> => (await rows())[0]?.writtenTo;
    expect((await fetched(first, 'HEAD')).status).to.equal(200);
    expect(await writtenTo()).to.equal(null);
    expect((await fetched(first)).status).to.equal(200);
    await until(async () => (await writtenTo()) === 2);
  });
});
