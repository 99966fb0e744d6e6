import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy. While it is cut, nothing passes, and neither side learns that the other is gone. */
export type CuttableProxy = {
  port: number;
  /** Connections that nobody has closed. */
  open: () => number;
  cut: () => void;
  heal: () => void;
  close: () => void;
};

export async function cuttableProxy(target: number): Promise<CuttableProxy> {
  const pairs = new Map<Socket, Socket>();
  const late: (() => void)[] = [];
  let isCut = false;
  const whenWhole = (act: () => void): void => void (isCut ? late.push(act) : act());
  const join = (near: Socket, far: Socket): void => void near.pipe(far).pipe(near);
  const part = (near: Socket, far: Socket): void => {
    near.unpipe(far).pause();
    far.unpipe(near).pause();
  };
  const server = createServer(near => {
    const far = connect(target, '127.0.0.1');
    pairs.set(near, far);
    near
      .on('error', () => undefined)
      .on('close', () => {
        pairs.delete(near);
        whenWhole(() => far.destroy());
      });
    far.on('error', () => undefined).on('close', () => whenWhole(() => near.destroy()));
    if (isCut) late.push(() => join(near, far));
    else join(near, far);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    open: () => pairs.size,
    cut: () => {
      isCut = true;
      for (const [near, far] of pairs) part(near, far);
    },
    heal: () => {
      isCut = false;
      for (const [near, far] of pairs) join(near, far);
      for (const act of late.splice(0)) act();
    },
    close: () => {
      for (const ends of pairs) for (const end of ends) end.destroy();
      server.close();
    },
  };
}
