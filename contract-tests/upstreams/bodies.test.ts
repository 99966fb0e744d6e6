import { expect } from 'chai';
import { createHash, randomBytes } from 'node:crypto';
import type { Json } from '../../src/contract/json.js';
import { callTool, paid, payloadOf } from '../support/mcp-call.js';
import { TestUpstream, UpstreamShop, VALUE, type UpstreamCall } from '../support/upstream-shop.js';
import { call, challengeOf, type Answer } from '../support/world.js';

const FAILED = { description: 'No answer.', content: { 'application/json': { schema: { type: 'object' } } } };
const FORM = 'application/x-www-form-urlencoded';
const binary = { type: 'string', format: 'binary' };
const note = { type: 'object', required: ['text'], properties: { text: { type: 'string', maxLength: 20 } } };

/** For each operation, the content types of its requests, each with a schema and an example. */
const TAKEN: Record<string, Record<string, object>> = {
  list: {
    'application/json': { schema: { type: 'array', maxItems: 3, items: { type: 'integer' } }, example: [1] },
  },
  scalar: { 'application/json': { schema: { type: ['string', 'number'] }, example: 'a' } },
  text: { 'text/plain': { schema: { type: 'string', maxLength: 20 }, example: 'a text' } },
  xml: { 'application/xml': { schema: { type: 'object', properties: {} }, example: '<a/>' } },
  bytes: { 'application/octet-stream': { schema: { ...binary, minLength: 2, maxLength: 100_000 } } },
  picture: { 'image/*': {} },
  several: {
    'text/csv': { schema: { type: 'string' } },
    [FORM]: { schema: note },
    'application/json': { schema: note, example: { text: 'a' } },
    'multipart/form-data': { schema: { ...note, properties: { ...note.properties, file: binary } } },
  },
  upload: {
    'multipart/form-data': {
      schema: {
        type: 'object',
        required: ['photo'],
        properties: {
          title: { type: 'string', maxLength: 20 },
          count: { type: 'integer', default: 1 },
          tags: { type: 'array', items: { type: 'string' } },
          about: { type: 'object', required: ['a'], properties: { a: { type: 'integer' } } },
          photo: { ...binary, maxLength: 100_000 },
          pages: { type: 'array', maxItems: 2, items: { contentMediaType: 'application/pdf' } },
        },
        additionalProperties: false,
      },
      example: { photo: 'a picture' },
    },
  },
};

const PATHS = Object.fromEntries(
  [...Object.keys(TAKEN), 'ordered'].map(id => [
    `/${id}`,
    {
      post: {
        operationId: id,
        summary: id,
        tags: ['Shop'],
        'x-price': {
          mode: 'fixed',
          currency: 'USD',
          amount: '0.01',
          flow: id === 'ordered' ? 'upfront' : 'authorization',
        },
        'x-upstream': { url: `\${API}/${id}` },
        requestBody: { required: true, content: TAKEN[id] ?? TAKEN.upload },
        responses: {
          200: { description: 'Sold.', content: { 'application/json': { schema: VALUE } } },
          ...{ 400: FAILED, 402: FAILED, 502: FAILED, 503: FAILED },
        },
      },
    },
  ]),
);

/** The parts of a multipart form, as a server parses it. */
async function formIn({ headers, bytes }: UpstreamCall): Promise<[string, unknown][]> {
  const response = new Response(bytes, { headers: { 'content-type': String(headers['content-type']) } });
  const form = await response.formData();
  return Promise.all(
    [...form].map(async ([name, value]): Promise<[string, unknown]> => [
      name,
      typeof value === 'string'
        ? value
        : [value.name, value.type, Buffer.from(await value.arrayBuffer()).toString('hex')],
    ]),
  );
}

type Sent = { type: string; body: string | Buffer };

/** A multipart form as a client writes it. */
async function multipart(fields: [string, string | Blob, string?][]): Promise<Sent> {
  const form = new FormData();
  for (const [name, value, file] of fields)
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, value, file);
  const response = new Response(form);
  return {
    type: response.headers.get('content-type') ?? '',
    body: Buffer.from(await response.arrayBuffer()),
  };
}

const photo = (bytes: Uint8Array | string = 'photo', type = 'image/png'): Blob => new Blob([bytes], { type });

describe('A body of any type', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;

  before(async () => {
    upstream = await TestUpstream.open();
    shop = await UpstreamShop.open([], { API: upstream.url }, { paths: PATHS });
  });
  after(async () => {
    await shop.close();
    upstream.close();
  });
  beforeEach(() => void (upstream.calls.length = 0));

  const send = (id: string, { type, body }: Sent, headers: Record<string, string>): Promise<Answer> =>
    call(`${shop.url}/${id}`, { method: 'POST', headers: { 'content-type': type, ...headers }, body });

  /** Buys, and sends the same payment again in another encoding. @returns the API's one request */
  async function bought(id: string, sent: Sent, again: Sent = sent): Promise<UpstreamCall> {
    upstream.calls.length = 0;
    const payment = shop.pay(id);
    const answer = await send(id, sent, payment);
    expect([answer.status, answer.body.toString()], id).to.deep.equal([200, '{"value":1}']);
    const same = await send(id, again, payment);
    expect([same.status, same.body.toString()], `${id} again`).to.deep.equal([200, '{"value":1}']);
    expect(upstream.calls).to.have.length(1);
    return upstream.calls[0] as UpstreamCall;
  }

  async function refused(id: string, sent: Sent, message: RegExp): Promise<void> {
    const answer = await send(id, sent, shop.pay(id));
    expect([answer.status, answer.json().error], `${id} ${sent.type}`).to.satisfy(
      ([status, error]: [number, string]) =>
        status === 400 && message.test(error) && /not charged|Nothing was charged/.test(error),
    );
    expect(upstream.calls).to.deep.equal([]);
  }

  const JSON_BODY = 'application/json';

  it('can be a JSON list, string or number, and reaches the API as it was sent', async () => {
    const list = await bought(
      'list',
      { type: JSON_BODY, body: '[3, 1]' },
      { type: 'application/json; charset=utf-8', body: '[3,1]' },
    );
    expect([list.body, list.headers['content-type']]).to.deep.equal(['[3,1]', JSON_BODY]);
    expect((await bought('scalar', { type: JSON_BODY, body: '"a"' })).body).to.equal('"a"');
    expect((await bought('scalar', { type: JSON_BODY, body: '1.50' })).body).to.equal('1.5');
    await upstreamUntouched();
    await refused('list', { type: JSON_BODY, body: '{"0":1}' }, /^the body must be a list\./);
    await refused('list', { type: JSON_BODY, body: '[1,2,3,4]' }, /^the body must have at most 3 items/);
    await refused('list', { type: JSON_BODY, body: '["1"]' }, /^0 must be a whole number/);
    await refused('list', { type: JSON_BODY, body: 'null' }, /^the body must be JSON, not null\./);
    await refused('list', { type: JSON_BODY, body: '' }, /^the body is empty; send JSON\./);
    await refused(
      'list',
      { type: 'text/plain', body: '[1]' },
      /^the body must be JSON, sent with Content-Type: application\/json\./,
    );
  });

  it('can be text, which is passed on unchanged', async () => {
    for (const body of ['a\r\n b\t', '{"a":1}', '\ufeff不😀', ' ', '\0'])
      expect((await bought('text', { type: 'text/plain', body })).bytes).to.deep.equal(Buffer.from(body));
    const { headers, body } = await bought(
      'text',
      { type: 'Text/Plain; Charset="UTF-8"', body: 'x' },
      { type: 'text/plain', body: 'x' },
    );
    expect([headers['content-type'], body]).to.deep.equal(['text/plain; charset=utf-8', 'x']);
    const xml = '<?xml version="1.0"?><a b="ü"/>';
    const sent = await bought('xml', { type: 'application/xml', body: xml });
    expect([sent.headers['content-type'], sent.body]).to.deep.equal(['application/xml', xml]);
    await upstreamUntouched();
    await refused(
      'text',
      { type: 'text/plain', body: 'a'.repeat(21) },
      /^the body must have at most 20 characters, and has 21/,
    );
    await refused('text', { type: 'text/plain', body: '' }, /^the body is empty; send text\./);
    await refused('text', { type: 'text/plain', body: Buffer.from([0xff]) }, /^the body is not UTF-8/);
    await refused(
      'text',
      { type: 'text/plain; charset=latin1', body: 'a' },
      /^the charset in Content-Type must be utf-8/,
    );
    await refused(
      'text',
      { type: JSON_BODY, body: '"a"' },
      /^the body must be text, sent with Content-Type: text\/plain\./,
    );
    await refused('text', { type: 'text/html', body: 'a' }, /sent with Content-Type: text\/plain\./);
  });

  it('can be bytes, of a type that the contract names or covers', async () => {
    const bytes = randomBytes(70_000);
    const sent = await bought('bytes', { type: 'application/octet-stream', body: bytes });
    expect([sent.headers['content-type'], sent.bytes.equals(bytes)]).to.deep.equal([
      'application/octet-stream',
      true,
    ]);
    const picture = await bought('picture', { type: 'image/webp', body: bytes });
    expect([picture.headers['content-type'], picture.bytes.equals(bytes)]).to.deep.equal([
      'image/webp',
      true,
    ]);
    await upstreamUntouched();
    const octets = { type: 'application/octet-stream', body: Buffer.alloc(0) };
    await refused('bytes', octets, /^the body is empty; send bytes\./);
    await refused('bytes', { ...octets, body: 'a' }, /^the body must have at least 2 characters/);
    await refused('bytes', { ...octets, body: randomBytes(100_001) }, /^the body is larger than 97 KB/);
    await refused(
      'bytes',
      { type: 'image/png', body: bytes },
      /^the body must be bytes, sent with Content-Type: application\/octet-stream/,
    );
    for (const type of ['image/*', 'image', 'text/plain', 'multipart/form-data; boundary=a', ''])
      await refused(
        'picture',
        { type, body: 'a' },
        /^the body must be bytes, sent with Content-Type: image\/\*/,
      );
    await refused(
      'picture',
      { type: 'image/png', body: Buffer.alloc(2 * 1024 * 1024 + 1) },
      /^the body is larger than 2 MB/,
    );
  });

  async function upstreamUntouched(): Promise<void> {
    upstream.calls.length = 0;
  }

  it('can have one of several types: the API gets that type, and a payment for one type does not buy another', async () => {
    const rows: Sent[] = [
      { type: JSON_BODY, body: '{"text":"a"}' },
      { type: FORM, body: 'text=a' },
      { type: 'text/csv', body: '{"text":"a"}' },
      await multipart([['text', 'a']]),
    ];
    for (const row of rows) {
      const sent = await bought('several', row);
      const [kind] = row.type.split(';', 1);
      expect(sent.headers['content-type']).to.match(new RegExp(`^${kind}`));
      if (!/multipart/.test(row.type)) expect(sent.body).to.equal(row.body);
      else expect(await formIn(sent)).to.deep.equal([['text', 'a']]);
      const payment = shop.pay('several');
      expect((await send('several', row, payment)).status).to.equal(200);
      for (const other of rows.filter(each => each !== row)) {
        const answer = await send('several', other, payment);
        expect(answer.status, `${row.type} pays for ${other.type}`).to.equal(402);
        expect(challengeOf(answer).error).to.match(/sent for another call/);
      }
    }
    await upstreamUntouched();
    await refused(
      'several',
      { type: 'text/plain', body: 'a' },
      /^the body must be sent with one of these as its Content-Type: application\/json, application\/x-www-form-urlencoded, text\/csv, multipart\/form-data\./,
    );
    await refused('several', { type: JSON_BODY, body: 'text=a' }, /^the body is not JSON/);
  });

  it('can be a multipart form with files, which is the same call whatever its boundary and order', async () => {
    const bytes = randomBytes(60_000);
    const page = photo('%PDF', 'application/pdf');
    const fields: [string, string | Blob, string?][] = [
      ['photo', photo(bytes), 'ein "Bild".png'],
      ['title', 'ü\r\n--b'],
      ['tags', 'b'],
      ['about', '{ "a": 1 }'],
      ['tags', 'a'],
      ['pages', page, 'one.pdf'],
      ['pages', page, '../../etc/passwd'],
    ];
    const sent = await bought(
      'upload',
      await multipart(fields),
      await multipart([...fields.slice(1), ...fields.slice(0, 1)]),
    );
    const hex = (blob: Uint8Array | string): string => Buffer.from(blob as string).toString('hex');
    expect(new Map((await formIn(sent)).map(([name, value]) => [name, value]))).to.deep.equal(
      new Map<string, unknown>([
        ['title', 'ü\r\n--b'],
        ['tags', 'a'],
        ['count', '1'],
        ['about', '{"a":1}'],
        ['photo', ['ein "Bild".png', 'image/png', hex(bytes)]],
        ['pages', ['passwd', 'application/pdf', hex('%PDF')]],
      ]),
    );
    expect((await formIn(sent)).filter(([name]) => name === 'tags').map(([, value]) => value)).to.deep.equal([
      'b',
      'a',
    ]);
  });

  it('is paid for once: a payment for a form does not buy a form with another file, name, type or text', async () => {
    const fields: [string, string | Blob, string?][] = [
      ['title', 'a'],
      ['photo', photo(), 'a.png'],
    ];
    const whole = await multipart(fields);
    const payment = shop.pay('upload');
    expect((await send('upload', whole, payment)).status).to.equal(200);
    const others: [string, string | Blob, string?][][] = [
      [
        ['title', 'a'],
        ['photo', photo('photo!'), 'a.png'],
      ],
      [
        ['title', 'a'],
        ['photo', photo(), 'b.png'],
      ],
      [
        ['title', 'a'],
        ['photo', photo('photo', 'image/gif'), 'a.png'],
      ],
      [
        ['title', 'b'],
        ['photo', photo(), 'a.png'],
      ],
      [['photo', photo(), 'a.png']],
    ];
    for (const other of others) {
      const answer = await send('upload', await multipart(other), payment);
      expect([answer.status, challengeOf(answer).error]).to.satisfy(
        ([status, error]: [number, string]) => status === 402 && /sent for another call/.test(error),
      );
    }
    expect(upstream.calls).to.have.length(1);
  });

  const part = (head: string, body = 'x'): string =>
    `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${body}\r\n`;
  const PHOTO = part('name="photo"; filename="a.png"');
  const raw = (text: string, type = 'multipart/form-data; boundary=b'): Sent => ({
    type,
    body: Buffer.from(text, 'latin1'),
  });

  const broken: [what: string, sent: Sent, message: RegExp][] = [
    ['no boundary', raw(`${PHOTO}--b--`, 'multipart/form-data'), /not a complete multipart/],
    ['another boundary', raw(`${PHOTO}--b--`, 'multipart/form-data; boundary=c'), /not a complete multipart/],
    ['no end', raw(PHOTO), /not a complete multipart/],
    ['an end within a file', raw(PHOTO.slice(0, -4)), /not a complete multipart/],
    ['an end within a header', raw('--b\r\nContent-Disp'), /not a complete multipart/],
    ['nothing', raw(''), /not a complete multipart/],
    ['no parts', raw('--b--\r\n'), /photo is missing|not a complete multipart/],
    [
      'a part without a name',
      raw(`${part('filename="a"')}${PHOTO}--b--`),
      /each part of the form needs a name/,
    ],
    ['10 000 parts', raw(`${part('name="tags"').repeat(10_000)}${PHOTO}--b--`), /too many fields/],
    [
      '10 000 parts, and a second boundary that only some parsers recognize',
      raw(
        `\r\n--c\r\n${part('name="tags"').repeat(10_000)}${PHOTO}--b--`,
        "multipart/form-data; boundary*=x''b; boundary=c",
      ),
      /not a complete multipart/,
    ],
    ['a part without headers', raw(`--b\r\n\r\nx\r\n${PHOTO}--b--`), /not a complete multipart/],
    [
      'a long part without headers',
      raw(`--b\r\n\r\n${'x'.repeat(100_000)}\r\n${PHOTO}--b--`),
      /not a complete multipart/,
    ],
    [
      'a boundary that only begins like it',
      raw(`${part('name="title"', 'a\r\n--bc')}${PHOTO}--b--`),
      /not a complete multipart|title must have/,
    ],
    ['a file twice', raw(`${PHOTO}${PHOTO}--b--`), /photo must be sent only once/],
    ['a text twice', raw(`${part('name="title"').repeat(2)}${PHOTO}--b--`), /title must be sent only once/],
    [
      'a file instead of a text',
      raw(`${part('name="title"; filename="a"')}${PHOTO}--b--`),
      /title must be text, not a file/,
    ],
    [
      'an unknown file',
      raw(`${part('name="more"; filename="a"')}${PHOTO}--b--`),
      /more must be text, not a file/,
    ],
    ['an unknown text', raw(`${part('name="more"')}${PHOTO}--b--`), /unknown field 'more' in the body/],
    ['__proto__', raw(`${part('name="__proto__"')}${PHOTO}--b--`), /unknown field '__proto__' in the body/],
    ['a text that is not UTF-8', raw(`${part('name="title"', '\xff')}${PHOTO}--b--`), /title is not UTF-8/],
    ['invalid JSON', raw(`${part('name="about"', '{')}${PHOTO}--b--`), /about must be JSON: it is not JSON/],
    [
      'JSON of too many members in all',
      raw(`${part('name="about"', `[${'1,'.repeat(900)}1]`).repeat(3)}${PHOTO}--b--`),
      /about must be JSON: it has too many members/,
    ],
    [
      'JSON that violates its schema',
      raw(`${part('name="about"', '{}')}${PHOTO}--b--`),
      /about.a is missing/,
    ],
    ['an invalid number', raw(`${part('name="count"', '0x1')}${PHOTO}--b--`), /count must be/],
    [
      'an encoded part',
      raw(
        `--b\r\nContent-Disposition: form-data; name="photo"; filename="a"\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n--b--`,
      ),
      /photo must be sent as it is, without Content-Transfer-Encoding/,
    ],
    [
      'line ends in a file name',
      raw(`${part('name="photo"; filename*=utf-8\'\'a%0D%0AX: 1')}--b--`),
      /not a complete multipart/,
    ],
    [
      'a file that is too large',
      raw(`${part('name="photo"; filename="a"', 'x'.repeat(100_001))}--b--`),
      /photo must have at most 100000 characters/,
    ],
    [
      'more than the limit',
      raw(`${part('name="photo"; filename="a"', 'x'.repeat(2_200_000))}--b--`),
      /the body is larger than 2 MB/,
    ],
    [
      'another type',
      { type: JSON_BODY, body: '{}' },
      /must be a form, sent with Content-Type: multipart\/form-data/,
    ],
    [
      'another multipart type',
      raw(`${PHOTO}--b--`, 'multipart/mixed; boundary=b'),
      /must be a form, sent with/,
    ],
  ];
  for (const [what, sent, message] of broken)
    it(`is refused with a reason, uncharged, as a multipart form with ${what}`, () =>
      refused('upload', sent, message));

  it('is refused if it is compressed', async () => {
    const answer = await send(
      'text',
      { type: 'text/plain', body: 'a' },
      { ...shop.pay('text'), 'content-encoding': 'gzip' },
    );
    expect([answer.status, answer.json().error]).to.deep.equal([
      400,
      'the body must not be compressed. You were not charged; correct the body and send it with the same payment.',
    ]);
  });

  it('is answered with the price if it is sent without a payment, whether it is valid, empty or broken', async () => {
    for (const id of Object.keys(TAKEN))
      for (const sent of [raw('--b'), { type: 'text/plain', body: '' }, { type: JSON_BODY, body: '{' }]) {
        const answer = await send(id, sent, {});
        expect([answer.status, challengeOf(answer).accepts[0]?.amount], id).to.deep.equal([402, '10000']);
      }
  });

  it("is the same call when sent as a tool's arguments: a string, base64, a data URL or a list", async () => {
    const base64 = Buffer.from([0, 255, 1]).toString('base64');
    const rows: [id: string, args: Json, same: Sent, other: Json][] = [
      ['list', { body: [1, 2] }, { type: JSON_BODY, body: '[1,2]' }, { body: [2, 1] }],
      ['scalar', { body: 'a' }, { type: JSON_BODY, body: '"a"' }, { body: 1 }],
      ['text', { body: 'a\nb' }, { type: 'text/plain', body: 'a\nb' }, { body: 'a' }],
      [
        'bytes',
        { body: base64 },
        { type: 'application/octet-stream', body: Buffer.from([0, 255, 1]) },
        { body: 'AAAA' },
      ],
      [
        'picture',
        { body: `data:image/gif;base64,${base64}` },
        { type: 'image/gif', body: Buffer.from([0, 255, 1]) },
        { body: `data:image/png;base64,${base64}` },
      ],
      [
        'upload',
        { title: 'a', about: { a: 1 }, photo: `data:image/png;name=%C3%BC.png;base64,${base64}` },
        await multipart([
          ['photo', photo(new Uint8Array([0, 255, 1])), 'ü.png'],
          ['about', '{"a":1}'],
          ['title', 'a'],
        ]),
        { title: 'a', about: { a: 1 }, photo: base64 },
      ],
    ];
    for (const [id, args, same, other] of rows) {
      upstream.calls.length = 0;
      const payment = shop.pay(id);
      const meta = paid(payloadOf(payment));
      const result = await callTool(shop.url, id, args, meta);
      expect(result.isError ?? false, JSON.stringify(result).slice(0, 500)).to.equal(false);
      const answer = await send(id, same, payment);
      expect([answer.status, answer.body.toString()], id).to.deep.equal([200, '{"value":1}']);
      expect((await callTool(shop.url, id, other, meta)).isError, `${id}: another call`).to.equal(true);
      expect(upstream.calls, id).to.have.length(1);
    }
  });

  const noBody: [id: string, args: Json, message: RegExp][] = [
    ['text', { body: 1 }, /^body must be a valid Unicode string/],
    ['text', { body: '\ud800' }, /^body must be a valid Unicode string/],
    ['text', {}, /^the body is missing/],
    ['bytes', { body: 'not base64!' }, /^body must be bytes, as base64 or as a data URL/],
    ['bytes', { body: `data:image/png;base64,AAAA` }, /^body must not be of the type image\/png/],
    ['upload', { photo: 'not base64!' }, /^photo must be a file, as base64 or as a data URL/],
    ['upload', { photo: 'data:image/png;name=a%0D%0Ab;base64,AAAA' }, /^photo must be a file/],
    ['upload', { photo: ['AAAA', 'AAAA'] }, /^photo must be a file/],
    ['list', { body: null }, /^body must not be null/],
  ];
  for (const [id, args, message] of noBody)
    it(`is refused in a call of its MCP tool if it is invalid: ${id} with ${JSON.stringify(args)}`, async () => {
      const result = await callTool(shop.url, id, args, paid(payloadOf(shop.pay(id))));
      expect([result.isError, JSON.stringify(result.structuredContent)]).to.satisfy(
        ([isError]: [boolean]) => isError,
      );
      expect(
        (result.structuredContent as { error?: string } | undefined)?.error ?? result.content[0]?.text,
      ).to.match(message);
      expect(upstream.calls).to.deep.equal([]);
    });

  it('of an order is kept with its files until the work is done', async () => {
    const bytes = randomBytes(1_000);
    const sent = await bought('ordered', await multipart([['photo', photo(bytes), 'a.png']]));
    const sum = createHash('sha256').update(bytes).digest('hex');
    const form = new Map(await formIn(sent));
    const [name, type, hex] = form.get('photo') as string[];
    expect([
      name,
      type,
      createHash('sha256')
        .update(Buffer.from(hex ?? '', 'hex'))
        .digest('hex'),
    ]).to.deep.equal(['a.png', 'image/png', sum]);
  });
});
