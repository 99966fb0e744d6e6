import { randomBytes } from 'node:crypto';
import type { Pages } from 'coinslot';
import { createPanel, type PanelOptions } from './panel.js';

type Opening = Omit<PanelOptions, 'token' | 'secure'> & {
  /** If undefined, a new token is generated. */
  panelToken: string | undefined;
  publicUrl: string;
};

/** The panel with its token, and the link that opens it. */
export function openPanel({ publicUrl, panelToken, ...parts }: Opening): Pages {
  const token = panelToken ?? randomBytes(18).toString('base64url');
  const pages = createPanel({ ...parts, token, secure: publicUrl.startsWith('https:') });
  const link = { url: `${publicUrl}${pages.path}/#${token}`, isMade: panelToken === undefined };
  return { ...pages, link };
}
