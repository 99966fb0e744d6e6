import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { openBareServer, Sockets, type BareServer } from '../support/bare-server.js';
import { pause, until } from '../support/faults.js';
import { openWorld, postPatiently, receiptOf, signFor, type World } from '../support/world.js';

const STALL_MS = 1_000;
const LARGE = Buffer.alloc(30 * 1024 * 1024);
const PIECE = 64 * 1024;
function* pieces(): Generator<Buffer> {
  for (let from = 0; from < LARGE.length; from += PIECE) yield LARGE.subarray(from, from + PIECE);
}
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const UNPAID = 'POST /v1/summarize HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}';

describe('connections that do not read', function () {
  this.timeout(60_000);
  let bare: BareServer;
  let asked = 0;
  const sockets = new Sockets();

  before(async () => {
    const deadlines = { headersMs: 10_000, requestMs: 10_000, checkMs: 100, stallMs: STALL_MS };
    bare = await openBareServer(({ url }, response) => {
      asked += 1;
      if (url === '/small') response.end('small');
      else if (url === '/later') setTimeout(() => response.end('later'), 3 * STALL_MS);
      else Readable.from(pieces(), { objectMode: false }).pipe(response);
    }, deadlines);
  });
  after(() => {
    sockets.close();
    bare.close();
  });

  /** Sends `text` on a new connection that reads nothing until it is resumed. */
  const send = async (text: string): Promise<Socket> => {
    const socket = await sockets.open(bare.url);
    socket.pause().write(text);
    return socket;
  };
  const openOnes = (): Promise<number> =>
    new Promise((resolve, reject) =>
      bare.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  const untilOpen = async (count: number): Promise<void> => {
    for (const end = Date.now() + 40_000; (await openOnes()) !== count; await pause(50))
      if (Date.now() > end) throw new Error(`${await openOnes()} connections are open instead of ${count}`);
  };

  it('an answer that nobody reads ends its connection', async () => {
    await send(GET);
    await untilOpen(1);
    await untilOpen(0);
  });

  it('challenges that nobody reads end their connection, too', async () => {
    const socket = await send('');
    const filling = setInterval(() => socket.write(UNPAID.repeat(50)), 5);
    await pause(1_500).finally(() => clearInterval(filling));
    await untilOpen(0);
  });

  it('a connection that is waiting for its answer stays open, however long that takes, and so does one that reads slowly', async () => {
    const waiting = await send('GET /later HTTP/1.1\r\nHost: x\r\n\r\n');
    const slow = await send(GET);
    let read = 0;
    slow.on('data', (chunk: Buffer) => {
      read += chunk.length;
      slow.pause();
      setTimeout(() => slow.resume(), 5);
    });
    slow.resume();
    waiting.resume();
    const [said] = (await once(waiting, 'data')) as [Buffer];
    expect(said.toString()).to.match(/^HTTP\/1\.1 200 /);
    for (const end = Date.now() + 15_000; read < LARGE.length && Date.now() < end;) await pause(50);
    expect(read).to.be.greaterThan(LARGE.length);
    waiting.destroy();
    slow.destroy();
    await untilOpen(0);
  });

  it('a thousand requests behind an unread answer are not all started', async () => {
    asked = 0;
    await send(GET + 'GET /small HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000));
    await untilOpen(1);
    await pause(300);
    expect(asked).to.be.within(2, 9);
    await untilOpen(0);
  });

  it('more requests than may wait: the earlier ones get their answers, the next a 503 and the end of the connection', async () => {
    const socket = await send(`${GET}${'GET /small HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000)}`);
    await pause(300);
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.equals(LARGE.subarray(0, chunk.length)))
        text += chunk.toString('latin1').replaceAll('\0', '');
    });
    await once(socket.resume(), 'close');
    const statuses = text.match(/HTTP\/1\.1 \d{3}/g) ?? [];
    expect(statuses.length).to.be.within(3, 10);
    expect(new Set(statuses.slice(0, -1))).to.deep.equal(new Set(['HTTP/1.1 200']));
    expect(statuses.at(-1)).to.equal('HTTP/1.1 503');
    expect(text).to.match(/\{"error":"Too many unanswered requests.*"\}$/);
  });

  it('far more requests than may wait, over several connections: later connections are cut, the first stays open', async () => {
    const deadlines = { headersMs: 60_000, requestMs: 60_000, checkMs: 100, stallMs: 60_000 };
    const silent = await openBareServer(() => {}, deadlines);
    try {
      const closed: number[] = [];
      for (let n = 0; n < 6; n++) {
        const socket = sockets.begin(silent.url).on('close', () => closed.push(n));
        socket.once('connect', () => socket.write(GET.repeat(1_000)));
        if (n === 0) await once(socket, 'connect');
      }
      await until('a connection is cut', () => closed.length > 0);
      expect(closed).not.to.include(0);
    } finally {
      silent.close();
    }
  });
});

/** Reads until the connection ends, or nothing has come for a second. */
function bytesLeft(socket: Socket): Promise<number> {
  return new Promise(resolve => {
    let bytes = 0;
    let quiet = setTimeout(() => resolve(bytes), 1_000);
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      clearTimeout(quiet);
      quiet = setTimeout(() => resolve(bytes), 1_000);
    });
    socket.once('close', () => resolve(bytes)).resume();
  });
}

describe('answers to clients that do not read', function () {
  this.timeout(90_000);
  let world: World;
  const sockets = new Sockets();

  before(async () => {
    world = await openWorld();
  });
  after(async () => {
    sockets.close();
    await world.close();
  });

  it('one speech for a hundred clients: some receive it, the others get a 503 with the receipt, and its buyer gets it once they are gone', async () => {
    const body = JSON.stringify({
      text: 'One coin buys one call, and the harbour is quiet today. '.repeat(44),
    });
    let payment = await signFor(world, '/v1/tts');
    let sold = await postPatiently(`${world.url}/v1/tts`, body, payment);
    if (sold.status === 402) {
      // The machine was too busy to produce the speech while the payment was valid.
      payment = await signFor(world, '/v1/tts');
      sold = await postPatiently(`${world.url}/v1/tts`, body, payment);
    }
    expect(sold.status).to.equal(200);
    const [name, value] = Object.entries(payment)[0] as [string, string];
    const request =
      `POST /v1/tts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${name}: ${value}\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`;
    const hundred = Array.from({ length: 100 }, () => sockets.begin(world.url));
    const firsts = hundred.map(async socket => {
      socket.once('connect', () => socket.write(request));
      const [head] = (await once(socket, 'data')) as [Buffer];
      socket.pause();
      return head.toString('latin1');
    });
    const heads = await Promise.all(firsts);
    const begun = hundred.filter((_, n) => heads[n]!.startsWith('HTTP/1.1 200'));
    const refused = heads.filter(head => head.startsWith('HTTP/1.1 503'));
    expect(begun.length + refused.length).to.equal(100);
    // A client that has not read for some time gives way to new ones, so some responses are cut.
    const rests = await Promise.all(begun.map(bytesLeft));
    const whole = rests.filter(bytes => bytes > sold.body.length - 256 * 1024);
    expect(whole.length).to.be.within(1, Math.ceil((64 * 1024 * 1024) / sold.body.length));
    for (const head of refused) {
      expect(head).to.match(/\r\nRetry-After: \d+\r\n/i);
      expect(head).to.match(/\r\nPAYMENT-RESPONSE: /i);
      // There is no memory for the answer, or it was sent too many times.
      expect(head).to.match(/(answer is stored|It is kept): send the same payment again/);
    }
    const earned = await world.earned();
    sockets.close();
    await pause(200);
    const again = await postPatiently(`${world.url}/v1/tts`, body, payment);
    expect(again.status).to.equal(200);
    expect(again.body.equals(sold.body)).to.equal(true);
    expect(receiptOf(again)).to.deep.equal(receiptOf(sold));
    expect(await world.earned()).to.equal(earned);
  });
});
