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

/**
 * Checks early whether the port is free; 0 means any port.
 * @throws ConfigFault if it is in use
 */
export async function findFreePort(host: string, wanted: number, variable = 'PORT'): Promise<number> {
  const probe = createNetServer();
  await listen(probe, host, wanted, variable);
  const port = portOf(probe);
  await new Promise(resolve => probe.close(resolve));
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
