import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { HttpClient, NoAnswer } from '../../src/net/http-client.js';
import { isPublicAddress, publicConnector, type Resolver } from '../../src/net/public-addresses.js';

const PRIVATE =
  `0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16
  169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1
  203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:8.8.8.8
  64:ff9b::7f00:1 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2001:20::1 2002:7f00:1::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1
  fe80::1%eth0 fec0::1 ff02::1`.split(/\s+/);
const PUBLIC =
  `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 172.15.255.255
  172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2001:200::1 2606:4700::1111 2a00::1`.split(
    /\s+/,
  );

describe('A client that connects to public addresses only', () => {
  let server: Server;
  let connections = 0;
  before(async () => {
    server = createServer(socket => {
      connections += 1;
      socket.on('error', () => {});
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => server.close());
  beforeEach(() => (connections = 0));

  const port = (): number => (server.address() as AddressInfo).port;

  it('tells private and reserved addresses from public ones', () => {
    expect(PRIVATE.filter(isPublicAddress)).to.deep.equal([]);
    expect(PUBLIC.filter(address => !isPublicAddress(address))).to.deep.equal([]);
    for (const nonsense of ['', 'localhost', '127.1', '[::1]', '8.8.8.8:80', ' 8.8.8.8'])
      expect(isPublicAddress(nonsense), nonsense).to.equal(false);
  });

  // Without the check, 0.0.0.0 and the mapped address would reach the test's server.
  for (const host of [
    '127.0.0.1',
    'localhost',
    '0.0.0.0',
    '[::ffff:127.0.0.1]',
    '127.1',
    '2130706433',
    '[::1]',
  ]) {
    it(`never connects to ${host}`, async () => {
      const client = new HttpClient(`http://${host}:${port()}`, {
        connections: 1,
        maxAnswerBytes: 1_000,
        publicOnly: true,
      });
      try {
        const error: unknown = await client
          .request({ method: 'GET', path: '/', ms: 2_000 })
          .catch((reason: unknown) => reason);
        expect(error).to.be.instanceOf(NoAnswer).and.to.include({ kind: 'private' });
        expect(await client.reach().catch((reason: unknown) => reason)).to.include({ kind: 'private' });
        expect(connections).to.equal(0);
      } finally {
        await client.close();
      }
    });
  }

  /** Connects to a name that `resolver` knows. @returns the error, if any */
  function connect(resolver: Resolver): Promise<Error | null> {
    return new Promise(resolve => {
      const parts = { protocol: 'http:', host: `shop.example:${port()}`, hostname: 'shop.example' };
      publicConnector(1_000, resolver)({ ...parts, port: String(port()) }, (error, socket) => {
        socket?.destroy();
        resolve(error);
      });
    });
  }

  it('connects to the address that was checked: a name is resolved once for each connection', async () => {
    let asked = 0;
    const rebinding: Resolver = (_host, _options, callback) => {
      const address = asked++ === 0 ? '192.0.2.55' : '127.0.0.1';
      callback(null, [{ address, family: 4 }]);
    };
    expect((await connect(rebinding))?.message).to.equal('the address is private or reserved');
    expect(asked).to.equal(1);
    expect(connections).to.equal(0);
  });

  it('refuses a name if one of its addresses is private, and passes on the error if a name is not found', async () => {
    const mixed: Resolver = (_host, _options, callback) =>
      callback(null, [
        { address: '1.1.1.1', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ]);
    expect(await connect(mixed)).to.include({ code: 'ERR_PRIVATE_ADDRESS' });
    const unknown = Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
    expect(await connect((_host, _options, callback) => callback(unknown, []))).to.equal(unknown);
    expect(await connect((_host, _options, callback) => callback(null, []))).to.include({
      code: 'ERR_PRIVATE_ADDRESS',
    });
  });

  it('can connect to a server without sending a request, even at a private address if those are allowed', async () => {
    const client = new HttpClient(`http://127.0.0.1:${port()}`, { connections: 1, maxAnswerBytes: 1_000 });
    await client.reach();
    expect(connections).to.equal(1);
    await client.close();
    const nobody = new HttpClient('http://127.0.0.1:1', { connections: 1, maxAnswerBytes: 1_000 });
    expect(await nobody.reach().catch((reason: unknown) => reason)).to.include({ kind: 'unreachable' });
    await nobody.close();
  });
});
