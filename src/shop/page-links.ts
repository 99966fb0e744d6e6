import { join } from 'node:path';
import { keepLink } from '../config/link-file.js';
import type { Log } from '../net/log.js';
import type { Pages } from './pages.js';

/**
 * The links that open the pages of operations. They contain tokens, so they may be shown on a terminal, but never logged. Links with a
 * generated token are written to files in the state folder that only their owner can read.
 * @throws ConfigFault if a file cannot be written
 */
export async function keepPageLinks(
  pages: readonly Pages[],
  stateDir: string,
  log: Log,
): Promise<{ name: string; url: string }[]> {
  const links: { name: string; url: string }[] = [];
  for (const { name, path, link } of pages) {
    if (!link) continue;
    links.push({ name, url: link.url });
    if (!link.isMade) continue;
    const file = join(stateDir, `${path.slice(1)}.url`);
    const [url] = link.url.split('#', 1);
    await keepLink(file, link.url);
    log.info({ url, file }, `the page ${name} is at ${url}: ${file} has the link that opens it`);
  }
  return links;
}
