import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Middleware } from 'koa';
import type { Contract } from '../contract/contract.js';
import { productName } from '../contract/product-name.js';
import { keepLink } from '../config/link-file.js';
import type { Log } from '../net/log.js';
import { createPanel, type PanelOptions } from './panel.js';

/** In the state folder; holds the link with a token that was made. */
const LINK_FILE = 'panel.url';

type Opening = Omit<PanelOptions, 'token' | 'secure' | 'shop'> & {
  contract: Pick<Contract, 'document'>;
  /** If undefined, a new one is made. */
  panelToken: string | undefined;
  publicUrl: string;
  stateDir: string;
  log: Log;
};

/** The panel with its token. `link` opens it and holds the token: it is for a terminal, never for the log. */
export async function openPanel({
  contract,
  publicUrl,
  stateDir,
  log,
  panelToken,
  ...parts
}: Opening): Promise<{ panel: Middleware; link: string }> {
  const token = panelToken ?? randomBytes(18).toString('base64url');
  const url = `${publicUrl}/panel/`;
  const link = `${url}#${token}`;
  if (panelToken === undefined) {
    const file = join(stateDir, LINK_FILE);
    await keepLink(file, link);
    log.info({ url, file }, `people answer questions at ${url}: ${file} has the link that opens it`);
  }
  const panel = createPanel({
    ...parts,
    shop: productName(contract),
    token,
    secure: publicUrl.startsWith('https:'),
  });
  return { panel: panel.routes() as Middleware, link };
}
