import { createServer } from 'node:net';

/**
 * A minimal HTTP/1.1 on bare sockets for stubs and load generator: keep-alive, bodies of known length. It costs a fraction of what
 * node:http costs, so that stubs and load generator do not distort a benchmark.
 */

const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** @param {Buffer} bytes @param {number} end where the head ends @returns {number} -1 if there is none */
export function contentLength(bytes, end) {
  for (const name of ['ontent-Length: ', 'ontent-length: ']) {
    const at = bytes.indexOf(name, 0, 'latin1');
    if (at < 0 || at > end) continue;
    let value = 0;
    for (let index = at + name.length; bytes[index] >= 0x30 && bytes[index] <= 0x39; index++) {
      value = value * 10 + bytes[index] - 0x30;
    }
    return value;
  }
  return -1;
}

/** @param {Buffer} bytes @returns {number} where the body begins, -1 while the head is incomplete */
export function bodyStart(bytes) {
  const at = bytes.indexOf(END_OF_HEAD);
  return at < 0 ? -1 : at + END_OF_HEAD.length;
}

/** @param {string} body JSON */
function answerOf(body) {
  return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/**
 * @param {(path: string, body: Buffer) => string} handle answers with JSON
 * @param {number} delayMs the delay of every answer
 * @returns {Promise<string>} the URL
 */
export function serveRaw(handle, delayMs = 0) {
  const server = createServer(socket => {
    let pending = Buffer.alloc(0);
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('data', chunk => {
      pending = pending.length ? Buffer.concat([pending, chunk]) : chunk;
      const start = bodyStart(pending);
      if (start < 0) return;
      const end = start + Math.max(0, contentLength(pending, start));
      if (pending.length < end) return;
      const path = pending.latin1Slice(pending.indexOf(' ') + 1, pending.indexOf(' HTTP/1'));
      const answer = answerOf(handle(path, pending.subarray(start, end)));
      pending = pending.subarray(end);
      if (delayMs > 0) setTimeout(() => socket.write(answer), delayMs);
      else socket.write(answer);
    });
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', 1024, () => resolve(`http://127.0.0.1:${server.address().port}`));
  });
}
