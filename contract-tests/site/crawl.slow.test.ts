import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { serve, type Served } from '../support/server-process.js';
import { BROWSER } from '../support/site.js';

/** The links of a page, its scripts, styles and images. */
const linksOf = (html: string): string[] =>
  [...html.matchAll(/<[a-z]+\b[^>]*?\s(?:href|src)="([^"]+)"/g)].map(([, link = '']) =>
    link.replaceAll('&amp;', '&'),
  );

describe('Every link of a shop in the sandbox', () => {
  let folder: string;
  let served: Served;
  const pages = new Map<string, { status: number; html: string }>();
  const links: { from: string; to: URL }[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coinslot-crawl-'));
    served = await serve({
      STATE_DIR: folder,
      PORT: '0',
      ADMIN_PORT: '0',
      SANDBOX_RPC_PORT: '0',
      SANDBOX_FACILITATOR_PORT: '0',
    });
    const waiting = ['/'];
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      if (pages.has(path)) continue;
      const answer = await fetch(served.url + path, { headers: { accept: BROWSER } });
      const isPage = answer.headers.get('content-type')?.startsWith('text/html') ?? false;
      const html = await answer.text();
      pages.set(path, { status: answer.status, html: isPage ? html : '' });
      if (!isPage) continue;
      for (const link of linksOf(html)) {
        const to = new URL(link, served.url + path);
        if (to.origin !== served.url) continue;
        links.push({ from: path, to });
        waiting.push(to.pathname + to.search);
      }
    }
  });
  after(async () => {
    await served.kill();
    await rm(folder, { recursive: true, force: true });
  });

  it('reached from the front page leads to an existing page', () => {
    // If a paid operation can be called with GET, its page answers with a challenge (402).
    const missing = [...pages].filter(([, { status }]) => status !== 200 && status !== 402);
    expect(missing.map(([path, { status }]) => `${status} ${path}`)).to.deep.equal([]);
    expect(pages.size).to.be.above(60);
  });

  it('to a part of a page names a part that exists there', () => {
    const missing = links
      .filter(({ to }) => to.hash.length > 1)
      .filter(
        ({ to }) =>
          !pages.get(to.pathname + to.search)?.html.includes(` id="${decodeURIComponent(to.hash.slice(1))}"`),
      )
      .map(({ from, to }) => `${from} → ${to.pathname}${to.hash}`);
    expect(missing).to.deep.equal([]);
  });
});
