import { expect } from 'chai';
import { BodyFault, parseJsonObject } from '../../src/http/json-body.js';
import { openWorld, post, signFor, TEXT, type World } from '../support/world.js';

const PATH = '/v1/summarize';

/** A request body given as bytes, so that it may be invalid UTF-8. */
type Sent = { bytes: Uint8Array; type?: string };

function bytes(...parts: (string | number[])[]): Uint8Array {
  return Buffer.concat(parts.map(part => Buffer.from(part as string)));
}

describe('Request bodies are JSON in UTF-8, or get a 400 before any money moves', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(() => world.close());

  async function send({
    bytes: body,
    type = 'application/json',
  }: Sent): Promise<{ status: number; error: string }> {
    const headers = { ...(await signFor(world, PATH)), 'content-type': type };
    const answer = await fetch(world.url + PATH, { method: 'POST', headers, body });
    const { error = '' } = (await answer.json()) as { error?: string };
    return { status: answer.status, error };
  }

  const refused: Record<string, Sent & { says: RegExp }> = {
    'Latin-1 in a value': { bytes: bytes('{"text":"Caf', [0xe9], ' is open."}'), says: /not UTF-8/ },
    'Latin-1 in a name': { bytes: bytes('{"text":"It is open.","caf', [0xe9], '":1}'), says: /not UTF-8/ },
    'an overlong slash': { bytes: bytes('{"text":"a', [0xc0, 0xaf], 'b c d."}'), says: /not UTF-8/ },
    'a surrogate encoded as bytes': {
      bytes: bytes('{"text":"a', [0xed, 0xa0, 0x80], 'b"}'),
      says: /not UTF-8/,
    },
    'a character cut in half': { bytes: bytes('{"text":"a', [0xe2, 0x82], '"}'), says: /not UTF-8/ },
    'UTF-16 with its mark': {
      bytes: Buffer.from('\ufeff{"text":"It is open."}', 'utf16le'),
      says: /not UTF-8/,
    },
    'an integer that JavaScript rounds': {
      bytes: bytes('{"text":"It is open.","n":[9007199254740993]}'),
      says: /contains the number 9007199254740993, which cannot be read exactly; send one with at most 15 digits/,
    },
    'a number without an end': {
      bytes: bytes('{"text":"It is open.","n":1e999}'),
      says: /the number 1e999,/,
    },
    nothing: { bytes: bytes(''), says: /the body is empty; send a JSON object/ },
    'white space': { bytes: bytes(' \n'), says: /the body is empty/ },
    'charset=iso-8859-1': {
      bytes: bytes('{"text":"It is open."}'),
      type: 'application/json; charset=iso-8859-1',
      says: /charset.*utf-8/,
    },
    'charset="UTF-16"': {
      bytes: bytes('{"text":"It is open."}'),
      type: 'application/json; charset="UTF-16"',
      says: /charset.*utf-8/,
    },
    'two charsets': {
      bytes: bytes('{"text":"It is open."}'),
      type: 'application/json; charset=utf-8; charset=latin1',
      says: /charset.*utf-8/,
    },
    'a name twice': { bytes: bytes('{"text":"Paid text.","text":"Other text."}'), says: /"text" twice/ },
    'a name twice with the same value': {
      bytes: bytes('{"text":"One text.","text":"One text."}'),
      says: /"text" twice/,
    },
    'names that differ by escapes only': {
      bytes: bytes(String.raw`{"text":"Paid text.","\u0074e\u0078t":"Other text."}`),
      says: /"text" twice/,
    },
    'a name twice in a nested object': {
      bytes: bytes('{"text":"Paid text.","more":[{"a":{"b":1,"c":{},"b":2}}]}'),
      says: /"b" twice/,
    },
    '__proto__ twice': {
      bytes: bytes('{"text":"a","__proto__":{},"__proto__":{}}'),
      says: /"__proto__" twice/,
    },
  };

  for (const [name, { says, ...sent }] of Object.entries(refused)) {
    it(`${name}: 400 that says what to correct, nothing verified, nothing charged`, async () => {
      const before = await world.earned();
      const asked = world.facilitator.count('/verify');
      const { status, error } = await send(sent);
      expect(status, error).to.equal(400);
      expect(error)
        .to.match(says)
        .and.match(/not charged/);
      expect(world.facilitator.count('/verify')).to.equal(asked);
      expect(await world.earned()).to.equal(before);
    });
  }

  const accepted: Record<string, Sent> = {
    'a byte order mark': { bytes: bytes([0xef, 0xbb, 0xbf], JSON.stringify({ text: TEXT })) },
    'charset=utf-8 in any case and quotes': {
      bytes: bytes(JSON.stringify({ text: `${TEXT} Café. 日本。 🎉` })),
      type: 'application/json; charset="UTF-8"',
    },
    'text that looks like members': {
      bytes: bytes(JSON.stringify({ text: `${TEXT} "a":1,"a":2 {"b":{"b":1}}` })),
    },
  };

  for (const [name, sent] of Object.entries(accepted)) {
    it(`${name}: accepted`, async () => {
      const { status, error } = await send(sent);
      expect(status, error).to.equal(200);
    });
  }

  it('the same body with and without a byte order mark is the same call', async () => {
    const headers = await signFor(world, PATH);
    const body = JSON.stringify({ text: `${TEXT} Once.` });
    const first = await post(world.url + PATH, body, headers);
    const again = await post(world.url + PATH, `\ufeff${body}`, headers);
    expect([first.status, again.status]).to.deep.equal([200, 200]);
    expect(again.body.equals(first.body)).to.equal(true);
  });
});

describe('Numbers in a body', () => {
  const read = (number: string): unknown =>
    (parseJsonObject(Buffer.from(`{"n":${number}}`)) as { n: unknown }).n;

  it('are read exactly, however they are written', () => {
    for (const number of [
      ...[
        '0',
        '-0',
        '-7',
        '0.5',
        '1.50',
        '100',
        '1e2',
        '1.20E+4',
        '120e-1',
        '0.000e99',
        '-1e-7',
        '1e308',
        '5e-324',
      ],
      ...[
        '0.1',
        '0.30000000000000004',
        '-1.7976931348623157e308',
        '9007199254740992',
        '123456789012345680000',
        '1e21',
      ],
      ...[
        '2251799813685248.5',
        '0.10000000000000001',
        '0.29999999999999999',
        '1000000000000000000000',
        `1${'0'.repeat(300)}`,
      ],
    ])
      expect(read(number), number).to.equal(Number(number));
  });

  it('are refused if JavaScript would round them', () => {
    for (const number of [
      ...[
        '9007199254740993',
        '-9007199254740993',
        '12345678901234567890',
        '0.1000000000000000055511151231257827',
      ],
      ...[
        '1e999',
        '-1e309',
        '1e-400',
        '1.7976931348623159e308',
        '3.141592653589793238',
        `1${'0'.repeat(400)}`,
      ],
    ])
      expect(() => read(number), number).to.throw(BodyFault, 'which cannot be read exactly');
  });

  it('count only outside strings', () => {
    expect(parseJsonObject(Buffer.from('{"n9007199254740993":"9007199254740993"}'))).to.deep.equal({
      n9007199254740993: '9007199254740993',
    });
  });
});

describe('2 MB of any JSON is read in linear time', () => {
  const half = 1024 * 1024;
  const bodies: Record<string, (size: number) => string> = {
    'one string of text': size => `{"text":"${'Caf\u00e9 and more. '.repeat(size / 16)}"}`,
    'one string of escaped quotes': size => `{"text":"${'\\"'.repeat(size / 2)}"}`,
    'one string of backslashes': size => `{"text":"${'\\\\'.repeat(size / 2)}"}`,
    'one long name': size => `{"${'a'.repeat(size)}":1}`,
    'nine hundred long names': size =>
      `{${Array.from({ length: 900 }, (_, index) => `"${index}${'b'.repeat(size / 900)}":1`).join(',')}}`,
    'brackets that close at once': size => `{"text":${'[]'.repeat(size / 2)}}`,
    'an open string': size => `{"text":"${'c'.repeat(size)}`,
    'one number with zeros inside': size => `{"text":1${'0'.repeat(size)}1}`,
    'one number with zeros behind the point': size => `{"text":0.${'0'.repeat(size)}1}`,
    'numbers without commas': size => `{"text":${'1 '.repeat(size / 2)}}`,
    spaces: size => `{"text":1${' '.repeat(size)}}`,
  };
  /** Milliseconds of processor time: on a busy machine, elapsed time includes other programs. */
  const timeOf = (body: Buffer): number => {
    const startedAt = process.cpuUsage();
    try {
      parseJsonObject(body);
    } catch (error) {
      if (!(error instanceof BodyFault)) throw error;
    }
    const { user, system } = process.cpuUsage(startedAt);
    return (user + system) / 1_000;
  };
  for (const [name, make] of Object.entries(bodies)) {
    it(name, () => {
      const body = Buffer.from(make(2 * half));
      // In quadratic time, each of these would take minutes.
      expect(Math.min(timeOf(body), timeOf(body), timeOf(body))).to.be.below(2_000);
    });
  }
});
