import { expect } from 'chai';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { call, challengeOf, openWorld, post, signFor, TEXT, type World } from '../support/world.js';
import { priceOf, SOLD } from '../support/sold.js';

/** The paths of operations that are sold by POST. */
const PAID = SOLD.paid.filter(({ method }) => method === 'POST').map(({ examplePath }) => examplePath);

describe('HTTP for agents and crawlers', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(() => world.close());

  it('a call without payment is a 402 whatever its body is; the header repeats the body of the 402, and the connection stays usable', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    const bodies = ['', 'garbage', JSON.stringify({ text: TEXT }), '{"text":', 'x'.repeat(300_000)];
    for (const path of PAID) {
      for (const body of bodies) {
        const answer = await keepAlivePost(agent, world.url + path, body);
        expect(answer.status, path).to.equal(402);
        const header = String(answer.headers['payment-required']);
        expect(Buffer.from(header, 'base64').toString()).to.equal(answer.body);
        expect(header.length).to.be.at.most(4096);
        ports.add(answer.localPort);
      }
    }
    agent.destroy();
    expect(ports.size).to.equal(1);
  });

  it('a challenge has the date of the second in which it is sent', async () => {
    const dates = new Set<number>();
    for (let asked = 0; dates.size < 3 && asked < 100; asked++) {
      const [answer = ''] = await exchange(world.url, unpaidCall('HTTP/1.1', ''), 1);
      dates.add(dateOf(answer));
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    expect(dates.size).to.equal(3);
    expect([...dates].every(Number.isFinite)).to.equal(true);
  });

  it('a challenge closes only the connections whose requests ask for it', async () => {
    const connection = async (protocol: string, headers: string) => {
      const [answer = ''] = await exchange(world.url, unpaidCall(protocol, headers), 1);
      return /^connection: (.*)\r$/im.exec(answer)?.[1];
    };
    for (let round = 0; round < 3; round++) {
      expect(await connection('HTTP/1.1', '')).to.equal('keep-alive');
      expect(await connection('HTTP/1.1', 'Connection: close\r\n')).to.equal('close');
      expect(await connection('HTTP/1.0', '')).to.equal('close');
    }
  });

  it('a challenge keeps its place among pipelined calls', async () => {
    const two = [unpaidCall('HTTP/1.1', ''), 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n'];
    const all = [...two, ...two].join('') + unpaidCall('HTTP/1.1', 'Connection: close\r\n');
    const answers = await exchange(world.url, all, Infinity);
    expect(answers.map(answer => answer.slice(0, 12))).to.deep.equal(
      [402, 404, 402, 404, 402].map(status => `HTTP/1.1 ${status}`),
    );
  });

  it('promise 7: a hundred calls without a payment or with a malformed one cause no call to chain or facilitator', async () => {
    const asked = [
      world.rpc.count('simulateTransaction'),
      world.facilitator.count('/verify'),
      world.facilitator.count('/settle'),
    ];
    for (let index = 0; index < 100; index++) {
      const answer = await post(
        `${world.url}/v1/summarize`,
        { text: TEXT },
        { 'PAYMENT-SIGNATURE': `bm9uc2Vuc2U${index}` },
      );
      expect(answer.status).to.equal(402);
      expect(challengeOf(answer).error).to.be.a('string');
    }
    expect([
      world.rpc.count('simulateTransaction'),
      world.facilitator.count('/verify'),
      world.facilitator.count('/settle'),
    ]).to.deep.equal(asked);
  });

  it('each challenge names the network as its version does; any other x402Version counts as absent', async () => {
    const v1 = await post(`${world.url}/v1/summarize?x402Version=1`, {});
    expect(challengeOf(v1)).to.include({ x402Version: 1 });
    expect(v1.headers.has('payment-required')).to.equal(false);
    expect(challengeOf(v1).accepts.map(option => option.network)).to.deep.equal(['solana-devnet']);
    for (const query of ['?x402Version=2', '?x402Version=', '?x402Version=7', '?x=1', '?']) {
      const v2 = challengeOf(await post(`${world.url}/v1/summarize${query}`, {}));
      expect(v2).to.include({ x402Version: 2 });
      expect(v2.accepts.map(option => option.network)).to.deep.equal([world.sandbox.info.network]);
    }
  });

  it('a client that waits for 100-continue before it sends its body gets the price without sending the body', async () => {
    const answer = await raw(
      world,
      'POST /v1/summarize HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n',
    );
    expect(answer).to.match(/^HTTP\/1\.1 402 /);
  });

  it('if a body was not sent, the bytes that follow are never taken for it: the connection is closed after the 402', async () => {
    const held =
      'POST /v1/summarize HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n';
    for (let round = 0; round < 3; round++) {
      // The status line and headers of a refusal are cached for a second.
      await exchange(world.url, unpaidCall('HTTP/1.1', ''), 1);
      const answers = await exchange(world.url, held, Infinity);
      expect(answers).to.have.length(1);
      expect(answers[0])
        .to.match(/^HTTP\/1\.1 402 /)
        .and.match(/\r\nConnection: close\r\n/);
    }
  });

  it('no spelling of a paid path is served unpaid', async () => {
    const spellings = [
      '/v1//summarize',
      '//v1/summarize',
      '/v1/summarize/',
      '/v1/%73ummarize',
      '/v1%2fsummarize',
      '/V1/summarize',
      '/v1/./summarize',
      '/v1/x/../summarize',
      '/v1/summarize;x=1',
      '/v1/summarize%00',
      '/v1/summarize%20',
      '/v1\\summarize',
    ];
    for (const path of spellings) {
      const answer = await raw(
        world,
        `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"text":"hi"}`,
      );
      expect(answer, path).to.match(/^HTTP\/1\.1 (402|404|405|400) /);
    }
    const absolute = await raw(
      world,
      'POST http://x/v1/summarize HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
    );
    expect(absolute).to.match(/^HTTP\/1\.1 (402|404) /);
  });

  it('404 and 405 are JSON that says what to do, 405 with Allow', async () => {
    const missing = await call(`${world.url}/v2/nothing`);
    expect(missing.status).to.equal(404);
    expect(missing.json().error).to.include('GET /');
    const wrong = await call(`${world.url}/v1/summarize`);
    expect(wrong.status).to.equal(405);
    expect(wrong.headers.get('allow')).to.equal('POST, OPTIONS');
    const posted = await post(`${world.url}/health`, {});
    expect(posted.status).to.equal(405);
    expect(posted.headers.get('allow')).to.include('GET');
  });

  it('malformed HTTP is a JSON 400', async () => {
    for (const text of [
      'NONSENSE\r\n\r\n',
      'POST /v1/summarize HTTP/9.9\r\n\r\n',
      `GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'a'.repeat(20_000)}\r\n\r\n`,
      'POST /v1/summarize HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello',
      'POST /v1/summarize HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
      'GET / HTTP/1.1\r\nConnection: close\r\n\r\n',
    ]) {
      const answer = await raw(world, text);
      expect(answer, text.slice(0, 40)).to.match(/^HTTP\/1\.1 400 /);
      expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).to.have.property('error');
    }
  });

  it('free documents carry an ETag, answer 304 to it, and answer HEAD like GET but without a body', async () => {
    const paths = [
      '/',
      '/openapi.json',
      '/.well-known/x402',
      '/seller/.well-known/x402',
      '/brand/.well-known/x402',
      '/tts/.well-known/x402',
    ];
    for (const path of paths) {
      const first = await call(world.url + path);
      expect(first.status, path).to.equal(200);
      const etag = first.headers.get('etag') ?? '';
      expect(etag).to.match(/^"/);
      const again = await call(world.url + path, { headers: { 'if-none-match': etag } });
      expect(again.status).to.equal(304);
      expect(again.headers.get('etag')).to.equal(etag);
      const head = await call(world.url + path, { method: 'HEAD' });
      expect(head.status).to.equal(200);
      expect(head.headers.get('content-length')).to.equal(first.headers.get('content-length'));
    }
    const icon = await call(`${world.url}/favicon.ico`);
    expect(icon.status).to.equal(200);
    expect(icon.headers.get('content-type')).to.include('image/');
  });

  it('a static document answers 304 to every If-None-Match that has its ETag in any spelling or is *, and 405 to a POST', async () => {
    const url = `${world.url}/openapi.json`;
    const first = await call(url);
    const etag = first.headers.get('etag') ?? '';
    const names = ['access-control-allow-origin', 'access-control-expose-headers', 'cache-control', 'etag'];
    for (const condition of [etag, `W/${etag}`, '*', `"other", ${etag}`]) {
      const same = await call(`${url}?a=b`, {
        headers: { 'if-none-match': condition, 'cache-control': 'no-cache' },
      });
      expect(same.status, condition).to.equal(304);
      for (const name of names) expect(same.headers.get(name)).to.equal(first.headers.get(name)).and.not.null;
      expect(same.headers.get('content-type')).to.equal(null);
      expect(same.body.length).to.equal(0);
    }
    const other = await call(url, { headers: { 'if-none-match': '"other"' } });
    expect([other.status, other.body.equals(first.body)]).to.deep.equal([200, true]);
    expect(other.headers.get('content-type')).to.equal('application/json; charset=utf-8');
    expect((await post(url, {})).status).to.equal(405);
    expect((await call(`${url}/`)).status).to.equal(404);
  });

  it('the served description keeps its references, from which generators name their types', async () => {
    const text = (await call(`${world.url}/openapi.json`)).body.toString();
    expect(
      text.match(/"\$ref":"#\/components\/schemas\/(Summary|ErrorMessage|PaymentChallenge)"/g)?.length,
    ).to.be.greaterThan(2);
  });

  it('preflights are cached for a day, and every answer lets a page read the payment headers', async () => {
    const preflight = await call(`${world.url}/v1/summarize`, { method: 'OPTIONS' });
    expect(preflight.status).to.equal(204);
    expect(preflight.headers.get('access-control-allow-origin')).to.equal('*');
    const allowed = preflight.headers.get('access-control-allow-headers') ?? '';
    for (const name of ['content-type', 'payment-signature', 'x-payment', 'prefer', 'if-none-match'])
      expect(allowed).to.include(name);
    expect(preflight.headers.get('access-control-max-age')).to.equal('86400');
    for (const answer of [
      await post(`${world.url}/v1/summarize`, {}),
      await call(`${world.url}/health`),
      await call(`${world.url}/nope`),
    ]) {
      const exposed = answer.headers.get('access-control-expose-headers');
      for (const name of ['PAYMENT-REQUIRED', 'ETag']) expect(exposed).to.include(name);
      expect(answer.headers.get('access-control-allow-origin')).to.equal('*');
    }
  });

  it('resource URLs come from PUBLIC_URL and never from the Host header', async () => {
    const answer = await raw(
      world,
      'POST /v1/summarize HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
    );
    expect(answer).to.include(world.url);
    expect(answer).not.to.include('evil.example');
  });

  it('health reports every backend, and the health of one service reports only its own backend', async () => {
    const health = (await call(`${world.url}/health`)).json();
    expect(health.status).to.be.oneOf(['ok', 'degraded']);
    expect(health.upstreams).to.include.keys('solana', 'facilitator', 'summarizer', 'speech', 'markets');
    expect((await call(`${world.url}/tts/health`)).json().upstreams).to.have.keys('speech');
    expect((await call(`${world.url}/brand/health`)).status).to.equal(200);
  });

  it('the voices are listed, with the default among them', async () => {
    const list = (await call(`${world.url}/tts/v1/voices`)).json() as {
      default: string;
      voices: { id: string }[];
    };
    expect(list.voices.map(voice => voice.id)).to.include(list.default);
  });

  it('promise 2: every kind of bad body is a 400 and leaves the payment and the balance alone', async function () {
    this.timeout(60_000);
    const before = await world.earned();
    const deep = `${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`;
    const bad: [string, string, string?][] = [
      ['/v1/summarize', ''],
      ['/v1/summarize', 'garbage'],
      ['/v1/summarize', '{"text":'],
      ['/v1/summarize', 'null'],
      ['/v1/summarize', '[]'],
      ['/v1/summarize', '"text"'],
      ['/v1/summarize', '1'],
      ['/v1/summarize', '{}'],
      ['/v1/summarize', '{"text":null}'],
      ['/v1/summarize', '{"text":1}'],
      ['/v1/summarize', '{"text":["a"]}'],
      ['/v1/summarize', '{"text":""}'],
      ['/v1/summarize', '{"text":"   \\n "}'],
      ['/v1/summarize', '{"text":true}'],
      ['/v1/summarize', JSON.stringify({ text: 'x'.repeat(100_001) })],
      ['/v1/summarize', JSON.stringify({ text: 'x'.repeat(3_000_000) })],
      ['/v1/summarize', '{"text":"hi"}', 'text/plain'],
      ['/v1/summarize', 'text=hi', 'application/x-www-form-urlencoded'],
      ['/v1/summarize', `{"text":"a","deep":${deep}}`],
      ['/v1/summarize', '{"text":"<p> </p>"}'],
      ['/v1/sol-mint-info', '{}'],
      ['/v1/sol-mint-info', '{"mint":"short"}'],
      ['/v1/sol-mint-info', '{"mint":"0OIl1111111111111111111111111111"}'],
      ['/v1/sol-mint-info', JSON.stringify({ mint: 'A'.repeat(45) })],
      ['/v1/sol-mint-info', JSON.stringify({ mint: world.sandbox.info.usdcMint, more: 1 })],
      ['/v1/sol-mint-info', JSON.stringify({ mint: world.sandbox.info.buyer })],
      ['/v1/sol-mint-info', '{"mint":"11111111111111111111111111111111"}'],
      ['/v1/sol-token-brief', '{"mint":1}'],
      ['/v1/sol-token-brief', '{"mint":"x","y":2}'],
      ['/v1/tts', '{}'],
      ['/v1/tts', JSON.stringify({ text: 'x'.repeat(2501) })],
      ['/v1/tts', '{"text":"hi","voice_id":"nobody"}'],
      ['/v1/tts', '{"text":"你好"}'],
      ['/v1/tts', '{"text":"hi","voice_id":7}'],
    ];
    const payments = new Map<string, Record<string, string>>();
    for (const path of new Set(bad.map(([path]) => path).filter(path => PAID.includes(path))))
      payments.set(path, await signFor(world, path));
    for (const [path, body, type] of bad.filter(([path]) => PAID.includes(path))) {
      const headers = { ...payments.get(path), ...(type ? { 'content-type': type } : {}) };
      // The work for one payment runs at most three times, and only the work finds some errors: those calls get new payments.
      if (/voice_id|你好|buyer|mint/.test(body)) Object.assign(headers, await signFor(world, path));
      const answer = await post(world.url + path, body, headers);
      expect(
        answer.status,
        `${path} ${body.slice(0, 60)} → ${answer.body.toString().slice(0, 200)}`,
      ).to.equal(400);
      expect(answer.json().error).to.be.a('string').and.not.equal('');
    }
    expect(await world.earned()).to.equal(before);
    const good = await post(
      `${world.url}/v1/summarize`,
      { text: TEXT },
      await signFor(world, '/v1/summarize'),
    );
    expect(good.status).to.equal(200);
    expect(await world.earned()).to.equal(before + priceOf('summarize'));
  });

  it('a body of a hundred thousand members is a 400 before it is parsed, and strings may contain anything', async () => {
    const headers = await signFor(world, '/v1/summarize');
    const members = Array.from({ length: 100_000 }, (_, index) => `"${index}":1`).join(',');
    const huge = await post(`${world.url}/v1/summarize`, `{"text":"a",${members}}`, headers);
    expect(huge.status).to.equal(400);
    expect(huge.json().error).to.include('too many members');
    const nested = await post(`${world.url}/v1/summarize`, `{"text":${'['.repeat(100_000)}`, headers);
    expect(nested.status).to.equal(400);
    expect(nested.json().error).to.include('nested too deeply');
    const text = `It said: ${'\\"{[,:]}\\" '.repeat(3_000)} and then it ended. That was all of it.`;
    const fine = await post(`${world.url}/v1/summarize`, { text }, headers);
    expect(fine.status, fine.body.toString().slice(0, 200)).to.equal(200);
  });

  it('garbage after a paid call in progress is never taken for its answer', async function () {
    this.timeout(20_000);
    const headers = await signFor(world, '/v1/summarize');
    world.facilitator.intervene(async ({ forward, respond }) => {
      await new Promise(resolve => setTimeout(resolve, 300));
      const answer = await forward();
      respond(answer.status, answer.body);
    });
    const body = JSON.stringify({ text: `${TEXT} Garbage follows.` });
    const [name, value] = Object.entries(headers)[0] ?? [];
    const answer = await raw(
      world,
      `POST /v1/summarize HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${name}: ${value}\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}GARBAGE\r\n\r\n`,
    );
    world.facilitator.intervene(undefined);
    expect(answer).not.to.match(/^HTTP\/1\.1 400 /);
  });
});

type Kept = {
  status: number | undefined;
  headers: Record<string, unknown>;
  body: string;
  localPort: number | undefined;
};

function keepAlivePost(agent: Agent, url: string, body: string): Promise<Kept> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
      response => {
        const chunks: Buffer[] = [];
        const { localPort } = response.socket;
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode, headers: response.headers, body: text, localPort });
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** Sends raw bytes. @returns what came back until the server closed or 1.5 s passed */
function raw(world: World, text: string): Promise<string> {
  const { hostname, port } = new URL(world.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let answer = '';
    const finish = (): void => {
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(finish, 1_500);
    socket.on('data', chunk => (answer += chunk.toString()));
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(answer);
    });
    socket.on('error', reject);
  });
}

function unpaidCall(protocol: string, headers: string): string {
  return `POST /v1/summarize ${protocol}\r\nHost: x\r\n${headers}Content-Length: 2\r\n\r\n{}`;
}

function dateOf(answer: string): number {
  return Date.parse(/^date: (.*)\r$/im.exec(answer)?.[1] ?? '');
}

/** Sends bytes on a connection of its own. @returns the answers once there are `count` of them, or the server closed it */
function exchange(url: string, bytes: string, count: number): Promise<string[]> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let text = '';
    const answers = () => text.split(/(?=HTTP\/1\.1 \d\d\d )/);
    socket.setEncoding('latin1').setTimeout(10_000, () => socket.destroy(new Error('no answer')));
    socket.on('data', chunk => {
      text += String(chunk);
      if (answers().length >= count) socket.end();
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(answers()));
  });
}
