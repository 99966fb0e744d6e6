import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** A server that speaks just enough of PostgreSQL's protocol to say whether it is a primary or a standby. */
export type FakePostgres = {
  host: string;
  isPrimary: boolean;
  /** Makes it accept connections without answering. */
  isFrozen: boolean;
  /** The open connections, except those that only ask for its role. */
  connections: () => number;
  close: () => Promise<void>;
};

export async function fakePostgres(isPrimary: boolean): Promise<FakePostgres> {
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket);
    let isKnown = false;
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.on('data', (message: Buffer) => {
      if (fake.isFrozen) return;
      if (!isKnown) socket.write(Buffer.concat([part('R', Buffer.alloc(4)), READY]));
      else if (message[0] === 'Q'.charCodeAt(0)) socket.write(rowOf(fake.isPrimary ? 'off' : 'on'));
      isKnown = true;
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const fake: FakePostgres = {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    isPrimary,
    isFrozen: false,
    connections: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return fake;
}

function part(type: string, content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(content.length + 4);
  return Buffer.concat([Buffer.from(type), length, content]);
}

const READY = part('Z', Buffer.from('I'));

/** A result of one row and one column, `transaction_read_only`. */
function rowOf(value: string): Buffer {
  const described = Buffer.from(
    '\0\x01transaction_read_only\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0',
    'latin1',
  );
  const row = Buffer.concat([Buffer.from([0, 1, 0, 0, 0, value.length]), Buffer.from(value)]);
  return Buffer.concat([part('T', described), part('D', row), part('C', Buffer.from('SHOW\0')), READY]);
}
