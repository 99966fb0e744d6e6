import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.js';

/** The admin listener of the running server. */
export type Admin = { url: string; token: string };

/** The address of the running server is not known. */
export class NoServerFault extends Error {}

/** The admin listener of the server with these settings. @throws NoServerFault */
export function adminOf({ admin, stateDir }: Pick<Config, 'admin' | 'stateDir'>): Admin {
  const link = readLink(join(stateDir, 'operator-page.url'));
  const url = admin.url ?? link?.url ?? (admin.port ? `http://127.0.0.1:${admin.port}` : undefined);
  const token = admin.token ?? link?.token;
  if (url !== undefined && token !== undefined) return { url, token };
  throw new NoServerFault(
    `No running server was found: there is no link in ${join(stateDir, 'operator-page.url')}. Set STATE_DIR to that of the server, or ADMIN_URL and ADMIN_TOKEN.`,
  );
}

function readLink(file: string): Admin | undefined {
  try {
    const [, url, token] = /^(http\S+?)\/#(\S+)\s*$/.exec(readFileSync(file, 'utf8')) ?? [];
    return url !== undefined && token !== undefined ? { url, token } : undefined;
  } catch {
    return undefined;
  }
}
