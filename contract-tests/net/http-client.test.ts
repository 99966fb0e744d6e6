import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { HttpClient, NoAnswer, type HttpClientOptions } from '../../src/net/http-client.js';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRetry-After: 7\r\n\r\nok';

/** A server that calls `play` with the socket, the number (from 0) and the text of each request. */
async function serve(play: (socket: Socket, request: number, text: string) => void): Promise<Server> {
  let requests = 0;
  const server = createServer(socket => {
    socket.on('error', () => {});
    socket.on('data', chunk => play(socket, requests++, chunk.toString()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describe('The HTTP client', () => {
  let server: Server | undefined;
  let client: HttpClient | undefined;
  afterEach(async () => {
    await client?.close();
    server?.close();
    server = client = undefined;
  });

  async function open(
    play: (socket: Socket, request: number, text: string) => void,
    options: Partial<HttpClientOptions> = {},
    path = '',
  ): Promise<HttpClient> {
    server = await serve(play);
    const url = `http://user:secret@127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
    return (client = new HttpClient(url, { connections: 1, maxAnswerBytes: 1_000, ...options }));
  }

  const get = { method: 'GET', path: '/a', ms: 2_000 } as const;

  async function kindOf(request: Promise<unknown>): Promise<string> {
    const error: unknown = await request.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return error instanceof NoAnswer ? error.kind : `no NoAnswer: ${String(error)}`;
  }

  it('returns the status, headers and body of an answer', async () => {
    const { status, text, header } = await (
      await open(socket => socket.write(OK))
    )
      .request(get)
      .then(answer => ({
        status: answer.status,
        text: answer.text,
        header: [answer.header('retry-after'), answer.header('absent')],
      }));
    expect({ status, text, header }).to.deep.equal({ status: 200, text: 'ok', header: ['7', undefined] });
  });

  it('sends credentials and query of its URL with every request, and conceals them', async () => {
    const heads: string[] = [];
    const asked = await open(
      (socket, _request, text) => {
        heads.push(text);
        socket.write(OK);
      },
      { headers: { accept: 'a/b' } },
      '/base/?key=12345678',
    );
    for (const path of ['/a', '/a?b=c', '']) await asked.request({ ...get, path });
    expect(heads.map(head => head.split(' ')[1])).to.deep.equal([
      '/base/a?key=12345678',
      '/base/a?b=c&key=12345678',
      '/base/?key=12345678',
    ]);
    const basic = `authorization: Basic ${Buffer.from('user:secret').toString('base64')}`;
    for (const head of heads) expect(head).to.contain(basic).and.to.contain('accept: a/b');
    expect(asked.conceal('secret 12345678')).to.equal('… …');
    expect(asked.name).not.to.match(/secret|12345678/);
  });

  for (const resend of [false, true]) {
    it(`${resend ? 'repeats' : 'never repeats'} a request whose connection ended`, async () => {
      let received = 0;
      const asked = await open(
        (socket, request) => {
          received += 1;
          if (request === 1) socket.destroy();
          else socket.write(OK);
        },
        { resend },
      );
      await asked.request(get);
      if (resend) expect((await asked.request(get)).status).to.equal(200);
      else expect(await kindOf(asked.request(get))).to.equal('cut');
      expect(received).to.equal(resend ? 3 : 2);
    });
  }

  it('lets each request say whether it may be repeated', async () => {
    let received = 0;
    const asked = await open(
      (socket, request) => {
        received += 1;
        if (request % 2 === 1) socket.destroy();
        else socket.write(OK);
      },
      { resend: true },
    );
    await asked.request(get);
    expect(await kindOf(asked.request({ ...get, resend: false }))).to.equal('cut');
    expect(received).to.equal(2);
  });

  it('aborts an answer that is larger than its request allows', async () => {
    const asked = await open(socket => socket.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(500)}`));
    expect(await kindOf(asked.request({ ...get, maxAnswerBytes: 499 }))).to.equal('too large');
    expect(await kindOf(asked.request({ ...get, ms: 100, maxAnswerBytes: 500 }))).to.equal('late');
  });

  it('repeats a request once, within the same deadline, and only if nothing was answered', async () => {
    let received = 0;
    const asked = await open(
      socket => {
        received += 1;
        if (received > 2) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
        setTimeout(() => socket.destroy(), 20);
      },
      { resend: true },
    );
    expect(await kindOf(asked.request(get))).to.equal('cut');
    expect(received).to.equal(2);
    expect(await kindOf(asked.request(get))).to.equal('broken');
    expect(received).to.equal(3);
    expect(await kindOf(asked.request({ ...get, ms: 1 }))).to.equal('late');
  });

  it('names the reason when there is no answer', async () => {
    const answers = [
      (socket: Socket) => socket.write('no HTTP\r\n\r\n'),
      (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(2_000)}`),
      () => undefined,
    ];
    const asked = await open((socket, request) => answers[request]?.(socket));
    expect(await kindOf(asked.request(get))).to.equal('broken');
    expect(await kindOf(asked.request(get))).to.equal('too large');
    const reason = new Error('gone');
    const leaving = new AbortController();
    setTimeout(() => leaving.abort(reason), 20);
    const left = await asked.request({ ...get, signal: leaving.signal }).catch((error: unknown) => error);
    expect(left).to.be.instanceOf(NoAnswer).and.to.include({ kind: 'aborted', cause: reason });
    expect(await kindOf(asked.request({ ...get, signal: leaving.signal }))).to.equal('aborted');
    await asked.close();
    await asked.close();
    expect(await kindOf(asked.request(get))).to.equal('unreachable');
  });

  it('fails if nothing listens', async () => {
    const asked = await open(() => {});
    server?.close();
    expect(await kindOf(asked.request(get))).to.equal('unreachable');
  });
});
