import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { Sockets } from '../support/bare-server.js';
import { pause } from '../support/faults.js';
import { openWorld, post, postPatiently, signFor, TEXT, type World } from '../support/world.js';

const HELD = 520;

describe('bodies that are sent slowly', function () {
  this.timeout(60_000);
  let world: World;
  const sockets = new Sockets();

  before(async () => {
    world = await openWorld();
  });
  after(async () => {
    sockets.close();
    await world.close();
  });

  /** Opens a paid call, and sends only the first `sent` bytes of its body. */
  const hold = async (payment: Record<string, string>, length: number, sent: number): Promise<Socket> => {
    const socket = await sockets.open(world.url);
    const head = Object.entries({ ...payment, 'Content-Type': 'application/json', 'Content-Length': length })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
    socket.write(`POST /v1/summarize HTTP/1.1\r\nHost: x\r\n${head}\r\n${' '.repeat(sent)}`);
    return socket;
  };

  it(`${HELD} with one unfunded payment do not block a paid call`, async () => {
    const payment = await signFor(world, '/v1/summarize');
    await Promise.all(Array.from({ length: HELD }, () => hold(payment, 1_000, 0)));
    await pause(500);
    const sold = await post(
      `${world.url}/v1/summarize`,
      { text: TEXT },
      await signFor(world, '/v1/summarize'),
    );
    expect(sold.status, sold.body.toString()).to.equal(200);
  });

  it('that fill their budget give way to a new request: the slowest gets a 503, the new one an answer', async () => {
    const payment = await signFor(world, '/v1/summarize');
    const held = await Promise.all(Array.from({ length: 4 }, () => hold(payment, 2_000_000, 1_900_000)));
    const ends = held.map(async socket => {
      const [said] = (await once(socket, 'data')) as [Buffer];
      await once(socket, 'close');
      return said.toString();
    });
    await pause(1_500);
    const text = TEXT.padEnd(1_000_000);
    const body = JSON.stringify({ text: TEXT, padding: text });
    const sold = await postPatiently(`${world.url}/v1/summarize`, body, payment);
    expect(sold.status, sold.body.toString()).to.equal(200);
    // Which request was the slowest depends on the machine.
    expect(await Promise.race(ends)).to.match(
      /^HTTP\/1\.1 503 [^]*Retry-After: \d+\r\n[^]*\{"error":".*too slowly.*You were not charged/,
    );
  });
});
