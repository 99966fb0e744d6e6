import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { join } from 'node:path';
import type { AdminConfig } from '../config.js';
import { ConfigFault } from '../config/setting-reader.js';
import { keepLink } from '../config/link-file.js';
import { listen, portOf } from '../http/listen.js';
import { hostInUrl } from '../net/host-names.js';
import type { Log } from '../net/log.js';
import { createAdminServer, type AdminParts, type AdminServer } from './admin-server.js';

const DEFAULT_PORT = 8404;
/** In the state folder; holds the link with the token. */
const LINK_FILE = 'operator-page.url';
const CLOSE_MS = 500;

/** The address of the listener, and the operator's token. The port is open. Until `openAdmin` is called, it answers that the server is starting. */
export type AdminPlace = {
  host: string;
  port: number;
  url: string;
  token: string;
  isTokenMade: boolean;
  listener: AdminServer;
  close: () => Promise<void>;
};

/** The open listener. `link` opens the operator page and holds the token. */
export type AdminListener = { url: string; link: string; close: () => Promise<void> };

type PlaceOptions = {
  admin: AdminConfig;
  /** Whether the server listens on any free port. If so, the admin listener does, too. */
  anyPort: boolean;
  isSandbox: boolean;
  /** The names of the page-token variables that are set. */
  pageTokens?: readonly string[];
  stateDir: string;
  log: Log;
};

/**
 * Opens the port and finds the token. In the sandbox, a default port that is in use is replaced by a free one, so that several servers
 * can run, even if they start at the same moment.
 * @throws ConfigFault if the port is in use
 */
export async function placeAdmin(options: PlaceOptions): Promise<AdminPlace> {
  const { admin, stateDir } = options;
  const listener = createAdminServer();
  const { server } = listener;
  await listenSomewhere(server, options);
  const port = portOf(server);
  const url = admin.url ?? `http://${hostInUrl(admin.host)}:${port}`;
  warnOfMissingToken(options);
  const token = admin.token ?? (await keptToken(stateDir)) ?? randomBytes(24).toString('base64url');
  const isTokenMade = admin.token === undefined;
  return { host: admin.host, port, url, token, isTokenMade, listener, close: () => closeServer(server) };
}

/** An operator who sets a token for a page must know that it does not open the operator page. */
function warnOfMissingToken({ admin, pageTokens = [], stateDir, log }: PlaceOptions): void {
  if (pageTokens.length === 0 || admin.token !== undefined) return;
  const file = join(stateDir, LINK_FILE);
  log.warn(
    { file },
    `ADMIN_TOKEN: not set. ${pageTokens.join(', ')} does not open the operator page; the link that opens it is in ${file}`,
  );
}

async function listenSomewhere(server: Server, options: PlaceOptions): Promise<void> {
  const { admin, anyPort, isSandbox, log } = options;
  const { host, port = anyPort ? 0 : DEFAULT_PORT } = admin;
  try {
    await listen(server, host, port, 'ADMIN_PORT');
  } catch (error) {
    if (!(error instanceof ConfigFault) || !isSandbox || admin.port !== undefined) throw error;
    await listen(server, host, 0, 'ADMIN_PORT');
    log.info({ port: portOf(server) }, `port ${port} is in use: the admin listener uses another one`);
  }
}

/** The token that was generated when the server last started. It is reused, so that links and bookmarks stay valid. */
async function keptToken(stateDir: string): Promise<string | undefined> {
  const text = await readFile(join(stateDir, LINK_FILE), 'utf8').catch(() => '');
  return /#([\w-]{32})\s*$/.exec(text)?.[1];
}

/**
 * Serves the operator at the open port. The link with a generated token is written to a file in the state folder that only its owner can
 * read.
 * @throws ConfigFault if the file cannot be written
 */
export async function openAdmin(
  place: AdminPlace,
  stateDir: string,
  parts: Omit<AdminParts, 'host' | 'url' | 'opens'>,
): Promise<AdminListener> {
  const { host, url, token, listener, close } = place;
  const wanted = digest(token);
  const opens = (text: string): boolean => timingSafeEqual(digest(text), wanted);
  listener.serve({ ...parts, host, url, opens });
  const link = `${url}/#${token}`;
  if (place.isTokenMade) await keepLink(join(stateDir, LINK_FILE), link);
  return { url, link, close };
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise(resolve => server.close(resolve));
  server.closeIdleConnections();
  await Promise.race([closed, new Promise(resolve => setTimeout(resolve, CLOSE_MS))]);
  server.closeAllConnections();
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
