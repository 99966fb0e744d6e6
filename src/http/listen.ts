import type { Server } from 'node:http';
import { createServer as createNetServer, type AddressInfo, type Server as NetServer } from 'node:net';
import { ConfigFault } from '../config/setting-reader.js';

const BACKLOG = 1024;
const SHUTDOWN_DEADLINE_MS = 25_000;
/** How long kept-alive connections may take to close on their own. */
const CLOSE_MS = 500;

/**
 * @param variable the setting that names the port
 * @throws ConfigFault if the port is in use
 */
export function listen(server: NetServer, host: string, port: number, variable = 'PORT'): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => {
      const inUse = error.code === 'EADDRINUSE';
      server.off('listening', done);
      reject(
        inUse ? new ConfigFault(`${variable}: ${port} is in use; set ${variable} to another one`) : error,
      );
    };
    const done = (): void => {
      server.off('error', fail);
      resolve();
    };
    server.once('error', fail).once('listening', done).listen(port, host, BACKLOG);
  });
}

/** The port of a listening server. */
export function portOf(server: NetServer): number {
  return (server.address() as AddressInfo).port;
}

/** A port that is free. `release` must be called before a server listens on the port; it may be called again. */
export type ReservedPort = { port: number; release: () => Promise<void> };

/**
 * Checks early whether the port is free; 0 means any port, which is kept from other programs until `release`. A port with a number is not
 * kept, because an open port would look like a server that is ready.
 * @throws ConfigFault if it is in use
 */
export async function reservePort(host: string, wanted: number): Promise<ReservedPort> {
  const holder = createNetServer(socket => socket.destroy());
  await listen(holder, host, wanted);
  // A start that fails before `release` may still end the process.
  holder.unref();
  const port = portOf(holder);
  const release = (): Promise<void> => new Promise(resolve => holder.close(() => resolve()));
  if (wanted !== 0) await release();
  return { port, release };
}

/** @throws ConfigFault if the port is in use; 0 means any port */
export async function findFreePort(host: string, wanted: number): Promise<number> {
  const { port, release } = await reservePort(host, wanted);
  await release();
  return port;
}

/** Stops listening, lets open requests finish until `idle` resolves or 25 s have passed, then closes all connections. */
export async function drain(server: Server, idle: () => Promise<void>): Promise<void> {
  // First accepts the connections that are waiting to be accepted, because closing the server would reset
  // them.
  await new Promise(resolve => setImmediate(resolve));
  const closed = new Promise(resolve => server.close(resolve));
  server.closeIdleConnections();
  const deadline = new Promise(resolve => setTimeout(resolve, SHUTDOWN_DEADLINE_MS).unref());
  await Promise.race([idle().then(() => server.closeIdleConnections()), deadline]);
  await Promise.race([closed, new Promise(resolve => setTimeout(resolve, CLOSE_MS))]);
  server.closeAllConnections();
}
